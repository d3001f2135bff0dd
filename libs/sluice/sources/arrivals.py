"""Arrivals at a source since its last run, appended to `<source>__arrivals` exactly once.

For files the table keeps only names. The files are read at the gate, so a corrected file can pass.
A file is new if the table does not name it yet; the table is its own record and needs no
checkpoint. For Delta tables it keeps the rows. Structured Streaming finds them; Delta's
own sink appends them, one transaction per micro-batch. ARRIVED is the micro-batch's own time, later
than any before it. If the clock was set back, ARRIVED continues from the last one.
"""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from sluice.changes.diff import CHANGE
from sluice.declare.table import Table
from sluice.delta.log.position import Head, Position, head
from sluice.delta.log.times import CUT, not_before
from sluice.delta.notes.arrow import read_table
from sluice.delta.places.lake import LakeLayout
from sluice.delta.places.walk import LandedFile
from sluice.delta.reading.table import create
from sluice.delta.writing.checkpoint import has_written, query_id
from sluice.delta.writing.commit import commit_arrow
from sluice.engine.advance import Run
from sluice.errors import CheckpointLost, QualityStop
from sluice.gate.rules.sql import field_name
from sluice.language.internal import ARRIVALS
from sluice.sources.spec import Source

CHECKPOINT = "checkpoint"
ARRIVED = "_sluice_arrived"
FILES = ("json", "csv", "parquet")
MICROS = pa.timestamp("us", "UTC")
OF_FEED = ("change_type", "commit_version", "commit_timestamp")  # their names in `schema`
_NOTED = pa.schema({"path": pa.string(), ARRIVED: MICROS})
_LISTING = StructType(
    [
        StructField("path", StringType()),
        StructField("length", LongType()),
        StructField("modified", TimestampType()),
        StructField(ARRIVED, TimestampType()),
    ]
)


@dataclass(frozen=True)
class Stream:
    """Stream of a source: the path it is read from, its arrivals table and its checkpoint."""

    table: Table
    spec: Source
    path: str
    uri: str
    checkpoint: str

    @classmethod
    def of(cls, table: Table, spec: Source, path: str, lake: LakeLayout) -> "Stream":
        uri, checkpoint = (lake.uri(table.id, suffix) for suffix in (ARRIVALS, CHECKPOINT))
        return cls(table, spec, path, uri, checkpoint)

    def check(self) -> tuple[str, ...]:
        """Return warnings. Raises CheckpointLost if its loss would make rows count twice."""
        at = head(self.uri)
        if at is None or not at.is_filled or self.spec.format in FILES:
            return ()
        query = query_id(self.checkpoint)
        if query and has_written(self.uri, query):
            return ()
        what = (
            f"{self.table.id}: the checkpoint {self.checkpoint} is lost, or is not the one that "
            "its arrivals were read by"
        )
        if not self.spec.key:
            raise CheckpointLost(
                f"{what}; without a key, all that is still there would count a second time",
                hint="bring it back; or move the source's tables away, and read everything again",
            )
        return (f"{what}; all that is still there is read again",)

    def note(self, files: Iterable[LandedFile], run: Run) -> None:
        """Append the files that are not known yet. Starts no Spark. Raises LostRace."""
        before = head(self.uri)
        noted = read_table(self.uri) if before else _NOTED.empty_table()
        known = {file_of(path) for path in noted["path"].to_pylist()}
        fresh = [file for file in files if file.uri not in known]
        if not fresh:
            return
        before = before or self._create(_LISTING)
        last = pc.max(noted[ARRIVED]).as_py()
        at = datetime.now(UTC) + timedelta(microseconds=self._behind(last))
        rows = pa.Table.from_pydict(
            {
                "path": [file.uri for file in fresh],
                "length": [file.size for file in fresh],
                "modified": pa.array([f.modified // 1000 for f in fresh], MICROS),
                ARRIVED: pa.array([at] * len(fresh), MICROS),
                CHANGE: ["insert"] * len(fresh),
            }
        )
        commit_arrow(before, rows, ["path"], self._position(before, run))

    def receive(self, session: SparkSession, run: Run) -> None:
        """Append everything that has arrived by now, and return once it is stored."""
        before = head(self.uri)
        last = not_before(self.uri, before.version, ARRIVED) if before else None
        now = f"current_timestamp() + INTERVAL {self._behind(last)} MICROSECONDS"
        arriving = self._arriving(session).selectExpr("*", f"{now} AS {ARRIVED}")
        before = before or self._create(arriving.schema)
        position = self._position(before, run)
        writer = arriving.writeStream.format("delta").outputMode("append")
        query = (
            writer.option("checkpointLocation", self.checkpoint)
            .option("userMetadata", position.to_json())
            .trigger(availableNow=True)
            .start(self.uri)
        )
        query.awaitTermination()

    def _behind(self, last: datetime | None) -> int:
        """Return the microseconds by which the clock is behind the latest arrival."""
        behind = last + 2 * CUT - datetime.now(UTC) if last else timedelta()
        return max(behind // timedelta(microseconds=1), 0)

    def _arriving(self, session: SparkSession) -> DataFrame:
        reader = session.readStream.format(self.spec.format)
        found = reader.options(**self.spec.options).load(self.path)
        known = {c[1:] if c[1:] in OF_FEED else c: c for c in found.columns}
        if missing := [c for c in self.spec.of_files if c not in known]:
            raise QualityStop(
                f"{self.table.id}: {self.path} lacks the declared column(s) {', '.join(missing)}; "
                f"it has {', '.join(known)}"
            )
        version = "`_commit_version`" if "commit_version" in known else "0L"
        columns = (f"{field_name(known[n])} AS `{c}`" for n, c in self.spec.of_files.items())
        return found.selectExpr(*columns, f"{version} AS _sluice_version")

    def _create(self, schema: StructType) -> Head:
        return create(self.uri, schema, Position(0, uuid.uuid4().hex, "create"))

    def _position(self, before: Head, run: Run) -> Position:
        return Position(before.next_batch, uuid.uuid4().hex, "arrival", run=run.id)


def file_of(path: str) -> str:
    """Return the file that an arrival's path names; Spark wrote some paths as `file:/x`."""
    return path.removeprefix("file:") if path[5:7] != "//" else path
