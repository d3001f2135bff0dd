"""Rows of data files by value, kept on this machine: they are looked up, not searched.

Random keys are in nearly every row group of a large table, so a search decodes most of it. A data
file never changes after its commit, and neither does what is derived from it: a copy of those
columns that were read, which is mapped, not decoded, and for each column that was looked up, the
codes of its values in order. Deletion vectors and the set of files are the log's.

The index lies in the cache folder, may be deleted at any time, and is never trusted: it names the
data file that it was made of, on a disk or in a store, rows are compared with the wanted values,
and each block that is touched has a checksum. What is missing, foreign, cut or altered is searched
instead.
"""

import glob
import json
import os
import random
import shutil
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import IO, Any
from urllib.parse import quote, unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash
from cachetools import LRUCache

from sluice.cache import rows_folder
from sluice.delta.log.files import File
from sluice.delta.places.failpoint import passing
from sluice.delta.places.folders import local_path
from sluice.delta.places.table_files import table_files
from sluice.delta.reading.mapped_file import BLOCK, UNFINISHED, MappedFile, Unusable, write_sealed
from sluice.errors import UsageError

Codes = np.ndarray[tuple[int], np.dtype[np.uint64]]
Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]

VARIABLE, FORMAT = "SLUICE_CACHE_BYTES", 5
ROWS, CODES = ".rows", ".codes"
TABLE = "table"  # the file that names the table's folder
SEARCHED = "searched"  # begins the names of files that note a column by which it was searched
STORED = b"stored"  # names the columns of the data file
OLD = 3600  # seconds after which another process can't be writing a file
DAY = 86_400  # seconds
IN_BLOCK = BLOCK // 8  # codes
MOST_BYTES = 1_000_000_000  # of columns of a data file, not compressed; a larger one is searched

_ODD, _NULL = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
_WORD, _MOST_WORDS = 8, 32  # longer texts count with their first bytes, their last ones and length

_open: LRUCache[Path, "FileIndex"] = LRUCache(4096)
_lock = Lock()

_NO_CODES, _NO_NUMBERS = np.array([], np.uint64), np.array([], np.int64)


class TableIndex:
    """The index of the data files of a table, in a folder of this machine.

    Raises UsageError if `SLUICE_CACHE_BYTES` is no number.
    """

    def __init__(self, uri: str):
        here = local_path(uri)
        self._uri, self._most = uri, _most_bytes()
        self._here = None if here is None else Path(os.path.realpath(here))
        self._folder, self._parents = rows_folder(here or uri), dict[Path, Path]()
        self._is_noted = False

    @property
    def is_begun(self) -> bool:
        """True if rows of the table may be kept here; most tables were never searched."""
        return os.path.isdir(self._folder)  # noqa: PTH112  # a Path costs more than the call

    def of(self, data: File, column: str) -> "FileIndex | None":
        """Return what is kept of a data file and of this column's values; None if nothing is."""
        if not self._most:
            return None
        with suppress(Unusable):
            place, identity = self._place(data.path), self._identity(data)
            with _lock:
                found = _open.get(place)
            if found is None or found.identity != identity:
                found = FileIndex(place, identity)
            found.find(column, _NO_CODES)
            with _lock:
                _open[place] = found
            self._note_use()
            return found
        return None

    def _note_use(self) -> None:
        """Note that the table is used; the least used go first."""
        if not self._is_noted:
            with suppress(OSError):
                os.utime(self._folder)
            self._is_noted = True

    def is_due(self, column: str, read: Collection[str]) -> bool:
        """True if the table was searched by this column before; the first search is noted.

        `read`: the columns that the search reads.
        """
        note = _codes_path(self._folder / SEARCHED, column)
        with suppress(OSError):
            if self._most and note.exists():
                return True
            if self._most:
                self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                (self._folder / TABLE).write_text(str(self._here or self._uri), "utf-8")
                note.write_text(json.dumps([column, sorted(read)]), "utf-8")
        return False

    def searched(self) -> Mapping[str, Collection[str]]:
        """Return each column by which it was searched -> the columns that the first search read."""
        found = dict[str, Collection[str]]()
        for note in _files_of(self._folder / SEARCHED, CODES):
            with suppress(OSError, ValueError):
                column, read = json.loads(note.read_text("utf-8"))
                found[column] = read
        return found

    def build(
        self,
        files: Iterable[File],
        column: str,
        read: Collection[str],
        schema: pa.Schema,
        every: Iterable[File],
    ) -> None:
        """Keep rows and values of data files; where that is impossible, they are searched again.

        So are files that would not fit, if the cache held nothing else, or would take more than
        half of what is free on the disk. `read`: the columns that are kept, beside those that are.
        `schema`: the table's types. `every`: the files of a version that is read now.
        """
        with suppress(OSError, Unusable, pa.ArrowException, OverflowError):
            self._note_use()
            self._prune(every)
            held = _size(self._folder)
            most = min(self._most, held + shutil.disk_usage(self._folder).free // 2)
            for data in files:
                kept = self.of(data, column)
                if not (kept and kept.has(read)):
                    before = self._size_of(data)
                    self._keep(data, column, read, schema)
                    held += self._size_of(data) - before
                if held > most:
                    self._drop(data)
                    break
            self._make_room()

    def differing(self, schema: pa.Schema, files: int = 3, rows: int = 100) -> list[str]:
        """Return the data files, of some drawn ones, of which it holds other rows."""
        found = []
        kept = sorted(self._folder.rglob(f"*{ROWS}"))
        for path in random.sample(kept, min(files, len(kept))):
            place = path.with_name(path.name.removesuffix(ROWS))
            with suppress(Unusable, OSError, pa.ArrowException):
                name, size, modified = MappedFile(path, {}).about["file"][:3]
                data = File(quote(name), size, modified)
                index = FileIndex(place, self._identity(data))
                held = pa.schema([f for f in schema if f.name in index.columns])
                if not held.names:
                    continue
                read = self._read(data.path, held.names[0], held)
                if read is None or not _is_of(index, read, self._coded(place), rows):
                    found.append(name)
        return found

    def _coded(self, place: Path) -> list[str]:
        """Return the columns of a data file whose values are looked up."""
        return [MappedFile(path, {}).about["column"] for path in _files_of(place, CODES)]

    def _size_of(self, data: File) -> int:
        """Return the bytes of what is kept of a data file."""
        return sum(path.stat().st_size for path in _files_of(self._place(data.path), ""))

    def _drop(self, data: File) -> None:
        """Remove what is kept of a data file."""
        for path in _files_of(self._place(data.path), ""):
            path.unlink(missing_ok=True)

    def _place(self, path: str) -> Path:
        """Return where what is kept of a file begins; raises Unusable for one beside the table."""
        name = unquote(path)
        if self._here is None:
            parts = Path(name).parts
            if "://" in name or ".." in parts or name.startswith("/"):
                raise Unusable
            return self._folder / name
        data = self._here / name
        if data.parent not in self._parents:
            try:
                inside = Path(os.path.realpath(data.parent)).relative_to(self._here)
            except ValueError:
                raise Unusable from None
            self._parents[data.parent] = self._folder / inside
        return self._parents[data.parent] / data.name

    def _identity(self, data: File) -> dict[str, Any]:
        """Return what no other data file has; raises Unusable if this one can't be read."""
        name = unquote(data.path)
        if self._here is None:
            return {"format": FORMAT, "file": [name, data.bytes, data.time]}
        try:
            found = (self._here / name).stat()
        except OSError as error:
            raise Unusable from error
        held = [name, found.st_size, found.st_mtime_ns, found.st_ino]
        return {"format": FORMAT, "file": held}

    def _read(self, path: str, column: str, schema: pa.Schema) -> pa.RecordBatch | None:
        """Return columns of a data file in the table's types, and the names of all in its metadata.

        None if they are large, or lack the column.
        """
        with table_files(self._uri).open(path) as file:
            stored = file.schema_arrow.names
            names = [name for name in schema.names if name in stored]
            if column not in names or _bytes_of(file.metadata, names) > MOST_BYTES:
                return None
            rows = file.read(columns=names).select(names)
        types = pa.schema([schema.field(name) for name in names], {STORED: json.dumps(stored)})
        known = rows.cast(types).combine_chunks()
        return known.to_batches()[0] if len(rows) else None

    def _keep(self, data: File, column: str, read: Collection[str], schema: pa.Schema) -> None:
        place, identity = self._place(data.path), self._identity(data)
        kept = None
        with suppress(Unusable):
            kept = FileIndex(place, identity)
        names = {column, *read, *(kept.columns if kept else ())}
        rows = self._read(data.path, column, pa.schema([f for f in schema if f.name in names]))
        if rows is None:
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        if not (kept and kept.has(names)):
            _write_rows(_rows_path(place), rows, identity)
            with _lock:
                _open.pop(place, None)
        passing("indexing", self._uri)
        _write_codes(_codes_path(place, column), rows[column], {**identity, "column": column})

    def _prune(self, every: Iterable[File]) -> None:
        """Remove what is kept of data files that are gone, and what was never finished.

        In a store, a file is gone that the version does not have, a day after it was kept: another
        process may read an earlier version.
        """
        there = {self._place(file.path) for file in every} if self._here is None else set()
        for path in [*self._folder.rglob(f"*{ROWS}"), *self._folder.rglob(f"*{CODES}")]:
            place = path.with_name(path.name.rsplit(".", 1 if path.suffix == ROWS else 2)[0])
            if self._here is None:
                is_there = place in there or time.time() - path.stat().st_mtime < DAY
            else:
                is_there = (self._here / place.relative_to(self._folder)).exists()
            if place.name != SEARCHED and not is_there:
                path.unlink(missing_ok=True)
        for path in self._folder.rglob(f"{UNFINISHED}*"):
            if time.time() - path.stat().st_mtime > OLD:
                path.unlink(missing_ok=True)

    def _make_room(self) -> None:
        """Remove indexes of tables that are gone, and then of those not used for longest."""
        sizes = dict[Path, int]()
        for folder in self._folder.parent.iterdir():
            table = (folder / TABLE).read_text("utf-8") if (folder / TABLE).is_file() else ""
            if "://" in table or (table and Path(table).is_dir()):
                sizes[folder] = _size(folder)
            else:
                shutil.rmtree(folder, ignore_errors=True)
        for folder in sorted(sizes, key=lambda one: one.stat().st_mtime):
            if sum(sizes.values()) <= self._most:
                return
            if folder != self._folder:
                shutil.rmtree(folder, ignore_errors=True)
                sizes.pop(folder)


def _size(folder: Path) -> int:
    """Return the bytes of all files of a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _files_of(place: Path, suffix: str) -> list[Path]:
    """Return the files of what is kept of a data file."""
    return [*place.parent.glob(f"{glob.escape(place.name)}.*{suffix}")]


def _is_of(index: "FileIndex", read: pa.RecordBatch, coded: Sequence[str], rows: int) -> bool:
    """True if an index has the rows of a data file, and finds them; some are drawn."""
    if read.num_rows != index.count:
        return False
    drawn = np.unique(np.random.default_rng().integers(0, index.count, rows))
    some = read.take(pa.array(drawn))
    looked_up = (
        index.find(name, np.unique(codes_of(some[name])))
        for name in coded
        if name in read.schema.names
    )
    is_found = all(np.isin(drawn, numbers).all() for numbers in looked_up)
    return is_found and repr(index.take(drawn, read.schema).to_pylist()) == repr(some.to_pylist())


def _most_bytes() -> int:
    """Return the most bytes of all tables' indexes; the least used go first. 0: none is kept."""
    text = os.environ.get(VARIABLE, "20000000000")
    if not text.isdigit():
        raise UsageError(f"{VARIABLE} is {text!r}, not a number of bytes", hint="0 turns it off")
    return int(text)


def _bytes_of(metadata: pq.FileMetaData, columns: Collection[str]) -> int:
    """Return the bytes of a data file's columns, not compressed."""
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    parts = (group.column(at) for group in groups for at in range(group.num_columns))
    return sum(
        part.total_uncompressed_size
        for part in parts
        if part.path_in_schema.partition(".")[0] in columns
    )


def _write_rows(path: Path, rows: pa.RecordBatch, identity: Mapping[str, Any]) -> None:
    def write(file: IO[bytes]) -> None:
        with pa.ipc.new_file(pa.PythonFile(file, "w"), rows.schema) as writer:
            writer.write_batch(rows)

    def about(payload: pa.Buffer) -> Mapping[str, Any]:
        """Return the identity, and where the values of the columns begin and end."""
        held, start = pa.ipc.open_file(payload).get_batch(0), payload.address
        buffers = [
            b for column in held.columns for b in column.buffers() if b is not None and b.size
        ]
        head = min((b.address for b in buffers), default=start) - start
        tail = max((b.address + b.size for b in buffers), default=start) - start
        return {**identity, "head": head, "tail": tail}

    write_sealed(path, write, about)


def _write_codes(path: Path, values: pa.Array, about: Mapping[str, Any]) -> None:
    codes = codes_of(values)
    order = np.argsort(codes, kind="stable")
    codes = codes[order]
    held = np.concatenate([codes, order.view(np.uint64), codes[::IN_BLOCK], codes[-1:]])
    known = {**about, "rows": len(codes)}
    write_sealed(path, lambda file: file.write(held.data), lambda _: known)


def _rows_path(place: Path) -> Path:
    return place.with_name(f"{place.name}{ROWS}")


def _codes_path(place: Path, column: str) -> Path:
    return place.with_name(f"{place.name}.{xxhash.xxh3_64_hexdigest(column.encode())}{CODES}")


class FileIndex:
    """Rows of one data file, and the codes of those columns that are looked up.

    Raises Unusable.
    """

    def __init__(self, place: Path, identity: Mapping[str, Any]):
        self.identity = identity
        self._place, self._columns = place, dict[str, SortedCodes]()
        self._parts = dict[str, _Parts]()
        self._file = MappedFile(_rows_path(place), self.identity)
        head, tail, size = (
            self._file.about["head"],
            self._file.about["tail"],
            len(self._file.payload),
        )
        self._file.check(np.array([0, tail]), np.array([head, size]))
        rows = pa.ipc.open_file(self._file.payload).get_batch(0)
        self._lacks = frozenset(json.loads(rows.schema.metadata[STORED])) - {*rows.schema.names}
        self._rows = rows.replace_schema_metadata(None)

    @property
    def columns(self) -> Sequence[str]:
        """The columns of which it holds the values."""
        return list(self._rows.schema.names)

    def has(self, columns: Iterable[str]) -> bool:
        """True if it holds all values of these columns that the data file has."""
        return self._lacks.isdisjoint(columns)

    @property
    def count(self) -> int:
        """The number of rows."""
        return int(self._rows.num_rows)

    def find(self, column: str, wanted: Codes) -> Numbers:
        """Return the numbers of rows whose values of a column may have one of these codes.

        `wanted` is in order.
        """
        if column not in self._columns:
            about = {**self.identity, "column": column}
            self._columns[column] = SortedCodes(MappedFile(_codes_path(self._place, column), about))
        return self._columns[column].find(wanted)

    def find_value(self, column: str, value: Any) -> Numbers:
        """Return the numbers of rows like `find`, for one value."""
        type_ = self._rows.schema.field(column).type
        return self.find(column, codes_of(pa.array([value], type_)))

    def take(self, numbers: Numbers, schema: pa.Schema) -> pa.Table:
        """Return columns of the numbered rows; those that the data file lacks are null."""
        if not self.has(schema.names):
            raise Unusable
        present = self._rows.select([n for n in schema.names if n in self._rows.schema.names])
        for name in present.schema.names:
            if name not in self._parts:
                self._parts[name] = _Parts(present[name])
        self._check([self._parts[name] for name in present.schema.names], numbers)
        found = pa.Table.from_batches([present.take(pa.array(numbers))])
        if found.schema.equals(schema):
            return found
        columns = {name: found[name] for name in found.column_names}
        every = (columns.get(f.name, pa.nulls(len(numbers), f.type)) for f in schema)
        return pa.table([c.cast(f.type) for c, f in zip(every, schema, strict=True)], schema)

    def _check(self, parts: Sequence["_Parts"], at: Numbers) -> None:
        """Compare what holds these rows of columns with its checksums; raises Unusable."""
        fixed = np.array([one for part in parts for one in part.fixed], np.int64).reshape(-1, 2)
        width = fixed[:, 1:]  # in bits, as all that follows
        starts = 8 * (fixed[:, :1] - self._file.payload.address) + width * at
        self._file.check(starts.ravel() // 8, (starts + width + 7).ravel() // 8)
        for column in (column for part in parts for column in part.others):
            buffers = column.buffers()
            self._check_bytes(buffers[1], 4 * at, 4 * at + 8)
            offsets = np.frombuffer(buffers[1], np.int32)
            starts, stops = offsets[at].astype(np.int64), offsets[at + 1].astype(np.int64)
            if _is_text(column.type):
                self._check_bytes(buffers[2], starts, stops)
                continue
            is_map = pa.types.is_map(column.type)
            values = (column.keys, column.items) if is_map else (column.values,)
            self._check([_Parts(one) for one in values], _ranges(starts, stops))

    def _check_bytes(self, buffer: pa.Buffer | None, starts: Numbers, stops: Numbers) -> None:
        if buffer is not None:
            place = buffer.address - self._file.payload.address
            self._file.check(place + starts, place + stops)


class SortedCodes:
    """The codes of a column's values in order, the rows' numbers, and the first code of each block.

    Raises Unusable.
    """

    def __init__(self, file: MappedFile):
        count = file.about["rows"]
        self._file, self._ends = file, np.array([8 * count, 16 * count, len(file.payload)])
        file.check(self._ends[1:2], self._ends[2:])
        codes, numbers, firsts = np.split(
            np.frombuffer(file.payload, np.uint64), self._ends[:2] // 8
        )
        self._codes, self._numbers = codes, numbers.view(np.int64)
        self._firsts, self._last = firsts[:-1], firsts[-1]

    def find(self, wanted: Codes) -> Numbers:
        """Return the numbers of the rows with one of these codes, which are in order.

        Reads only the blocks that may have them.
        """
        first = np.searchsorted(wanted, self._firsts[0])
        near = wanted[first : np.searchsorted(wanted, self._last, "right")]
        if not len(near):
            return _NO_NUMBERS
        begins = np.maximum(np.searchsorted(self._firsts, near) - 1, 0)
        blocks = np.unique(_ranges(begins, np.searchsorted(self._firsts, near, "right")))
        self._file.check(BLOCK * blocks, np.minimum(BLOCK * (blocks + 1), self._ends[0]))
        read = (IN_BLOCK * blocks[:, None] + np.arange(IN_BLOCK)).ravel()
        read = read[read < len(self._codes)]
        held = self._codes[read]
        places = np.searchsorted(held, near)
        places = places[held.take(places, mode="clip") == near]
        found = read[_ranges(places, np.searchsorted(held, held[places], "right"))]
        self._file.check(self._ends[0] + 8 * found, self._ends[0] + 8 * found + 8)
        return np.sort(self._numbers[found])


class _Parts:
    """The parts of a column: where values of a fixed width begin and their bits, and the others."""

    def __init__(self, column: pa.Array):
        self.fixed, self.others = list[tuple[int, int]](), list[pa.Array]()
        left = [column]
        for part in left:
            type_, buffers = part.type, part.buffers()
            if buffers[0]:
                self.fixed.append((buffers[0].address, 1))
            if pa.types.is_struct(type_):
                left += [part.field(place) for place in range(type_.num_fields)]
            elif pa.types.is_map(type_) or pa.types.is_list(type_) or _is_text(type_):
                self.others.append(part)
            elif buffers[1:] and buffers[1]:
                self.fixed.append((buffers[1].address, type_.bit_width))


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_binary(type_))


def _ranges(starts: Numbers, stops: Numbers) -> Numbers:
    """Return all numbers of these ranges."""
    lengths = stops - starts
    shifts = np.repeat(stops - np.cumsum(lengths), lengths)
    return np.arange(lengths.sum()) + shifts


def codes_of(values: pa.Array) -> Codes:
    """Return a number for each value of an exact type; equal values have equal ones."""
    type_ = values.type
    if pa.types.is_string(type_):
        codes = _text_codes(values)
    elif pa.types.is_decimal128(type_):
        halves = np.frombuffer(values.buffers()[1], np.uint64).reshape(-1, 2)
        low, high = halves[values.offset : values.offset + len(values)].T
        codes = low ^ (high * _ODD)
    else:
        number = values.cast(pa.int32()) if pa.types.is_date32(type_) else values
        whole = number.cast(pa.int64()).fill_null(0)
        codes = whole.to_numpy().view(np.uint64).copy()
    if values.null_count:
        codes[values.is_null().to_numpy(zero_copy_only=False)] = _NULL
    return codes


def _text_codes(texts: pa.Array) -> Codes:
    offsets = np.frombuffer(texts.buffers()[1], np.int32)
    ends = offsets[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    data = texts.buffers()[2]
    held = np.frombuffer(data, np.uint8) if data else np.zeros(0, np.uint8)
    padded = np.concatenate([held[ends[0] : ends[-1]], np.zeros(_WORD, np.uint8)])
    words = np.ndarray((len(padded) - _WORD + 1,), "<u8", padded, strides=(1,))
    starts, lengths = ends[:-1] - ends[0], np.diff(ends)
    codes = lengths.astype(np.uint64) * _ODD
    some = np.flatnonzero(lengths)
    for step in range(_MOST_WORDS):
        left = lengths[some] - step * _WORD
        kept = (_WORD * (_WORD - np.minimum(left, _WORD))).astype(np.uint64)
        word = words[starts[some] + step * _WORD] << kept
        mixed = (codes[some] ^ word) * _ODD
        codes[some] = mixed ^ (mixed >> np.uint64(29))
        some = some[left > _WORD]
        if not len(some):
            break
    else:
        codes[some] ^= words[starts[some] + lengths[some] - _WORD]
    return codes
