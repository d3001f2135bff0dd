"""What has arrived at a source since its last run, appended to `<source>__arrivals` exactly once.

Structured Streaming finds it and Delta's own sink appends it, one transaction a micro-batch: of
files their names (they are read at the gate, so that a mended file can pass), of Delta tables and
Kafka the rows themselves. ARRIVED is the micro-batch's own time, later than any before it: where
the clock was set back, it goes on from there.
"""

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pyspark.sql import DataFrame, SparkSession

from sluice.errors import CheckpointLost, QualityStop
from sluice.runtime.batch import Run
from sluice.specs.source import Source
from sluice.specs.table import Table
from sluice.storage.checkpoint import has_written, query_id
from sluice.storage.lake import LakeLayout
from sluice.storage.position import Head, Position, head
from sluice.storage.table import create
from sluice.storage.times import CUT, not_before

ARRIVALS, CHECKPOINT = "arrivals", "checkpoint"
ARRIVED = "_sluice_arrived"
FILES = ("json", "csv", "parquet")
OF_FEED = ("change_type", "commit_version", "commit_timestamp")  # named so in `schema`
_LISTING = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"


@dataclass(frozen=True)
class Stream:
    """A source's stream: from where it is read, and where what arrives is kept."""

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
        """Warnings. Raises CheckpointLost if a lost checkpoint would make rows count twice."""
        at = head(self.uri)
        if at is None or not at.is_filled:
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
                hint="bring it back; or move the source's tables away, and read everything anew",
            )
        return (f"{what}; all that is still there is read again",)

    def receive(self, session: SparkSession, run: Run) -> None:
        """Append what has arrived by now, and return when it is there."""
        before = head(self.uri)
        now = f"current_timestamp() + INTERVAL {self._behind(before)} MICROSECONDS"
        arriving = self._arriving(session).selectExpr("*", f"{now} AS {ARRIVED}")
        before = before or self._create(arriving)
        position = Position(before.next_batch, uuid.uuid4().hex, "arrival", run=run.id)
        writer = arriving.writeStream.format("delta").outputMode("append")
        query = (
            writer.option("checkpointLocation", self.checkpoint)
            .option("userMetadata", position.to_json())
            .trigger(availableNow=True)
            .start(self.uri)
        )
        query.awaitTermination()

    def _behind(self, at: Head | None) -> int:
        """By how many microseconds the clock is behind what has arrived last."""
        last = not_before(self.uri, at.version, ARRIVED) if at else None
        behind = last + 2 * CUT - datetime.now(UTC) if last else timedelta()
        return max(behind // timedelta(microseconds=1), 0)

    def _arriving(self, session: SparkSession) -> DataFrame:
        if self.spec.format in FILES:
            reader = session.readStream.format("binaryFile").schema(_LISTING)
            found = reader.option("recursiveFileLookup", "true").load(self.path)
            return found.selectExpr("path", "length", "modificationTime AS modified")
        reader = session.readStream.format(self.spec.format)
        if self.spec.format == "kafka":
            options = {"startingOffsets": "earliest", **self.spec.options}
            found = reader.options(**options).load()
            return found.selectExpr("CAST(value AS STRING)", "topic", "partition", "offset")
        found = reader.options(**self.spec.options).load(self.path)
        known = {c[1:] if c[1:] in OF_FEED else c: c for c in found.columns}
        if missing := [c for c in self.spec.types if c not in known]:
            raise QualityStop(
                f"{self.table.id}: {self.path} lacks the declared column(s) {', '.join(missing)}; "
                f"it has {', '.join(known)}"
            )
        version = "`_commit_version`" if "commit_version" in known else "0L"
        columns = (f"`{known[c]}` AS `{c}`" for c in self.spec.types)
        return found.selectExpr(*columns, f"{version} AS _sluice_version")

    def _create(self, arriving: DataFrame) -> Head:
        return create(self.uri, arriving.schema, Position(0, uuid.uuid4().hex, "create"))
