"""Files of a version: what the log says of each, its marked rows, the bounds of its times.

A file's deletion vector lists the numbers of the rows that a commit removed from it without
rewriting it. Sluice writes vectors into the log itself. Vectors in separate files, which other
writers make, are read in the same way.

The log cuts times down to milliseconds, so upper bounds are raised by that much. A file without
statistics has no bounds.
"""

import uuid
from collections.abc import Callable, Collection, Container, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyroaring import BitMap64

from sluice.delta.log import Action, Log, count_records, feed_files
from sluice.delta.log.opened import CommitCache, commit_of, open_version
from sluice.delta.places.delta_rs import files_below


def active_files(table: DeltaTable) -> pa.Table:
    """Return a row for each file: `path`, `size_bytes`, `num_records`, and statistics by name.

    Names are those of deltalake's flattened actions: `min.<column>`, `partition.<column>`. Bounds
    of dates are left out where Python has no such dates.
    """
    commit = commit_of(table.table_uri, table.version())
    if (known := _active.find(commit)) is not None:
        return known
    files = as_table(table.get_add_actions(flatten=True))
    found = files.drop_columns([n for n in files.column_names if not _is_held(files[n])])
    _active.keep(commit, found)
    return found


_KEPT_BYTES = 64_000_000
_active: CommitCache[pa.Table] = CommitCache(_KEPT_BYTES, lambda files: files.nbytes + 1)


def _is_held(column: pa.ChunkedArray) -> bool:
    if not pa.types.is_temporal(column.type):
        return True
    try:
        pc.min_max(column).as_py()
    except OverflowError:
        return False
    return True


def as_table(stream: object) -> pa.Table:
    """Return a table that another library passes as a stream of Arrow.

    `pa.table` would import pandas, a third of a second, to check for its types.
    """
    return pa.RecordBatchReader.from_stream(stream).read_all()


Added = dict[str, Action]  # by path as in the log
RowMask = np.ndarray[tuple[int], np.dtype[np.bool_]]

_known: CommitCache[Added] = CommitCache(8)


def added_files(uri: str, version: int) -> Added | None:
    """Return the files of a version by path; None if the log before it can't be replayed here.

    delta-rs doesn't give their actions whole. They are replayed from the last checkpoint, or from a
    version that was replayed before in this process.
    """
    log, later = Log(uri), list[list[Action]]()
    for number in range(version, -1, -1):
        found = _known.find(commit_of(uri, number)) or _of_checkpoint(uri, number)
        if found is not None:
            break
        try:
            later.append(log.actions(number))
        except FileNotFoundError:
            return None
    else:
        found = {}
    for actions in reversed(later):
        removed = {a["remove"]["path"] for a in actions if "remove" in a}
        added = {a["add"]["path"]: a["add"] for a in actions if "add" in a}
        found = {path: add for path, add in found.items() if path not in removed} | added
    _known.keep(commit_of(uri, version), found)
    return found


def partition_of(file: Action, schema: pa.Schema) -> dict[str, Any]:
    """Return the values of a file's partition, which the log holds as texts, by column."""
    values = file["partitionValues"].items()
    return {
        name: text and pa.scalar(text).cast(schema.field(name).type).as_py()
        for name, text in values
    }


def _of_checkpoint(uri: str, version: int) -> Added | None:
    """Return the files that a classic checkpoint names; None if there is none, or another kind.

    delta-rs gives every checkpoint a column for files of checkpoints, which is empty in these. One
    whose statistics are not texts counts as another kind.
    """
    try:
        with files_below(uri).open_input_file(
            f"_delta_log/{version:020d}.checkpoint.parquet"
        ) as file:
            rows = pq.ParquetFile(file).read(["add", "sidecar"])
    except (FileNotFoundError, pa.ArrowInvalid):
        return None
    if "sidecar" in rows.column_names and rows["sidecar"].null_count < rows.num_rows:
        return None
    files = [_plain(file) for file in rows["add"].drop_null().to_pylist()]
    is_whole = all("stats" in file for file in files)
    return {file["path"]: file for file in files} if is_whole else None


def _plain(file: dict[str, Any]) -> Action:
    known = {name: value for name, value in file.items() if value is not None}
    known |= {name: dict(known[name]) for name in ("partitionValues", "tags") if name in known}
    if vector := known.get("deletionVector"):
        known["deletionVector"] = {name: v for name, v in vector.items() if v is not None}
    known.pop("stats_parsed", None)
    known.pop("partitionValues_parsed", None)
    return known


FEATURE = "deletionVectors"
SETTING = "delta.enableDeletionVectors"
INLINE, BESIDE = "i", "u"
NAMED, NAME = "deletion_vector_", 20  # files of vectors; characters of their names in the log
_MAGIC = (1681511377).to_bytes(4, "little")
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_DIGITS = np.frombuffer(_Z85, np.uint8)
_VALUES = np.zeros(256, np.uint32)
_VALUES[_DIGITS] = np.arange(85)
_POWERS = 85 ** np.arange(4, -1, -1, dtype=np.uint32)

_masks: CommitCache[Mapping[str, pa.BooleanArray]] = CommitCache(
    _KEPT_BYTES, lambda kept: sum((int(mask.nbytes) for mask in kept.values()), start=1)
)


def has_vectors(table: DeltaTable) -> bool:
    """True if files of the table may have deletion vectors."""
    return FEATURE in (table.protocol().reader_features or ())


def kept_rows(table: DeltaTable) -> Mapping[str, pa.BooleanArray]:
    """Return, for each file that lost rows, a mask that is true for the rows it still has.

    Files are known by `file_name`. A mask may end before its file does; all later rows are kept.
    """
    if not has_vectors(table):
        return {}
    commit = commit_of(table.table_uri, table.version())
    if (masks := _masks.find(commit)) is not None:
        return masks
    found: dict[str, pa.BooleanArray] = {}
    for batch in as_table(table.deletion_vectors()).to_batches():
        for path, mask in zip(batch["filepath"], batch["selection_vector"], strict=True):
            found[file_name(path.as_py())] = mask.values
    _masks.keep(commit, found)
    return found


def lost_rows(file: Mapping[str, Any]) -> BitMap64 | None:
    """Return the rows that a file's `add` action marks; None if a file of its own holds them."""
    vector = file.get("deletionVector")
    if not vector:
        return BitMap64()
    if vector["storageType"] != INLINE:
        return None
    data = _decode(vector["pathOrInlineDv"])
    return BitMap64.deserialize(data[len(_MAGIC) : vector["sizeInBytes"]])


def _decode(text: str) -> bytes:
    """Return the bytes of a text of ZeroMQ's 85 digits, five for each four bytes."""
    digits = _VALUES[np.frombuffer(text.encode(), np.uint8).reshape(-1, 5)]
    return bytes((digits * _POWERS).sum(axis=1, dtype=np.uint32).astype(">u4"))


def vector_file(file: Mapping[str, Any]) -> str | None:
    """Return the path, in the table's folder, of what holds a file's vector; None if the log does.

    A vector by an absolute path lies elsewhere, and counts as none.
    """
    vector = file.get("deletionVector")
    if not vector or vector["storageType"] != BESIDE:
        return None
    folder, name = vector["pathOrInlineDv"][:-NAME], vector["pathOrInlineDv"][-NAME:]
    number = uuid.UUID(bytes=_decode(name))
    return f"{folder}/{NAMED}{number}.bin" if folder else f"{NAMED}{number}.bin"


def rows_left(
    file: Action, count: int, kept: Callable[[], Mapping[str, pa.BooleanArray]]
) -> RowMask:
    """Return a mask of a file's `count` rows that is true for those still there.

    `kept` returns `kept_rows`; it is called only if the log does not hold the file's vector.
    """
    still = np.ones(count, dtype=bool)
    if (lost := lost_rows(file)) is not None:
        still[np.fromiter(lost, np.int64, len(lost))] = False
    elif (mask := kept().get(file_name(file["path"]))) is not None:
        still[: len(mask)] = mask.to_numpy(zero_copy_only=False)
    return still


def mask_of(kept: pa.BooleanArray, start: int, rows: int) -> pa.BooleanArray:
    """Return the part of a mask for `rows` rows of its file, from row `start` on."""
    part = kept.slice(start, rows)
    rest = pa.repeat(pa.scalar(True), rows - len(part))
    return pa.concat_arrays([part, rest]) if len(rest) else part


def file_name(path: str) -> str:
    """Return the last name of a file's path, which no other file of the table has."""
    return unquote(path).rpartition("/")[2]


def vector_of(rows: BitMap64) -> dict[str, Any]:
    """Return the vector of rows for a file's `add` action, held in the log itself.

    Rows side by side take no more room than one: upkeep marks whole parts of a file.
    """
    rows.run_optimize()
    data = _MAGIC + rows.serialize()
    padded = data + bytes(-len(data) % 4)
    words = np.frombuffer(padded, ">u4").astype(np.uint32)
    text = _DIGITS[words[:, None] // _POWERS % 85].tobytes().decode()
    return {
        "storageType": INLINE,
        "pathOrInlineDv": text,
        "sizeInBytes": len(data),
        "cardinality": len(rows),
    }


CUT = timedelta(milliseconds=1)
TimeBounds = tuple[datetime | None, datetime | None]


def may_hold(uri: str, version: int, column: str, start: datetime, end: datetime) -> bool:
    """True if the table may have a time in [start, end) in a column."""
    bounds: Iterator[TimeBounds] = _of_files(
        active_files(open_version(uri, version)), f"min.{column}", f"max.{column}"
    )
    return any(
        low is None or high is None or (low < end and high + CUT > start) for low, high in bounds
    )


def not_before(uri: str, version: int, column: str) -> datetime | None:
    """Return a time that is not after the column's latest; None if it is unknown.

    A file with marked rows may have lost its latest. Any row that it still has is not before its
    first time, if none is null.
    """
    table = open_version(uri, version)
    marked, actions = kept_rows(table), active_files(table)
    statistics = (f"{kind}.{column}" for kind in ("min", "max", "null_count"))
    known = [
        high if file_name(path) not in marked else low if nulls == 0 else None
        for path, low, high, nulls in _of_files(actions, "path", *statistics)
    ]
    return max((time for time in known if isinstance(time, datetime)), default=None)


def _of_files(actions: pa.Table, *names: str) -> Iterator[Any]:
    """Yield these columns of each file's action, None where it has none."""
    unknown = [None] * actions.num_rows
    columns = actions.select([n for n in names if n in actions.column_names]).to_pydict()
    return zip(*(columns.get(name, unknown) for name in names), strict=True)


MANY_COMMITS = 200


@dataclass(frozen=True)
class FeedSize:
    """Bytes and files of data to read; `rows` is None if the log does not report them."""

    bytes: int = 0
    files: int = 0
    rows: int | None = 0

    def __add__(self, other: "FeedSize") -> "FeedSize":
        rows = None if self.rows is None or other.rows is None else self.rows + other.rows
        return FeedSize(self.bytes + other.bytes, self.files + other.files, rows)


def feed_size(uri: str, after: int, upto: int) -> FeedSize:
    """Return the size of the change feed of versions (after, upto].

    The log must hold them: see `check_feed`.
    """
    if upto - after > MANY_COMMITS:
        return table_size(uri, upto)
    log = Log(uri)
    sizes = (_commit_size(log.actions(version)) for version in range(after + 1, upto + 1))
    return sum(sizes, FeedSize())


def only_inserts(uri: str, after: int, upto: int) -> bool:
    """True if the change feed of versions (after, upto] surely holds nothing but new rows."""
    if upto - after > MANY_COMMITS:
        return False
    log = Log(uri)
    actions = (action for v in range(after + 1, upto + 1) for action in log.actions(v))
    # Compaction and sealing only put rows into other files.
    return not any("cdc" in a or a.get("remove", {}).get("dataChange") for a in actions)


def table_size(uri: str, version: int) -> FeedSize:
    """Return the size of the table as of a version."""
    return size_of(open_version(uri, version))


def size_of(table: DeltaTable, without: Container[str] = ()) -> FeedSize:
    """Return the size of a table that is already open; `without` some of its files."""
    columns = active_files(table).select(["path", "size_bytes", "num_records"])
    files = [f for f in columns.to_pylist() if f["path"] not in without]
    sizes, rows = [f["size_bytes"] for f in files], [f["num_records"] for f in files]
    return FeedSize(sum(sizes), len(sizes), None if None in rows else sum(rows))


def _commit_size(actions: list[Action]) -> FeedSize:
    files = feed_files(actions)
    rows = [count_records(f) for f in files]
    known = [n for n in rows if n is not None]
    total = sum(known) if len(known) == len(rows) else _count_changes(actions)
    return FeedSize(sum(f.get("size") or 0 for f in files), len(files), total)


def _count_changes(actions: list[Action]) -> int | None:
    """Return the rows of a commit's change data by its metrics; None if it lacks either."""
    infos = (a["commitInfo"].get("operationMetrics") or {} for a in actions if "commitInfo" in a)
    metrics = next(infos, {})
    names = ("inserted", "updated", "deleted")
    counts = [
        metrics.get(f"num_target_rows_{name}", metrics.get(f"numTargetRows{name.title()}"))
        for name in names
    ]
    known = [int(count) for count in counts if count is not None]
    if len(known) < len(names) or not any("cdc" in action for action in actions):
        return None
    inserted, updated, deleted = known
    return inserted + 2 * updated + deleted


@dataclass(frozen=True)
class File:
    """A data file, by its path, bytes and time in the log.

    `kept` masks its remaining rows; `constants` are columns stored outside it. One that is far has
    no wanted row. `rows`: with those that it has lost, if the log says how many.
    """

    path: str
    bytes: int = 0
    time: int = 0
    is_far: bool = False
    kept: pa.BooleanArray | None = None
    constants: Mapping[str, Any] = field(default_factory=dict)
    rows: int | None = None

    @property
    def lost(self) -> int:
        """The number of rows that it no longer has."""
        return 0 if self.kept is None else self.kept.false_count

    def may_have(self, values: Mapping[str, Collection[Any]]) -> bool:
        """True unless a constant is not among the wanted values of its column."""
        known = self.constants.items()
        return all(value in values[n] for n, value in known if n in values)
