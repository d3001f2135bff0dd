"""Commit a changelog exactly once: rows and position in one commit.

Two committers have one contract: delta-rs here for small changelogs, `SparkCommit` for large ones,
which takes a second or more instead of a tenth. Both number their commits as the table's
batches in Delta's `txn` action. After each commit, the log shows which attempt has won. A diff is
discarded after a lost race, because it was made from an outdated head.

In a large table, scattered keys are in every file, and a MERGE would write the whole table. So
removed rows are marked in deletion vectors in the log, and new rows are added in one file. The
change data lies beside it, where every reader of the feed finds it. A file that is small is not
marked but combined with the new rows, so that reads don't open many small files.

Rows are found by their key, of which only the columns are read of all rows. Two keys are equal if
their columns have the same values, null included.

Tables are created here, and get further columns, by a commit each.
"""

import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Schema, write_deltalake
from pyspark.sql.types import StructType

from sluice.changes import CHANGE
from sluice.delta.log import Action
from sluice.delta.log.continuity import lost_race_of
from sluice.delta.log.files import (
    Added,
    RowMask,
    active_files,
    added_files,
    kept_rows,
    rows_left,
    size_of,
)
from sluice.delta.log.opened import CHECKPOINTS, keep, open_for_writer, open_version
from sluice.delta.log.position import CREATE, Head, Position, head_of
from sluice.delta.places.delta_rs import open_table, options
from sluice.delta.places.failpoint import passing
from sluice.delta.places.lake_layout import note_format
from sluice.delta.places.table_files import TableFiles, check_exclusive, may_create, table_files
from sluice.delta.reading.local import arrow_schema, nullable, to_spark_types, types_of
from sluice.delta.reading.row_index import Numbers
from sluice.delta.reading.searching import FileSearch, as_stored, files_of, numbered_rows
from sluice.delta.reading.wanted import (
    ROW,
    Pages,
    TypeMismatch,
    files_far,
    gather,
    is_exact,
    take_found,
)
from sluice.delta.writing.filing import by_key
from sluice.delta.writing.merge import check_applied, merge_arrow
from sluice.delta.writing.own_commits import (
    Committed,
    Partition,
    add_action,
    by_part,
    cdc_action,
    commit_actions,
    commit_info,
    confirm,
    count_changes,
    fenced,
    fenced_properties,
    is_plain,
    now,
    re_add_with_vector,
    remove_action,
    result_of,
    rows_of,
    unfenced_properties,
    vectors_allowed,
    writer_properties,
)
from sluice.language.names import CHANGE_TYPE
from sluice.limits import Limits

PARTED = 8  # times fewer bytes are rewritten in partitions, most of which a small commit leaves

PROPERTIES: Mapping[str, str] = {
    "delta.enableChangeDataFeed": "true",
    "delta.enableDeletionVectors": "false",
    "delta.enableExpiredLogCleanup": "false",
    **CHECKPOINTS,
}

GROW = "grow"


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
    if alters and should_mark(before, rows, key, limits):
        with suppress(TypeMismatch):
            return commit_marked(before, rows, key, position, limits)
    table = open_for_writer(before.uri, before.version)
    columns = [field.name for field in table.schema().fields]
    with fenced(before, position) as mine:
        how = fenced_properties(before, mine)
        if not alters:
            filed = by_key(rows.select(columns), key)
            write_deltalake(
                table,
                filed,
                mode="append",
                commit_properties=how,
                writer_properties=writer_properties(filed.schema),
                target_file_size=_bytes_per_file(filed, table, limits),
            )
        else:
            check_applied(before, done, merge_arrow(table, rows, columns, key, how))
    keep(before.uri, table)
    return confirm(before, position, done)


def should_mark(before: Head, rows: pa.Table, key: Sequence[str], limits: Limits) -> bool:
    """True if a changelog is better marked than merged: its keys are few, but in many files."""
    if not most_marked(before, key, limits):
        return False
    table = open_version(before.uri, before.version)
    files = active_files(table).select(["path", "size_bytes", "num_records"]).to_pylist()
    far = files_far(table, [{name: rows[name] for name in key}])
    near = [file for file in files if file["path"] not in far]
    is_parted = bool(table.metadata().partition_columns)
    most = limits.merged_bytes // (PARTED if is_parted else 1)
    return (
        sum(file["size_bytes"] for file in near) > most
        and rows.num_rows <= limits.marked_share * sum(file["num_records"] for file in near)
        and added_files(before.uri, before.version) is not None
    )


def commit_marked(
    before: Head, rows: pa.Table, key: Sequence[str], position: Position, limits: Limits
) -> Committed:
    """Commit a changelog like `commit_arrow`, onto exactly the version that `before` names.

    Small files of earlier commits are combined with the new one from time to time.
    """
    uri, done = before.uri, result_of(before, count_changes(rows[CHANGE]))
    table, files = open_version(uri, before.version), added_files(uri, before.version)
    assert files is not None
    place = table_files(uri)
    schema, kept = arrow_schema(uri, before.version), kept_rows(table)
    with fenced(before, position) as mine:
        found = list(match_rows(before, Keys(rows, key)))
        check_applied(before, done, _count_applied(rows, found))
        (partition,) = table.metadata().partition_columns or (None,)
        marked = MarkedFiles(place, files, kept, found, schema, limits, partition)
        txn = {"appId": before.table, "version": mine.batch, "lastUpdated": now()}
        noted = commit_info(before, mine, "MERGE", done)
        actions = [*vectors_allowed(table), {"txn": txn}, *marked.actions(rows, key), noted]
        passing("marked", uri)
        commit_actions(before, actions)
    return confirm(before, position, done)


def most_marked(before: Head, key: Sequence[str], limits: Limits) -> int:
    """Return the largest number of changed rows that are marked, if they are not in few files. It
    is 0 if the table is small, or can't have marked rows.
    """
    size = size_of(open_version(before.uri, before.version))
    is_large = size.bytes > limits.merged_bytes and size.rows is not None
    return int(limits.marked_share * (size.rows or 0)) if is_large and _can_mark(before, key) else 0


def _can_mark(before: Head, key: Sequence[str]) -> bool:
    """True if rows of the table can be found by the key, and marked in a commit made here."""
    table = open_version(before.uri, before.version)
    if not (key and is_plain(table) and may_create(before.uri)):
        return False
    schema, parts = arrow_schema(before.uri, before.version), table.metadata().partition_columns
    if parts and (len(parts) > 1 or not pa.types.is_integer(schema.field(parts[0]).type)):
        return False
    return all(name in schema.names and is_exact(schema.field(name).type) for name in key)


def _bytes_per_file(rows: pa.Table, table: DeltaTable, limits: Limits) -> int | None:
    """Return the size of files of as many rows as usual; None if the rows fit in one or two.

    It is the size in memory: files of values that repeat have more rows.
    """
    usual = limits.of_rows(rows.num_rows).file_rows
    if rows.num_rows <= 2 * usual or table.metadata().partition_columns:
        return None
    return int(rows.nbytes) * usual // int(rows.num_rows)


def overwrite_arrow(
    before: Head, rows: pa.Table, position: Position, partition_by: Sequence[str] | None = None
) -> Committed:
    """Replace the table and its columns whole by delta-rs, like `SparkCommit.overwrite`."""
    table = open_table(before.uri, before.version)
    had = table.metadata().partition_columns
    with fenced(before, position) as mine:
        write_deltalake(
            table,
            to_spark_types(rows),
            mode="overwrite",
            schema_mode="overwrite",
            partition_by=list(had if partition_by is None else partition_by),
            commit_properties=fenced_properties(before, mine),
            writer_properties=writer_properties(to_spark_types(rows).schema),
        )
    return confirm(before, position, Committed(before.version + 1, inserted=rows.num_rows))


def create(
    uri: str,
    schema: StructType,
    position: Position,
    *,
    partition_by: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
) -> Head:
    """Create an empty table with a change feed and nullable columns. LostRace if there is one."""
    check_exclusive(uri)
    note_format(uri)
    passing("creating", uri)
    metadata = {"userMetadata": position.to_json()}
    with lost_race_of(uri, version=-1):
        table = DeltaTable.create(
            uri,
            Schema.from_json(nullable(schema).json()),
            mode="error",
            partition_by=list(partition_by) or None,
            configuration={**PROPERTIES, **(properties or {})},
            commit_properties=CommitProperties(custom_metadata=metadata, max_commit_retries=0),
            storage_options=options(uri),
        )
    passing("created", uri)
    return head_of(table, uri)


def columns_at(before: Head | None) -> StructType:
    """Return the columns of a table as of its head; none if there is no table."""
    return StructType() if before is None else types_of(before.uri, before.version)


def add_columns(before: Head, wanted: StructType) -> Head:
    """Add those of these columns that the table lacks, and return its head. Raises LostRace.

    The commit changes no row, and repeats the table's position, so the next batch begins where it
    would have begun. Existing rows are null in a new column.
    """
    had = columns_at(before).names
    missing = [field for field in nullable(wanted).fields if field.name not in had]
    if not missing:
        return before
    table = open_table(before.uri, version=before.version)
    fields = Schema.from_json(StructType(missing).json()).fields
    position = replace(
        (before.position or Position(0, "", CREATE)).without_change(before.data_version),
        kind=GROW if before.is_filled else CREATE,
        attempt=uuid.uuid4().hex,
        after=before.version,
    )
    with lost_race_of(before.uri, before.version):
        table.alter.add_columns(fields, commit_properties=unfenced_properties(position))
    passing("grown", before.uri)
    return head_of(open_version(before.uri), before.uri)


class Keys:
    """The distinct keys of a changelog."""

    def __init__(self, rows: pa.Table, key: Sequence[str]):
        self.key = tuple(key)
        self._values = [pc.unique(rows[name]) for name in self.key]
        self._pairs: list[pa.Array] = []
        for place in range(len(self.key)):
            known = self._codes(rows, place)
            self._pairs.append(pc.unique(known))
        self._places = self._codes(rows, len(self.key))

    @property
    def values(self) -> Mapping[str, pa.ChunkedArray]:
        """The values of each column of the key."""
        return dict(zip(self.key, map(pa.chunked_array, ([v] for v in self._values)), strict=True))

    def places(self, page: pa.Table) -> pa.Array:
        """Return the number of each row's key in the changelog; null if it has none."""
        return pc.index_in(self._codes(page, len(self.key)), self._places)

    def _codes(self, page: pa.Table, upto: int) -> pa.Array:
        """Return a number for each row's values of the first columns, and of one more."""
        found = pa.repeat(pa.scalar(0, pa.int64()), page.num_rows)
        for place, name in enumerate(self.key[: upto + 1]):
            values = self._values[place]
            column = page[name].combine_chunks().cast(values.type)
            code = pc.index_in(column, values).cast(pa.int64())
            found = pc.add(pc.multiply(found, len(values) + 1), code)
            if place < len(self._pairs):
                found = pc.index_in(found, self._pairs[place]).cast(pa.int64())
        return found


@dataclass(frozen=True)
class Matched:
    """Rows of one file, by number, and the changelog's row for each; `rows`: their values."""

    path: str
    numbers: Numbers
    places: Numbers
    rows: pa.Table


def match_rows(before: Head, keys: Keys) -> Iterator[Matched]:
    """Yield the rows with these keys in the table's files.

    They are not searched again if the batch has found them before.
    """
    schema = arrow_schema(before.uri, before.version)
    key = pa.schema([schema.field(name) for name in keys.key])
    pages: Pages | None = take_found(before.uri, before.version, keys.values)
    if pages is None:
        table = open_version(before.uri, before.version)
        parts = table.metadata().partition_columns
        search = FileSearch(before.uri, schema, [keys.values], parts)
        pages = search.rows(files_of(table, files_far(table, [keys.values])), schema.names)
    for some in gather(pages):
        columns = pa.concat_tables(as_stored(page, key) for _, page in some)
        every, at = keys.places(columns), 0
        for path, page in some:
            places = every.slice(at, page.num_rows)
            at += page.num_rows
            if page.num_rows > places.null_count:
                found = page.filter(places.is_valid())
                numbers = found[ROW].to_numpy()
                rows = as_stored(found, schema)
                yield Matched(path, numbers, places.drop_null().to_numpy(), rows)


@dataclass(frozen=True)
class MarkedFiles:
    """The files of one version of a table, and the rows that a changelog alters or deletes.

    `place`: where they are. `kept`: the rows that files still have, by name. `schema`: that of
    the rows. `partition`: the column by which they are in folders, if any.
    """

    place: TableFiles
    files: Added
    kept: Mapping[str, pa.BooleanArray]
    found: Sequence[Matched]
    schema: pa.Schema
    limits: Limits
    partition: str | None = None

    def actions(self, rows: pa.Table, key: Sequence[str]) -> Iterator[Action]:
        """Write the changelog's new rows and its feed; yield the actions of its commit."""
        added = self._visible(rows.filter(pc.not_equal(rows[CHANGE], "delete")))
        parts = [(part, new, self._loose(part)) for part, new in by_part(added, self.partition)]
        loose = [path for _, _, some in parts for path in some]
        marked = [one.path for one in self.found if one.path not in loose]
        for path in (*marked, *loose):
            yield remove_action(self.files[path], changes=True)
        for path in marked:
            if (still := self._still(path)).any():
                yield re_add_with_vector(self.files[path], still, changes=True)
        for part, new, some in parts:
            left = [self._rows_left(path, new.schema) for path in some]
            combined = by_key(pa.concat_tables([new, *left]), key)
            if combined.num_rows:
                yield add_action(self.place, combined, part, changes=True)
        for part, changes in by_part(self._changes(rows), self.partition):
            yield cdc_action(self.place, changes, part)

    def _loose(self, partition: Partition) -> list[str]:
        """Return the small files of a partition, once they are many.

        A piece of upkeep has few rows where they are wide, and is not small.
        """
        files = self._by_part[partition.folder]
        whole = sum(map(rows_of, files))
        usual = min(self.limits.file_rows, whole) if self.partition else self.limits.file_rows
        few = (file for file in files if 2 * rows_of(file) < usual)
        small = [file["path"] for file in few if 4 * file["size"] < self.limits.piece_bytes]
        return small if len(small) >= self.limits.small_files else []

    @cached_property
    def _by_part(self) -> Mapping[str, Sequence[Action]]:
        found = defaultdict[str, list[Action]](list)
        for file in self.files.values():
            found[Partition.of(file).folder].append(file)
        return found

    @cached_property
    def _gone(self) -> dict[str, Numbers]:
        return {one.path: one.numbers for one in self.found}

    def _rows_left(self, path: str, schema: pa.Schema) -> pa.Table:
        with self.place.open(path) as file:
            return numbered_rows(file, np.flatnonzero(self._still(path)), schema)

    def _still(self, path: str) -> RowMask:
        file = self.files[path]
        still = rows_left(file, rows_of(file), lambda: self.kept)
        still[self._gone.get(path, [])] = False
        return still

    def _changes(self, rows: pa.Table) -> pa.Table:
        """Return the change data, with old rows as the files had them."""
        parts = [self._feed_rows(rows, "insert", "insert")]
        parts.append(self._feed_rows(rows, "update", "update_postimage"))
        if self.found:
            places = pa.array(np.concatenate([one.places for one in self.found]))
            found = pa.concat_tables(one.rows for one in self.found)
            old = found.append_column(CHANGE, rows[CHANGE].take(places))
            parts.append(self._feed_rows(old, "update", "update_preimage"))
            parts.append(self._feed_rows(old, "delete", "delete"))
        return pa.concat_tables(parts)

    def _feed_rows(self, rows: pa.Table, change: str, name: str) -> pa.Table:
        chosen = self._visible(rows.filter(pc.equal(rows[CHANGE], change)))
        names = pa.array([name] * chosen.num_rows, pa.string())
        return chosen.append_column(CHANGE_TYPE, names)

    def _visible(self, rows: pa.Table) -> pa.Table:
        return rows.select(self.schema.names).cast(self.schema)


def _count_applied(rows: pa.Table, found: Sequence[Matched]) -> tuple[int, int, int]:
    """Return the numbers of rows that were missing, as for inserts, and present, as for others."""
    places = np.concatenate([one.places for one in found]) if found else np.array([], np.int64)
    hits = count_changes(rows[CHANGE].take(pa.array(places)))
    inserts = pc.sum(pc.equal(rows[CHANGE], "insert")).as_py() or 0
    return inserts - hits["insert"], hits["update"], hits["delete"]
