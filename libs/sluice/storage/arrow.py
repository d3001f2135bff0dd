"""Small tables that hold what Sluice notes down: rows replaced or appended without Spark.

They have no position. Two writers at once take turns; one that is always late raises LostRace.
"""

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from sluice.errors import LostRace
from sluice.storage.conflicts import lost_race_of
from sluice.storage.statistics import writer_properties

ATTEMPTS = 10
PROPERTIES = {"delta.enableExpiredLogCleanup": "false"}


def read_rows(uri: str) -> list[dict[str, Any]]:
    """All rows of the table at `uri`; none if there is no table."""
    if not DeltaTable.is_deltatable(uri):
        return []
    rows: list[dict[str, Any]] = DeltaTable(uri).to_pyarrow_table().to_pylist()
    return rows


def append_rows(uri: str, rows: pa.Table, partition_by: Sequence[str] = ()) -> None:
    """Add rows to the table at `uri`, which is made if there is none."""
    if rows.num_rows:
        _in_turn(uri, lambda: _write(uri, rows, mode="append", partition_by=list(partition_by)))


def create_empty(uri: str, schema: pa.Schema) -> None:
    """Make the table at `uri`, if there is none."""
    if not DeltaTable.is_deltatable(uri):
        _write(uri, schema.empty_table(), mode="ignore")


def count_rows(uri: str, predicate: str) -> int:
    """How many rows of the table at `uri` the predicate selects."""
    return _count(uri, predicate) if DeltaTable.is_deltatable(uri) else 0


def replace_rows(uri: str, rows: pa.Table, predicate: str, *, unless: str = "false") -> None:
    """Put `rows` in place of those that `predicate` selects; nothing is written for nothing.

    Nor is anything where a row meets `unless`.
    """
    _in_turn(uri, lambda: _replace(uri, rows, predicate, unless))


def take_rows(uri: str, other: str) -> None:
    """Make the table at `uri` hold the rows of the one at `other`; none if there is no other."""
    if DeltaTable.is_deltatable(other):
        replace_rows(uri, DeltaTable(other).to_pyarrow_table(), "true")
    else:
        delete_rows(uri, "true")


def delete_rows(uri: str, predicate: str) -> None:
    """Take away the rows that `predicate` selects; nothing is written if there are none."""
    _in_turn(uri, lambda: _delete(uri, predicate))


def _delete(uri: str, predicate: str) -> None:
    if DeltaTable.is_deltatable(uri) and _any(uri, predicate):
        DeltaTable(uri).delete(predicate)


def _replace(uri: str, rows: pa.Table, predicate: str, unless: str) -> None:
    if not DeltaTable.is_deltatable(uri):
        if rows.num_rows:
            _write(uri, rows, mode="error")
    elif not _any(uri, unless) and (rows.num_rows or _any(uri, predicate)):
        _write(uri, rows, mode="overwrite", predicate=predicate)


def _write(uri: str, rows: pa.Table, **how: Any) -> None:
    properties = writer_properties(rows.schema)
    write_deltalake(uri, rows, configuration=PROPERTIES, writer_properties=properties, **how)


def _in_turn(uri: str, write: Callable[[], None]) -> None:
    for attempt in range(1, ATTEMPTS + 1):
        before = DeltaTable(uri).version() if DeltaTable.is_deltatable(uri) else -1
        try:
            with lost_race_of(uri, before):
                write()
        except LostRace:
            if attempt == ATTEMPTS:
                raise
        else:
            return


def _any(uri: str, predicate: str) -> bool:
    return _count(uri, predicate) > 0


def _count(uri: str, predicate: str) -> int:
    found = QueryBuilder().register("t", DeltaTable(uri))
    count = found.execute(f"SELECT count(*) AS n FROM t WHERE {predicate}").read_all()
    return int(pa.table(count)["n"][0].as_py())
