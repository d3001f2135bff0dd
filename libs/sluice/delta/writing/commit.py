"""Commit a changelog exactly once: rows and position in one commit.

Two committers have one contract: delta-rs here for small changelogs, `SparkCommit` for large ones,
which takes a second or more instead of a tenth. Both number their commits as the table's
batches in Delta's `txn` action. After each commit, the log shows which attempt has won. A diff is
discarded after a lost race, because it was made from an outdated head.
"""

from collections.abc import Sequence
from contextlib import suppress

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from sluice.changes import CHANGE
from sluice.delta.log.opened import keep, open_for_writer
from sluice.delta.log.position import Head, Position
from sluice.delta.places.delta_rs import open_table
from sluice.delta.reading.found import TypeMismatch
from sluice.delta.reading.local import plain
from sluice.delta.writing.filing import by_key
from sluice.delta.writing.marking import commit_marked, is_marked
from sluice.delta.writing.merge import check_applied, merge_arrow
from sluice.delta.writing.own_commits import (
    Committed,
    confirm,
    count_changes,
    fenced,
    fenced_properties,
    result_of,
)
from sluice.delta.writing.statistics import writer_properties
from sluice.limits import Limits


def commit_position(before: Head, position: Position) -> Committed:
    """Make a position-only commit: it consumed changes that alter no row. No file, no feed row."""
    table = open_for_writer(before.uri, before.version)
    unchanged = position.without_change(before.data_version)
    with fenced(before, unchanged) as mine:
        table.create_write_transaction(
            [],
            mode="append",
            schema=table.schema(),
            partition_by=table.metadata().partition_columns,
            commit_properties=fenced_properties(before, mine),
        )
    table.update_incremental()
    keep(before.uri, table)
    return confirm(before, position, Committed(before.version + 1))


def commit_arrow(
    before: Head,
    rows: pa.Table,
    key: Sequence[str],
    position: Position,
    limits: Limits | None = None,
) -> Committed:
    """Commit a small changelog (columns of the table + CHANGE) without Spark.

    Its rows are appended or merged by delta-rs. In a large table, removed rows are marked.

    The commit goes onto exactly the version that `before` names, or raises LostRace.
    """
    done = result_of(before, count_changes(rows[CHANGE]))
    alters = done.changed > done.inserted
    limits = limits or Limits()
    if alters and is_marked(before, rows, key, limits):
        with suppress(TypeMismatch):
            return commit_marked(before, rows, key, position, limits)
    table = open_for_writer(before.uri, before.version)
    columns = [field.name for field in table.schema().fields]
    with fenced(before, position) as mine:
        how = fenced_properties(before, mine)
        if not alters:
            plain = by_key(rows.select(columns), key)
            write_deltalake(
                table,
                plain,
                mode="append",
                commit_properties=how,
                writer_properties=writer_properties(plain.schema),
                target_file_size=_bytes_per_file(plain, table, limits),
            )
        else:
            check_applied(before, done, merge_arrow(table, rows, columns, key, how))
    keep(before.uri, table)
    return confirm(before, position, done)


def _bytes_per_file(rows: pa.Table, table: DeltaTable, limits: Limits) -> int | None:
    """Return the size of files of about `file_rows` rows; None if the rows fit in one or two.

    It is the size in memory: files of values that repeat have more rows.
    """
    if rows.num_rows <= 2 * limits.file_rows or table.metadata().partition_columns:
        return None
    return int(rows.nbytes) * limits.file_rows // int(rows.num_rows)


def overwrite_arrow(
    before: Head, rows: pa.Table, position: Position, partition_by: Sequence[str] | None = None
) -> Committed:
    """Replace the table and its columns whole by delta-rs, like `SparkCommit.overwrite`."""
    table = open_table(before.uri, before.version)
    had = table.metadata().partition_columns
    with fenced(before, position) as mine:
        write_deltalake(
            table,
            plain(rows),
            mode="overwrite",
            schema_mode="overwrite",
            partition_by=list(had if partition_by is None else partition_by),
            commit_properties=fenced_properties(before, mine),
            writer_properties=writer_properties(plain(rows).schema),
        )
    return confirm(before, position, Committed(before.version + 1, inserted=rows.num_rows))
