"""Small tables that hold what Sluice notes down: rows replaced or appended without Spark."""

from collections.abc import Sequence

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake


def append_rows(uri: str, rows: pa.Table, partition_by: Sequence[str] = ()) -> None:
    """Add rows to the table at `uri`, which is made if there is none."""
    if rows.num_rows:
        write_deltalake(uri, rows, mode="append", partition_by=list(partition_by) or None)


def replace_rows(uri: str, rows: pa.Table, predicate: str) -> None:
    """Put `rows` in place of those that `predicate` selects; nothing is written for nothing."""
    if not DeltaTable.is_deltatable(uri):
        append_rows(uri, rows)
        return
    if rows.num_rows or _any(uri, predicate):
        write_deltalake(uri, rows, mode="overwrite", predicate=predicate)


def _any(uri: str, predicate: str) -> bool:
    from deltalake import QueryBuilder

    found = QueryBuilder().register("t", DeltaTable(uri))
    count = found.execute(f"SELECT count(*) AS n FROM t WHERE {predicate}").read_all()
    return bool(pa.table(count)["n"][0].as_py())
