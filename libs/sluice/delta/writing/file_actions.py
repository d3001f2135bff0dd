"""Files as actions of a commit: added, with marked rows, or removed.

`changes` is false for upkeep: rows only move, and the change feed does not show it.
"""

import json
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyroaring import BitMap64

from sluice.delta.log.actions import Action
from sluice.delta.log.vectors import vector_of
from sluice.delta.writing import statistics
from sluice.delta.writing.encoding import repeated
from sluice.delta.writing.statistics import has_exact_statistics, statistics_of

FEED = "_change_data"
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # Delta's word for null in a path


@dataclass(frozen=True)
class Partition:
    """A partition: its folder within the table's, and its values as texts; empty without one."""

    folder: str = ""
    values: Mapping[str, str | None] = field(default_factory=dict)

    @classmethod
    def of(cls, file: Action) -> Self:
        """Return the partition of a file."""
        return cls(file["path"].rpartition("/")[0], dict(file["partitionValues"]))

    def path(self, name: str) -> str:
        """Return the path of a file in the partition."""
        return f"{self.folder}/{name}" if self.folder else name


def by_part(rows: pa.Table, column: str | None) -> Iterator[tuple[Partition, pa.Table]]:
    """Yield the rows of each partition, without the column of whole numbers that names it."""
    if column is None:
        yield Partition(), rows
        return
    ordered, begun = rows.combine_chunks().sort_by(column), 0
    for counted in pc.value_counts(ordered[column]).to_pylist():
        value, count = counted["values"], counted["counts"]
        text = None if value is None else str(value)
        partition = Partition(f"{column}={NO_VALUE if text is None else text}", {column: text})
        yield partition, ordered.slice(begun, count).drop_columns([column])
        begun += count


def come(folder: str, rows: pa.Table, partition: Partition, *, changes: bool) -> Action:
    """Write rows of a partition to a file of the table in a folder; return its action."""
    path = partition.path(f"part-00000-{uuid.uuid4()}.snappy.parquet")
    size = written(folder, unquote(path), rows)
    return {
        "add": {
            "path": path,
            "partitionValues": dict(partition.values),
            "size": size,
            "modificationTime": now(),
            "dataChange": changes,
            "stats": json.dumps(statistics_of(rows)),
        }
    }


def fed(folder: str, rows: pa.Table, partition: Partition) -> Action:
    """Write change data of a partition; return its action."""
    path = f"{FEED}/{partition.path(f'cdc-00000-{uuid.uuid4()}.snappy.parquet')}"
    size = written(folder, unquote(path), rows)
    values = dict(partition.values)
    return {"cdc": {"path": path, "partitionValues": values, "size": size, "dataChange": False}}


def marked(file: Action, gone: BitMap64, *, changes: bool) -> Action:
    """Return the action of a file with all removed rows marked."""
    known = json.dumps({**json.loads(file["stats"]), "tightBounds": False})
    vector = vector_of(gone)
    changed = {"dataChange": changes, "stats": known, "deletionVector": vector}
    return {"add": {**file, **changed}}


def gone(file: Action, *, changes: bool) -> Action:
    """Return the action that removes a file, as it was."""
    known: dict[str, Any] = {k: file[k] for k in ("path", "size", "deletionVector") if k in file}
    values: Mapping[str, Any] = file.get("partitionValues") or {}
    fixed = {"dataChange": changes, "extendedFileMetadata": True, "partitionValues": dict(values)}
    return {"remove": {**known, **fixed, "deletionTimestamp": now()}}


def written(folder: str, name: str, rows: pa.Table) -> int:
    """Write a file of the table in a folder; return its bytes."""
    path = Path(folder, name)
    path.parent.mkdir(exist_ok=True, parents=True)
    pq.write_table(
        rows,
        path,
        row_group_size=statistics.GROUP_ROWS,
        write_statistics=[f.name for f in rows.schema if has_exact_statistics(f.type)],
        use_dictionary=repeated(rows),
        store_schema=False,
        store_decimal_as_integer=True,
    )
    return path.stat().st_size


def rows_of(file: Action) -> int:
    """Return the number of a file's rows, with marked ones."""
    return int(json.loads(file["stats"])["numRecords"])


def now() -> int:
    """Return the time in milliseconds, as in the log."""
    return int(time.time() * 1000)
