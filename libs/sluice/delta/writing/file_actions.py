"""Files as actions of a commit: one that has come, one whose rows are marked, one that has gone.

`changes` is false for upkeep: rows only move, and the change feed does not show it.
"""

import json
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from sluice.delta.log.actions import Action
from sluice.delta.log.vectors import vector_of
from sluice.delta.writing.encoding import repeated
from sluice.delta.writing.statistics import GROUP_ROWS, has_exact_statistics, statistics_of


def come(folder: str, rows: pa.Table, *, changes: bool, like: Action | None = None) -> Action:
    """Write rows to a file of the table in a folder; return its action.

    `like`: a file of the same partition.
    """
    place = like["path"].rpartition("/")[0] if like else ""
    name = f"part-00000-{uuid.uuid4()}.snappy.parquet"
    size = written(folder, unquote(f"{place}/{name}" if place else name), rows)
    return {
        "add": {
            "path": f"{place}/{name}" if place else name,
            "partitionValues": dict(like["partitionValues"]) if like else {},
            "size": size,
            "modificationTime": now(),
            "dataChange": changes,
            "stats": json.dumps(statistics_of(rows)),
        }
    }


def marked(file: Action, gone: BitMap64, *, changes: bool) -> Action:
    """Return the action of a file with all rows marked that are no longer there."""
    statistics = json.dumps({**json.loads(file["stats"]), "tightBounds": False})
    vector = vector_of(gone)
    changed = {"dataChange": changes, "stats": statistics, "deletionVector": vector}
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
        row_group_size=GROUP_ROWS,
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
    """Return the time in milliseconds, as the log has it."""
    return int(time.time() * 1000)
