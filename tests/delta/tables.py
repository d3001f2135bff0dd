"""Small tables with positions, and what is asked of them: rows, feeds, what the log says."""

import math
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql.types import StructType
from tests.support.lake import stored_rows

from sluice.changes import CHANGE
from sluice.delta.log.opened import open_version
from sluice.delta.log.position import Head, Pin, Position, head
from sluice.delta.reading.local import spark_schema
from sluice.delta.writing.commit import (
    Committed,
    commit_arrow,
    commit_position,
    create,
)
from sluice.delta.writing.merge import SparkCommit, changelog_counts
from sluice.limits import Limits
from sluice.spark.session import RUNTIME_CONF, SMALL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]
Change = tuple[str, Row]
Commit = Callable[..., Committed]
ID_AND_V = StructType().add("id", "integer").add("v", "string")
WITH_P = StructType(list(ID_AND_V.fields)).add("p", "integer")
LARGE = Limits(merged_bytes=-1, marked_share=1_000)
ADDED = ("_change_type", "_commit_version", "_commit_timestamp")


@dataclass
class Small:
    """One table; `write` is one of the two committers, with its session bound."""

    uri: str
    key: Sequence[str]
    write: Commit

    @classmethod
    def create(
        cls,
        folder: Path | str,
        columns: str | StructType,
        key: Sequence[str],
        write: Commit,
        **options: Any,
    ) -> "Small":
        """`columns` as SQL, which only a running Spark reads, or as they are."""
        uri = f"{folder}/table-{uuid.uuid4().hex[:8]}"
        schema = StructType.fromDDL(columns) if isinstance(columns, str) else columns
        create(uri, schema, a_position(0, kind="create"), **options)
        return cls(uri, key, write)

    @property
    def head(self) -> Head:
        found = head(self.uri)
        assert found is not None
        return found

    def commit(self, *changes: Change, before: Head | None = None, **position: Any) -> Committed:
        before = before or self.head
        batch = position.pop("batch", before.next_batch)
        return self.write(before, self.changelog(changes), self.key, a_position(batch, **position))

    def position_only(self, before: Head | None = None, **position: Any) -> Committed:
        before = before or self.head
        return commit_position(before, a_position(before.next_batch, **position))

    def changelog(self, changes: Sequence[Change]) -> pa.Table:
        schema = pa.schema(open_version(self.uri).schema().to_arrow())
        rows = [{**row, CHANGE: change} for change, row in changes]
        return pa.Table.from_pylist(rows, schema.append(pa.field(CHANGE, pa.string())))

    def rows(self, version: int | None = None) -> list[Row]:
        return in_order(stored_rows(DeltaTable(self.uri, version=version)))

    def feed(self, version: int) -> list[Change]:
        """(change type, row) of one commit, in order."""
        reader = DeltaTable(self.uri).load_cdf(
            starting_version=version, ending_version=version, allow_out_of_range=True
        )
        return changes_of(pa.table(reader.read_all()).to_pylist())

    def versions(self) -> list[int]:
        return [int(entry["version"]) for entry in DeltaTable(self.uri).history()]


def for_small_batches(session: "SparkSession") -> "SparkSession":
    """That session, set up as a small batch's is."""
    for name, value in {**RUNTIME_CONF, **SMALL}.items():
        session.conf.set(name, value)
    return session


def by_spark(session: "SparkSession") -> Commit:
    """`SparkCommit` called as `commit_arrow` is."""

    def commit(before: Head, rows: pa.Table, key: Sequence[str], position: Position) -> Committed:
        schema = spark_schema(open_version(before.uri, before.version)).add(CHANGE, "string")
        frame = session.createDataFrame(rows, schema)
        counts = changelog_counts(frame)
        return SparkCommit(session, before, position, key).changelog(frame, counts)

    return commit


def by_marking(session: "SparkSession") -> Commit:
    """`commit_arrow` to a table that counts as large."""
    return partial(commit_arrow, limits=LARGE)


def by_delta_rs(session: "SparkSession") -> Commit:
    return commit_arrow


def a_position(batch: int, **given: Any) -> Position:
    attempt = given.pop("attempt", uuid.uuid4().hex)
    return Position(batch, attempt, given.pop("kind", "batch"), **given)


def pins(**versions: int) -> Mapping[str, Pin]:
    return {name: Pin(f"id of {name}", version) for name, version in versions.items()}


def changes_of(feed: Sequence[Row]) -> list[Change]:
    found = [(r["_change_type"], {c: v for c, v in r.items() if c not in ADDED}) for r in feed]
    return sorted(found, key=lambda change: repr((change[0], plain(change[1]))))


def in_order(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: repr(plain(row)))


def plain(value: Any) -> Any:
    """Comparable by `==` and by `repr`: NaN and -0.0 differ from other numbers."""
    if isinstance(value, Mapping):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else repr(value)
    return bytes(value) if isinstance(value, bytearray) else value
