"""Small tables that hold Sluice's notes: rows are replaced or appended without Spark.

They have no position. Two writers at once take turns; one that is always late raises LostRace.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, TypeVar

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, QueryBuilder, write_deltalake
from deltalake.exceptions import DeltaError
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from sluice.delta.log.continuity import lost_race_of, repeat_after_races
from sluice.delta.log.files import active_files, as_table, file_name
from sluice.delta.log.opened import (
    CHECKPOINTS,
    exists,
    keep,
    newest_version,
    open_for_writer,
    open_version,
)
from sluice.delta.places.delta_rs import open_table, options
from sluice.delta.places.lake_layout import note_format
from sluice.delta.places.table_files import check_exclusive
from sluice.delta.writing.own_commits import writer_properties

ATTEMPTS = 10
RETENTION_HOURS = 7 * 24
PROPERTIES = {"delta.enableExpiredLogCleanup": "false", **CHECKPOINTS}

Filter = tuple[str, str, Any]
TableEdit = Callable[[pa.Table], pa.Table]
T = TypeVar("T")


def read_rows(uri: str, filters: Sequence[Filter] | None = None) -> list[dict[str, Any]]:
    """Return the rows of the table at `uri` that meet all filters; none if there is no table."""
    if not exists(uri):
        return []
    return list(read_table(uri, filters).to_pylist())


def read_table(uri: str, filters: Sequence[Filter] | None = None) -> pa.Table:
    """Return the rows of the table at `uri` that meet all filters, as Arrow."""
    return _rows_of(open_version(uri), uri, filters)


def _rows_of(table: DeltaTable, uri: str, filters: Sequence[Filter] | None = None) -> pa.Table:
    files = files_of(uri)
    if files is None or filters:
        return table.to_pyarrow_table(filesystem=files, filters=list(filters) if filters else None)
    from pyarrow.dataset import dataset  # with pandas, unless it is hidden

    names = [file_name(path) for path in active_files(table)["path"].to_pylist()]
    return dataset(names, pa.schema(table.schema()), "parquet", files).to_table()


def files_of(uri: str) -> SubTreeFileSystem | None:
    """Return a file system that reads local files without Python; None if Python is needed.

    A thread of Arrow aborts the process if it releases a Python file after the interpreter has
    ended.
    """
    return None if "://" in uri else SubTreeFileSystem(uri, LocalFileSystem())


def append_rows(uri: str, rows: pa.Table) -> None:
    """Add rows to the table at `uri`; create it if there is none."""
    if rows.num_rows:
        _in_turn(uri, lambda: _write(uri, rows, mode="append"))


def create_empty(uri: str, schema: pa.Schema) -> None:
    """Create the table at `uri` if there is none."""
    if not exists(uri):
        _write(uri, schema.empty_table(), mode="ignore")


def count_rows(uri: str, predicate: str) -> int:
    """Count the rows of the table at `uri` that the predicate selects; 0 if there is no table."""
    if not exists(uri):
        return 0
    found = QueryBuilder().register("t", open_version(uri))
    count = found.execute(f"SELECT count(*) AS n FROM t WHERE {predicate}").read_all()
    return int(as_table(count)["n"][0].as_py())


def replace_rows(uri: str, rows: pa.Table, predicate: str) -> None:
    """Put `rows` in place of those that `predicate` selects; write nothing if there are neither.

    They replace whatever rows then exist; use `change_rows` for rows computed from these.
    """

    def replace() -> None:
        if rows.num_rows and not exists(uri):
            _write(uri, rows, mode="error")
        elif rows.num_rows or count_rows(uri, predicate):
            _write(uri, rows, mode="overwrite", predicate=predicate)

    _in_turn(uri, replace)


def take_rows(uri: str, other: str) -> None:
    """Make the table at `uri` hold the rows of the one at `other`; none if there is no other."""
    if exists(other):
        replace_rows(uri, read_table(other), "true")
    else:
        delete_rows(uri, "true")


def delete_rows(uri: str, predicate: str) -> None:
    """Delete the rows that `predicate` selects; write nothing if there are none."""

    def delete() -> None:
        if count_rows(uri, predicate):
            table = open_for_writer(uri)
            table.delete(predicate)
            keep(uri, table)

    _in_turn(uri, delete)


def change_rows(uri: str, change: TableEdit, filters: Sequence[Filter] = ()) -> tuple[int, int]:
    """Replace the rows that meet all filters by what `change` returns for them.

    Only the version passed to `change` is replaced; after a lost race, `change` runs again. Return
    the numbers of old and new rows; write nothing if they are the same.
    """

    def write() -> tuple[int, int]:
        table = open_for_writer(uri)
        before = _rows_of(table, uri, filters)
        after = change(before)
        if after.equals(before):
            return 0, 0
        _commit_rows(uri, table, after, " AND ".join(map(_as_sql, filters)) or None)
        return before.num_rows, after.num_rows

    return _in_turn(uri, write) if exists(uri) else (0, 0)


def tidy_rows(uri: str, many: int, choose: TableEdit) -> None:
    """Merge a table of `many` files or more into one file, of the rows that `choose` returns."""

    def tidy() -> None:
        if len(open_version(uri).file_uris()) >= many:
            table = open_for_writer(uri)
            _commit_rows(uri, table, choose(_rows_of(table, uri)), None)
            open_table(uri).vacuum(RETENTION_HOURS, dry_run=False)

    if exists(uri):
        _in_turn(uri, tidy)


def clean_rows(uri: str, many: int, hours: int = RETENTION_HOURS) -> int:
    """Merge many files, and delete those not needed for the last `hours`; return how many.

    Log entries older than the log's retention are deleted, too. If somebody writes meanwhile,
    nothing is done.
    """
    if not exists(uri):
        return 0
    with suppress(DeltaError):
        table = open_table(uri)
        if len(table.file_uris()) >= many:
            table.optimize.compact(commit_properties=CommitProperties(max_commit_retries=0))
        if gone := table.vacuum(hours, enforce_retention_duration=False, full=True):
            table.vacuum(hours, dry_run=False, enforce_retention_duration=False, full=True)
            table.create_checkpoint()
            table.cleanup_metadata()
        return len(gone)
    return 0


def _commit_rows(uri: str, table: DeltaTable, rows: pa.Table, predicate: str | None) -> None:
    once = CommitProperties(max_commit_retries=0)
    _commit(uri, table, rows, mode="overwrite", predicate=predicate, commit_properties=once)


def _as_sql(condition: Filter) -> str:
    column, operator, value = condition
    text = (value.isoformat() if isinstance(value, datetime) else str(value)).replace("'", "''")
    return f"\"{column}\" {operator} '{text}'"


def _write(uri: str, rows: pa.Table, **how: Any) -> None:
    if exists(uri):
        _commit(uri, open_for_writer(uri), rows, **how)
    else:
        note_format(uri)
        write_deltalake(
            uri,
            rows,
            configuration=PROPERTIES,
            writer_properties=writer_properties(rows.schema),
            storage_options=options(uri),
            **how,
        )


def _commit(uri: str, table: DeltaTable, rows: pa.Table, **how: Any) -> None:
    write_deltalake(table, rows, writer_properties=writer_properties(rows.schema), **how)
    keep(uri, table)


def _in_turn(uri: str, write: Callable[[], T]) -> T:
    """Return what `write` returns; call it again if another writer committed first."""
    check_exclusive(uri)

    def write_once() -> T:
        with lost_race_of(uri, newest_version(uri)):
            return write()

    return repeat_after_races(write_once, ATTEMPTS)
