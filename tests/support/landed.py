"""A lake whose sources and dimensions are delivered for real: files land and are ingested."""

import gzip
import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from tests.support.lake import Lake, Row

from sluice.delta.intervals import Note, deliveries
from sluice.delta.places.lake_layout import layout
from sluice.dimensions.load import load
from sluice.engine import BatchReport
from sluice.engine.advance import Run
from sluice.language.interval import Interval
from sluice.operate.rebuild import rebuild
from sluice.operate.run import deliver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Content = bytes | str | pa.Table | list[Row]
START = datetime(2024, 1, 1, tzinfo=UTC)
RUN = Run("test")
ALLOWED = Run("test", allow_empty=True)


class Landed(Lake):
    """`events` is the source's name, `things` the dimension's, wherever none is given."""

    def __init__(self, folder: Path, declared: str, session: "SparkSession", **spark: Any):
        super().__init__(folder, declared, session, **spark)
        self.landing = folder / "landing"

    def declare(self, text: str) -> None:
        """Another configuration of the same lake: the pipeline's whole file."""
        (self.folder / "config" / "pipelines" / "shop.yaml").write_text(text)
        self.project = self.loaded()

    def land(self, folder: str, **files: Content) -> None:
        """These files, and no others, in a folder of the landing zone; `a_csv` is a.csv."""
        target = self.landing / folder
        for old in target.rglob("*") if target.exists() else ():
            if old.is_file():
                old.unlink()
        target.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            write(target / name.replace("_", "."), content)

    def land_beside(self, folder: str, files: Mapping[str, Content]) -> None:
        """Further files, under exactly these names."""
        for name, content in files.items():
            write(self.landing / folder / name, content)

    def deliver(self, nth: int = 0, name: str = "events", run: Run = RUN) -> list[BatchReport]:
        """Ingest the nth day."""
        return self.ingest(day(nth), name, run)

    def ingest(self, interval: Interval, name: str = "events", run: Run = RUN) -> list[BatchReport]:
        return list(deliver(self.spark, self.project, self.table(name), run, [interval]))

    def load(self, name: str = "things") -> BatchReport:
        (report,) = load(self.spark, self.project, self.table(name), RUN)
        return report

    def rebuild(self, name: str = "events", **how: bool) -> dict[str, BatchReport]:
        """By table, in order."""
        reports = rebuild(self.spark, self.project, self.table(name), RUN, **how)
        return {report.table.removeprefix("shop."): report for report in reports}

    def changes(self, name: str, after: int) -> list[Row]:
        """What its feed holds of the commits after that version."""
        return [c for c in self.feed(name) if c["_commit_version"] > after]

    def versions(self, *names: str) -> dict[str, int]:
        """The newest version of each table."""
        return {name: DeltaTable(self.uri(name)).version() for name in names}

    def quarantine(self, name: str = "events") -> list[Row]:
        if not DeltaTable.is_deltatable(self.uri(f"{name}__quarantine")):
            return []
        return sorted(self.stored(f"{name}__quarantine"), key=lambda r: (r["reason"], r["raw"]))

    def noted(self, name: str = "events") -> dict[Interval, tuple[int, int, int]]:
        """Rows read, accepted and quarantined of each interval."""
        found: Iterable[Note] = deliveries(layout(self.project).uri(f"shop.{name}", "intervals"))
        return {d.interval: (d.rows_read, d.rows_accepted, d.rows_quarantined) for d in found}


NewLanded = Callable[..., Landed]


def day(nth: int, days: int = 1) -> Interval:
    start = START + timedelta(days=nth)
    return Interval(start, start + timedelta(days=days))


def folder_of(nth: int) -> str:
    return f"{START + timedelta(days=nth):%Y-%m-%d}"


def write(path: Path, content: Content) -> None:
    """A file of those bytes, that text, that table, or those rows as JSON lines or Parquet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, list) and path.suffix == ".parquet":
        content = pa.Table.from_pylist(content)
    if isinstance(content, list):
        content = lines(content)
    if isinstance(content, pa.Table):
        pq.write_table(content, path)
        return
    raw = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)


def lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row, default=str) + "\n" for row in rows)
