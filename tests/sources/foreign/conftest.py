"""A table that somebody else writes, and a source that follows it."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession
from tests.support.lake import Row, counted, folded
from tests.support.landed import RUN, Landed

from sluice.engine import BatchReport
from sluice.operate.delivering import replay, to_replay
from sluice.operate.run import deliver
from sluice.sources.versions import VersionRange

FEED = {"delta.enableChangeDataFeed": "true"}
SOURCE = """\
sources:
  events:
    delta: {{path: crm{bounds}}}
    schema: "{schema}"
{extra}"""
TYPES = {"id": pa.int64(), "v": pa.int64(), "part": pa.string()}


class Crm:
    """Somebody else's table, written by delta-rs."""

    def __init__(self, path: Path):
        self.path = str(path)

    @property
    def table(self) -> DeltaTable:
        return DeltaTable(self.path)

    def create(self, *rows: Row, feed: bool = False, by: Iterable[str] = ()) -> "Crm":
        self.write(rows, "overwrite", configuration=FEED if feed else {}, partition_by=list(by))
        return self

    def append(self, *rows: Row) -> None:
        self.write(rows, "append")

    def write(self, rows: Iterable[Row], mode: str, **how: Any) -> None:
        given = list(rows)
        names = [n for n in TYPES if n in ("id", "v") or any(n in row for row in given)]
        schema = pa.schema([(name, TYPES[name]) for name in names])
        how = {"schema_mode": "merge", **how}
        write_deltalake(self.path, pa.Table.from_pylist(given, schema), mode=mode, **how)  # type: ignore[call-overload]

    def merge(self, *rows: Row) -> None:
        schema = self.table.to_pyarrow_dataset().schema
        source = pa.Table.from_pylist(list(rows), pa.schema(schema))
        merger = self.table.merge(source, "t.id = s.id", source_alias="s", target_alias="t")
        merger.when_matched_update_all().when_not_matched_insert_all().execute()

    def rows(self, *columns: str) -> Counter[tuple[Any, ...]]:
        found = self.table.to_pyarrow_table().select(list(columns)).to_pylist()
        return Counter(tuple(row.values()) for row in found)

    def digest(self) -> Mapping[str, str]:
        """A digest of each of its files."""
        files = (path for path in Path(self.path).rglob("*") if path.is_file())
        return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


class Following(Landed):
    """A lake with one source, `events`, that follows a table."""

    crm: Crm

    def take(self) -> list[BatchReport]:
        return list(deliver(self.spark, self.project, self.table("events"), RUN, ()))

    def replay(self) -> list[BatchReport]:
        found = to_replay(self.project, self.table("events"))
        return list(replay(self.spark, self.project, self.table("events"), found, RUN))

    def declared_without(self, line: str) -> str:
        text = (self.folder / "config" / "pipelines" / "shop.yaml").read_text()
        assert line in text
        return text.replace(line, "")

    def values(self) -> Counter[tuple[Any, ...]]:
        return Counter(tuple(row.values()) for row in self.rows("events"))

    def place(self) -> VersionRange:
        found = VersionRange.of(self.head("events__deliveries"), "shop.events")
        assert found
        return found

    def check(self) -> None:
        """Its rows are the table's, and its feed adds up to them."""
        assert self.values() == self.crm.rows(*self.table("events").columns)
        assert folded(self.feed("events")) == counted(self.stored("events"))


Made = Callable[..., Following]


@pytest.fixture
def following(tmp_path: Path, spark: SparkSession) -> Made:
    """A source that follows the table `crm` in its project's folder."""

    def made(
        schema: str = "id BIGINT, v BIGINT", *, extra: str = "", bounds: str = ""
    ) -> Following:
        lines = "".join(f"    {line}\n" for line in extra.splitlines())
        text = SOURCE.format(schema=schema, extra=lines, bounds=bounds)
        lake = Following(tmp_path, text, spark)
        lake.crm = Crm(tmp_path / "crm")
        return lake

    return made
