"""Files that have arrived at a source since its last run, noted in `<source>__arrivals`.

The table keeps only their names. The files are read at the gate, so a corrected file can pass. A
file is new if the table does not name it yet; the table is its own record and needs no checkpoint.
ARRIVED is the time of a run's note, later than any before it. If the clock was set back, it
continues from the last one.
"""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from sluice.changes.diff import CHANGE
from sluice.declare.table import Table
from sluice.delta.log.position import Head, Position, head
from sluice.delta.log.time_bounds import CUT
from sluice.delta.notes.note_tables import read_table
from sluice.delta.places.lake_layout import LakeLayout
from sluice.delta.places.landed_files import LandedFile
from sluice.delta.reading.spark_reads import create
from sluice.delta.writing.commit import commit_arrow
from sluice.engine.advance import Run
from sluice.language.internal import ARRIVALS
from sluice.sources.spec import Source

ARRIVED = "_sluice_arrived"
MICROS = pa.timestamp("us", "UTC")
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
class FileStream:
    """Stream of a source: the path it is read from, and its arrivals table."""

    table: Table
    spec: Source
    path: str
    uri: str

    @classmethod
    def of(cls, table: Table, spec: Source, path: str, lake: LakeLayout) -> "FileStream":
        return cls(table, spec, path, lake.uri(table.id, ARRIVALS))

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

    def _behind(self, last: datetime | None) -> int:
        """Return the microseconds by which the clock is behind the latest arrival."""
        behind = last + 2 * CUT - datetime.now(UTC) if last else timedelta()
        return max(behind // timedelta(microseconds=1), 0)

    def _create(self, schema: StructType) -> Head:
        return create(self.uri, schema, Position(0, uuid.uuid4().hex, "create"))

    def _position(self, before: Head, run: Run) -> Position:
        return Position(before.next_batch, uuid.uuid4().hex, "arrival", run=run.id)


def file_of(path: str) -> str:
    """Return the file that an arrival's path names; Spark wrote some paths as `file:/x`."""
    return path.removeprefix("file:") if path[5:7] != "//" else path
