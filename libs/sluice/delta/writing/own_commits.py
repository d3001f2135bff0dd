"""The fence of every commit, and commits that Sluice writes itself: their files and their actions.

A commit is made once, onto the version that it was computed from, or not at all. Every commit of a
batch carries the number of the batch and the identity of its attempt. Afterwards the log shows
whose attempt has won, even if the store's answer was lost.

Sluice writes commits of its own because deltalake can't add a deletion vector. They are created in
the log as delta-rs creates its own, by an operation that one writer wins. delta-rs syncs nothing on
a disk. Here, the files that a commit names are on the disk before the commit can be seen, and the
commit before it is reported.

Wrong statistics make readers skip files that hold wanted rows. delta-rs writes those of a decimal
as a float or a 64-bit integer, which round and overflow. It leaves NaN out of a maximum, although
Spark treats NaN as the greatest number. So these columns get none, nor do nested ones, which
delta-rs can't switch one by one. Files without statistics are always read.
"""

import json
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import partial
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import ColumnProperties, CommitProperties, DeltaTable, Transaction, WriterProperties
from pyroaring import BitMap64

from sluice.delta.log import Action
from sluice.delta.log.continuity import lost_race, lost_race_of
from sluice.delta.log.files import FEATURE, SETTING, RowMask, has_vectors, vector_of
from sluice.delta.log.opened import CHECKPOINTS, keep, open_for_writer, open_version
from sluice.delta.log.position import Head, Position, positions
from sluice.delta.places.failpoint import passing
from sluice.delta.places.folders import local_path
from sluice.delta.places.table_files import TableFiles, check_exclusive, table_files
from sluice.errors import LostRace, Retryable, SluiceError

GROUP_ROWS = 5_000  # rows of a row group: the minimum for a read of one key
SHORT = 32  # characters of a text that is its own bound
EXACT_DIGITS = 15  # decimal digits that a 64-bit float always preserves
_SAFE = (
    pa.types.is_integer,
    pa.types.is_boolean,
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
)


def writer_properties(schema: pa.Schema) -> WriterProperties:
    """Return the settings with which delta-rs writes files of these columns."""
    kept = ColumnProperties(statistics_enabled="PAGE")
    return WriterProperties(
        compression="SNAPPY",
        max_row_group_size=GROUP_ROWS,
        default_column_properties=ColumnProperties(statistics_enabled="NONE"),
        column_properties={f.name: kept for f in schema if has_exact_statistics(f.type)},
    )


def has_exact_statistics(type_: pa.DataType) -> bool:
    """True if delta-rs writes the true least and greatest value of a column of this type."""
    if pa.types.is_decimal(type_):
        return bool(type_.precision <= EXACT_DIGITS)
    return any(is_a(type_) for is_a in _SAFE)


def statistics_of(rows: pa.Table) -> dict[str, Any]:
    """Return the statistics of a file for the log: bounds of whole numbers, times, short texts."""
    kinds = (pa.types.is_integer, pa.types.is_date, pa.types.is_string)
    ordered = [
        f.name
        for f in rows.schema
        if any(is_a(f.type) for is_a in kinds) or (pa.types.is_timestamp(f.type) and f.type.tz)
    ]
    bounds = {name: found for name in ordered if (found := _bounds(rows[name]))}
    return {
        "numRecords": rows.num_rows,
        "minValues": {name: _text(low) for name, (low, _) in bounds.items()},
        "maxValues": {name: _text(high) for name, (_, high) in bounds.items()},
        "nullCount": {name: rows[name].null_count for name in ordered},
        "tightBounds": True,
    }


def _bounds(column: pa.ChunkedArray) -> tuple[Any, Any] | None:
    """Return the least and the greatest value; None if there is none, or a long text."""
    try:
        known = pc.min_max(column).as_py()
    except OverflowError:  # Python has no such dates
        return None
    low, high = known["min"], known["max"]
    return None if low is None or max(len(str(low)), len(str(high))) > SHORT else (low, high)


def _text(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, date) else value


SAMPLE = 5_000  # rows
LEAST = 2  # occurrences of each value
FEED = "_change_data"
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # Delta's word for null in a path
LEGACY = frozenset({"appendOnly", "invariants", "changeDataFeed"})
KINDS = ("add", "cdc", "remove")  # actions that name a file
CONSTRAINTS = "delta.constraints."
WRITABLE = LEGACY | {FEATURE, "timestampNtz"}  # features that need nothing else from these commits


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


def add_action(files: TableFiles, rows: pa.Table, partition: Partition, *, changes: bool) -> Action:
    """Write rows of a partition to a file of the table; return its action.

    `changes` is false for upkeep: rows only move, and the change feed does not show it.
    """
    path = partition.path(f"part-00000-{uuid.uuid4()}.snappy.parquet")
    size = write_file(files, path, rows)
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


def cdc_action(files: TableFiles, rows: pa.Table, partition: Partition) -> Action:
    """Write change data of a partition; return its action."""
    path = f"{FEED}/{partition.path(f'cdc-00000-{uuid.uuid4()}.snappy.parquet')}"
    size = write_file(files, path, rows)
    values = dict(partition.values)
    return {"cdc": {"path": path, "partitionValues": values, "size": size, "dataChange": False}}


def re_add_with_vector(file: Action, still: RowMask, *, changes: bool) -> Action:
    """Return the action of a file in which only some rows are still there; the rest is marked."""
    known = json.dumps({**json.loads(file["stats"]), "tightBounds": False})
    vector = vector_of(BitMap64(np.flatnonzero(~still).astype(np.uint64)))
    return {"add": {**file, "dataChange": changes, "stats": known, "deletionVector": vector}}


def remove_action(file: Action, *, changes: bool) -> Action:
    """Return the action that removes a file, as it was."""
    known: dict[str, Any] = {k: file[k] for k in ("path", "size", "deletionVector") if k in file}
    values: Mapping[str, Any] = file.get("partitionValues") or {}
    fixed = {"dataChange": changes, "extendedFileMetadata": True, "partitionValues": dict(values)}
    return {"remove": {**known, **fixed, "deletionTimestamp": now()}}


def write_file(files: TableFiles, path: str, rows: pa.Table) -> int:
    """Write a file of the table; return its bytes.

    Columns whose values repeat in a sample get a dictionary.
    """
    sample = rows.slice(0, SAMPLE)
    leaves = (leaf for n in rows.column_names for leaf in _leaves(sample[n].combine_chunks(), n))
    repeated = [p for p, values in leaves if LEAST * len(values.unique()) <= len(values)]
    encode = partial(
        pq.write_table,
        rows,
        row_group_size=GROUP_ROWS,
        write_statistics=[f.name for f in rows.schema if has_exact_statistics(f.type)],
        use_dictionary=repeated,
        store_schema=False,
        store_decimal_as_integer=True,
    )
    return files.write(path, encode)


def _leaves(values: pa.Array, path: str) -> Iterator[tuple[str, pa.Array]]:
    """Yield the columns without parts that a column consists of, by their paths in the file."""
    if pa.types.is_struct(values.type):
        for field, part in zip(values.type, values.flatten(), strict=True):
            yield from _leaves(part, f"{path}.{field.name}")
    elif pa.types.is_map(values.type):
        yield from _leaves(values.keys, f"{path}.key_value.key")
        yield from _leaves(values.items, f"{path}.key_value.value")
    elif pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
        yield from _leaves(values.flatten(), f"{path}.list.element")
    else:
        yield path, values


def rows_of(file: Action) -> int:
    """Return the number of a file's rows, with marked ones."""
    return int(json.loads(file["stats"])["numRecords"])


def now() -> int:
    """Return the time in milliseconds, as in the log."""
    return int(time.time() * 1000)


@dataclass(frozen=True)
class Committed:
    """Result of a commit; `version` is the table's head after it."""

    version: int
    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    @property
    def changed(self) -> int:
        """Rows in the changelog."""
        return self.inserted + self.updated + self.deleted


def count_changes(changes: pa.ChunkedArray) -> Counter[str]:
    """Return the number of rows of each change."""
    return Counter({one["values"]: one["counts"] for one in pc.value_counts(changes).to_pylist()})


def result_of(before: Head, counts: Mapping[str, int]) -> Committed:
    """Return the result of a commit with these numbers of changes."""
    return Committed(
        before.version + 1, *(counts.get(change, 0) for change in ("insert", "update", "delete"))
    )


def fenced_properties(before: Head, position: Position) -> CommitProperties:
    """Return the commit properties for delta-rs, which tries only once."""
    return CommitProperties(
        custom_metadata={"userMetadata": position.to_json()},
        max_commit_retries=0,
        app_transactions=[Transaction(before.table, position.batch)],
    )


def unfenced_properties(position: Position) -> CommitProperties:
    """Return properties of a commit that changes no row, and so has no batch number."""
    metadata: dict[str, Any] = {"userMetadata": position.to_json()}
    return CommitProperties(custom_metadata=metadata, max_commit_retries=0)


@contextmanager
def fenced(before: Head, position: Position) -> Iterator[Position]:
    """Yield the position to commit; raise LostRace if the table has moved on."""
    check_exclusive(before.uri)
    passing("committing", before.uri)
    try:
        with lost_race_of(before.uri, before.version):
            renames = before.position.renames if before.position else ()
            yield replace(position, after=before.version, renames=position.renames or renames)
    except SluiceError as error:
        if not isinstance(error, LostRace) or local_path(before.uri):
            raise
        if not _has_landed(before, position, error):
            raise
    except Exception as error:
        if local_path(before.uri) or not _has_landed(before, position, error):
            raise
    passing("committed", before.uri)


def confirm(before: Head, position: Position, done: Committed) -> Committed:
    """Return `done` at the version whose commit names this attempt; LostRace if there is none."""
    version = _version_of(before, position)
    if version is None:
        raise lost_race(before.uri, before.version)
    return replace(done, version=version)


def _version_of(before: Head, position: Position) -> int | None:
    """Return the version whose commit names this attempt; None if there is none."""
    newer = open_version(before.uri).version() - before.version
    found = positions(before.uri, newer) if newer > 0 else ()
    return next((v for v, one in found if one.attempt == position.attempt), None)


def _has_landed(before: Head, position: Position, error: Exception) -> bool:
    """True if a commit landed although it failed with this error, as when its answer was lost."""
    try:
        return _version_of(before, position) is not None
    except OSError:
        raise Retryable(
            f"{before.uri}: the store failed during a commit, whose outcome is unknown",
            hint="the next run reads the outcome from the log, and continues from there",
        ) from error


def is_plain(table: DeltaTable) -> bool:
    """True if these commits satisfy all of the table's writer features."""
    protocol = table.protocol()
    if any(name.startswith(CONSTRAINTS) for name in table.metadata().configuration):
        return False
    return {*(protocol.writer_features or ()), *(protocol.reader_features or ())} <= WRITABLE


def commit_actions(before: Head, actions: Sequence[Action]) -> None:
    """Make the commit after `before`, and keep the table open. Raises LostRace if there is one."""
    table = open_for_writer(before.uri, before.version)
    lines = "\n".join(map(json.dumps, actions))
    try:
        names = {kind: [a[kind]["path"] for a in actions if kind in a] for kind in KINDS}
        new = sorted({*names["add"], *names["cdc"]} - {*names["remove"]})
        table_files(before.uri).commit(before.version + 1, lines, new)
    except FileExistsError:
        raise lost_race(before.uri, before.version) from None
    table.update_incremental()
    every = {**CHECKPOINTS, **table.metadata().configuration}["delta.checkpointInterval"]
    if table.version() % int(every) == 0:
        table.create_checkpoint()
    keep(before.uri, table)


def checkpoint(uri: str) -> None:
    """Save later readers the commits up to the head."""
    open_version(uri).create_checkpoint()


def commit_info(
    before: Head, position: Position, operation: str, done: Committed | None = None
) -> Action:
    """Return the action that carries the position, and counts of changes as delta-rs has them."""
    counts = done and {
        "num_target_rows_inserted": done.inserted,
        "num_target_rows_updated": done.updated,
        "num_target_rows_deleted": done.deleted,
    }
    return {
        "commitInfo": {
            "timestamp": now(),
            "operation": operation,
            "operationParameters": {},
            "readVersion": before.version,
            "isBlindAppend": False,
            "engineInfo": "sluice",
            **({"operationMetrics": counts} if counts else {}),
            "userMetadata": position.to_json(),
        }
    }


def vectors_allowed(table: DeltaTable) -> Iterator[Action]:
    """Yield the actions that allow a table vectors, unless it has them."""
    metadata, protocol = table.metadata(), table.protocol()
    if has_vectors(table) and metadata.configuration.get(SETTING) == "true":
        return
    yield {
        "protocol": {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": sorted({*(protocol.reader_features or ()), FEATURE}),
            "writerFeatures": sorted({*(protocol.writer_features or LEGACY), FEATURE}),
        }
    }
    yield {
        "metaData": {
            "id": str(metadata.id),
            **{name: text for name in ("name", "description") if (text := getattr(metadata, name))},
            "format": {"provider": "parquet", "options": {}},
            "schemaString": table.schema().to_json(),
            "partitionColumns": metadata.partition_columns,
            "configuration": {**metadata.configuration, SETTING: "true"},
            "createdTime": metadata.created_time,
        }
    }
