"""A small pipeline, and what a lake must look like after it ran: whatever happened on the way."""

import re
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import pyarrow as pa
from pyarrow.fs import LocalFileSystem
from tests.support.lake import counted, frozen, stored_rows

from sluice.declare.project import Project, load
from sluice.delta.intervals import notes
from sluice.delta.log.position import positions
from sluice.delta.places.delta_rs import is_table, locate, open_table
from sluice.delta.places.folders import remove, replace_file
from sluice.delta.places.lake_layout import LakeLayout, layout
from sluice.engine.advance import Run
from sluice.errors import SluiceError
from sluice.language.interval import Interval
from sluice.operate.run import deliver, run
from sluice.operate.verify import faults
from sluice.spark.session import Spark

PIPELINE = """
pipeline: shop
schedule: "@daily"
start_date: 2024-01-01
sources:
  sales:
    path: "landing/{interval_start:%Y-%m-%d}/"
    format: json
    schema: "shop STRING, item STRING, amount DECIMAL(12,2)"
    expect:
      - {type: expect_column_values_to_not_be_null, column: item, on_failure: quarantine}
views:
  totals:
    kind: cogroup
    key: [shop, item]
    streams: {sales: {from: sales, aggregates: {total: sum(amount), lines: count(*)}}}
  best: {kind: topk, from: totals, partition_by: [shop], order_by: [total desc], limit: 2}
"""
SETTINGS = """
lake: {prefix}lake
spark:
  commit: {commit}
  conf: {{spark.sql.shuffle.partitions: 1, spark.sql.adaptive.enabled: false,
    spark.sql.codegen.wholeStage: false, spark.sql.codegen.factoryMode: NO_CODEGEN}}
"""
LANDING = re.compile(r"\blanding/")
POSITIONED = ("sales", "totals__state", "totals", "best__state", "best")
INTERVALS = "sales__intervals"
NOTES = ("sales__quarantine", INTERVALS)
PASSING = {"batch", "run", "quarantined_at", "delivered_at", "file", "files"}


def day(number: int, days: int = 1) -> Interval:
    return Interval(
        datetime(2024, 1, number, tzinfo=UTC), datetime(2024, 1, number + days, tzinfo=UTC)
    )


@dataclass
class Deployed:
    """A project in a folder. Its landing files and its lake lie beside it, or in a store.

    `prefix`: what their names begin with there, as in `s3://bucket/place/`.
    """

    folder: Path
    prefix: str = ""

    @property
    def root(self) -> str:
        """The folder in which they lie, with a slash behind it."""
        return self.prefix or f"{self.folder}/"

    def committer(self, name: str) -> None:
        told = SETTINGS.format(prefix=self.prefix, commit=name)
        (self.config / "sluice.yaml").write_text(told)

    def define(self, pipeline: str) -> None:
        """Write its pipeline, in place of the one that it had."""
        folder = self.config / "pipelines"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "shop.yaml").write_text(LANDING.sub(f"{self.prefix}landing/", pipeline))

    def deliver(self, name: str, text: str | None) -> None:
        """Land the one file of a folder in place of what it held; None leaves it empty."""
        folder, _, _ = f"{self.root}landing/{name}".rpartition("/")
        remove(folder)
        if text is not None:
            files, path = locate(folder)
            if isinstance(files, LocalFileSystem):
                files.create_dir(path)
            replace_file(files, f"{path}/{name.rpartition('/')[2]}", text.encode())

    @property
    def config(self) -> Path:
        return self.folder / "config"

    @property
    def project(self) -> Project:
        return load(self.config)

    @cached_property
    def layout(self) -> LakeLayout:
        """Where its tables are, whatever becomes of its other settings."""
        return layout(self.project)

    def uri(self, name: str) -> str:
        return self.layout.uri(f"shop.{name}")


class Shop(Deployed):
    """Sales by the day, their totals, and the best of these."""

    pipeline: ClassVar[str] = PIPELINE
    positioned: ClassVar[tuple[str, ...]] = POSITIONED

    @classmethod
    def create(cls, folder: Path) -> Self:
        shop = cls(folder)
        shop.define(cls.pipeline)
        shop.committer("auto")
        return shop

    def copy(self, folder: Path, commit: str = "auto") -> Self:
        shutil.copytree(self.folder, folder)
        other = type(self)(folder)
        other.committer(commit)
        return other

    def land(self, number: int, *rows: tuple[str, str | None, str]) -> None:
        """The file of one day, in place of what was there."""
        lines = [f'{{"shop": "{s}", "item": {quoted(i)}, "amount": {a}}}' for s, i, a in rows]
        self.deliver(f"2024-01-{number:02}/sales.json", "\n".join(lines))

    def run(self, *intervals: Interval) -> list[str]:
        project = self.project
        said: list[str] = []
        run(
            Spark(project.spark),
            project,
            project.pipelines["shop"],
            intervals,
            on_step=lambda report: said.append(f"{report.table} {report.outcome}"),
        )
        return said

    def ingest(self, interval: Interval) -> None:
        """Only the source is brought up to date."""
        project = self.project
        sales = project.graph.table("sales")
        list(deliver(Spark(project.spark), project, sales, Run("test"), [interval]))

    def rows(self, name: str) -> Counter[Any]:
        """The rows of a table; of notes those that stand, for two deliveries at once leave both."""
        uri = self.uri(name)
        rows = notes(uri) if name == INTERVALS else stored_rows(open_table(uri))
        return counted({c: v for c, v in row.items() if c not in PASSING} for row in rows)

    def commits(self, name: str) -> list[Any]:
        """What each commit that changed rows did to them, in order."""
        feed = self.feed(name)
        changes: dict[int, Counter[Any]] = {}
        for change in feed:
            row = {c: v for c, v in change.items() if not c.startswith("_commit")}
            changes.setdefault(change["_commit_version"], Counter())[frozen(row)] += 1
        return [changes[version] for version in sorted(changes)]

    def feed(self, name: str) -> list[dict[str, Any]]:
        reader = open_table(self.uri(name)).load_cdf(starting_version=0)
        rows: list[dict[str, Any]] = pa.table(reader.read_all()).to_pylist()
        return rows

    def heads(self) -> dict[str, int]:
        return {name: open_table(self.uri(name)).version() for name in self.positioned}

    def state(self) -> dict[str, Any]:
        """All that must not depend on what happened on the way."""
        rows = {name: self.rows(name) for name in (*self.positioned, *NOTES)}
        commits = {name: self.commits(name) for name in self.positioned}
        return {"rows": rows, "commits": commits}

    def check(self) -> None:
        """What holds of every lake, also of one that a crash has left."""
        project = self.project
        for table in project.graph.tables.values():
            found = faults(project, table)
            assert not any(found.values()), found
        for name in self.positioned:
            if is_table(self.uri(name)):
                every = open_table(self.uri(name)).version() + 1
                assert len(positions(self.uri(name))) == every, f"{name}: who has committed there?"


def quoted(text: str | None) -> str:
    return "null" if text is None else f'"{text}"'


FIRST: Sequence[tuple[str, str | None, str]] = [
    ("a", "tea", "3.00"),
    ("a", "tea", "3.00"),
    ("a", "oil", "5.50"),
    ("a", "jam", "1.25"),
    ("b", "tea", "2.00"),
    ("b", None, "9.00"),
]
CORRECTED: Sequence[tuple[str, str | None, str]] = [
    ("a", "tea", "3.00"),
    ("a", "oil", "0.50"),
    ("a", "jam", "1.25"),
    ("c", "nut", "7.77"),
    (("b"), None, "9.00"),
    ("c", None, "1.00"),
]


def mended(shop: Shop, undisturbed: dict[str, Any]) -> None:
    """Run again; then the lake is as if nothing had happened, and a third run adds nothing."""
    shop.check()
    shop.run(day(1))
    shop.check()
    assert shop.state() == undisturbed
    heads = shop.heads()
    assert {outcome.split()[1] for outcome in shop.run(day(1))} == {"unchanged"}
    assert shop.heads() == heads


def attempt(call: Any) -> Any:
    """The name of the error, if it ends in one of ours."""
    try:
        return call()
    except SluiceError as error:
        return type(error).__name__
