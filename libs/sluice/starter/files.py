"""Data in the groups that become tables: files of the same columns in one place, Delta tables.

A date in the name of a file, or of a folder above it, is the interval of the file. These files are
one table, whose path has a placeholder there.
"""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.json as pj
import pyarrow.parquet as pq
from pyarrow.compute import is_in

from sluice.errors import UsageError
from sluice.starter import delta
from sluice.starter.dates import as_regex, dated, day_of, schedule_of, without_dates
from sluice.starter.padded import read_csv
from sluice.starter.places import bare, format_of, listed, matches, shown_in, split
from sluice.starter.valid_names import names

SNIFFED = 64_000  # bytes, to find a separator
NULLS = ("NA", "NULL", "null", "None", "NaN", "nan", "#N/A", "\\N")


@dataclass(frozen=True)
class FoundTable:
    """Data of one table. `path`: a pattern for all of its files, relative to the project.

    `format`: `delta` for a Delta table, whose folder is the path. `left_out`: columns of it that
    nobody may declare.
    """

    name: str
    path: str
    format: str
    options: Mapping[str, str]
    rows: pa.Table
    days: tuple[date, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def is_followed(self) -> bool:
        """True for a Delta table, whose versions deliver its rows."""
        return self.format == "delta"

    @property
    def schedule(self) -> str:
        """Schedule of the dates in its path."""
        return schedule_of(self.path)


def find(patterns: Iterable[str], folder: Path) -> list[FoundTable]:
    """Return the tables in these files, folders and patterns below the project's folder.

    An address such as `s3://lake/orders` is that of one Delta table. Raises UsageError for places
    without data files, and for files that can't be read.
    """
    groups: dict[tuple[str, str, str, tuple[str, ...]], list[Path]] = {}
    addresses, places = split(patterns)
    there = {pattern: matches(pattern, folder) for pattern in places}
    followed = delta.folders(place for several in there.values() for place in several)
    every = listed(there, followed)
    for file in every:
        place = dated(shown_in(file.parent, folder))
        kind = schedule_of(dated(shown_in(file, folder)))
        groups.setdefault((place, kind, format_of(file), _columns(file)), []).append(file)
    found: dict[str, FoundTable] = {}
    shown = [*addresses, *(shown_in(place, folder) for place in followed)]
    tables = list(map(_followed, (*addresses, *map(str, followed)), shown))
    for files in groups.values():
        others = [shown_in(file, folder) for file in every if file not in files]
        tables.append(_found(files, folder, others))
    for table in tables:
        name = next(n for n in _names(table.path) if n not in found)
        found[name] = replace(table, name=name)
    return list(found.values())


def _columns(file: Path) -> tuple[str, ...]:
    """Return what files of one table have in common; JSON lines need not have every field."""
    with _naming(file):
        match format_of(file):
            case "csv":
                how = _how_csv(_options(file))
                return _once(pc.open_csv(file, **how).schema.names, file)
            case "parquet":
                return _once(pq.read_schema(file).names, file)
    return (re.sub(r"[\d-]+", "*", bare(file).stem),)


def _once(names: list[str], file: Path) -> tuple[str, ...]:
    """Return a file's columns. Raises UsageError if two have the same name."""
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        hint = "give each column a name of its own, or leave the file out"
        raise UsageError(f"{file} has several columns of one name: {', '.join(twice)}", hint=hint)
    return tuple(names)


def _followed(uri: str, path: str) -> FoundTable:
    rows = delta.rows_of(uri)
    kept = delta.comparable(rows)
    odd = tuple(name for name in rows.column_names if name not in kept.column_names)
    return FoundTable("", path, "delta", {}, kept, left_out=odd)


def _found(files: list[Path], folder: Path, others: list[str]) -> FoundTable:
    options, format_ = _options(files[0]), format_of(files[0])
    rows = _together(files, options)
    if format_ == "csv" and (null := _null(rows)):
        other = _together(files, {**options, "nullValue": null})
        if other.schema != rows.schema:
            rows, options = other, {**options, "nullValue": null}
    shown = [shown_in(file, folder) for file in files]
    days = tuple(sorted({day for one in shown if (day := day_of(one))}))
    path = _path(shown, others, is_dated=len(days) > 0)
    return FoundTable("", path, format_, options, rows, days)


def _together(files: list[Path], options: Mapping[str, str]) -> pa.Table:
    """Return the files' rows; a column whose types have nothing in common is text."""
    tables = [_read(file, options) for file in files]
    mixed = {name for table in tables for name in table.column_names if _is_mixed(name, tables)}
    return pa.concat_tables([_as_text(t, mixed) for t in tables], promote_options="permissive")


def _is_mixed(name: str, tables: list[pa.Table]) -> bool:
    fields = {t.schema.field(name) for t in tables if name in t.column_names}
    try:
        pa.unify_schemas([pa.schema([f]) for f in fields], promote_options="permissive")
    except pa.ArrowTypeError:
        return True
    return False


def _as_text(rows: pa.Table, names: Iterable[str]) -> pa.Table:
    for nth, name in enumerate(rows.column_names):
        if name in names:
            texts = pa.array([None if v is None else str(v) for v in rows[name].to_pylist()])
            rows = rows.set_column(nth, name, texts.cast(pa.string()))
    return rows


def _read(file: Path, options: Mapping[str, str]) -> pa.Table:
    with _naming(file):
        match format_of(file):
            case "csv":
                return read_csv(file, **_how_csv(options))
            case "parquet":
                return pq.read_table(file)
        return _timed(pj.read_json(_lines(file) if options else file))


def _lines(file: Path) -> io.BytesIO:
    """Return the objects of an array as lines of JSON. Raises ArrowInvalid for anything else."""
    with pa.input_stream(file, compression="detect") as stream:
        try:
            found = json.loads(stream.read())
        except ValueError as error:
            raise pa.ArrowInvalid(str(error)) from None
    return io.BytesIO("".join(f"{json.dumps(one)}\n" for one in found).encode())


def _timed(rows: pa.Table) -> pa.Table:
    """Return rows with texts converted to times, if all texts of a column are times."""
    for nth, field in enumerate(rows.schema):
        for zone in (None, "UTC") if pa.types.is_string(field.type) else ():
            column = rows[field.name]
            with suppress(pa.ArrowInvalid):
                times = column.cast(pa.timestamp("us", zone))
                if times.null_count < len(times):
                    rows = rows.set_column(nth, field.name, times)
    return rows


@contextmanager
def _naming(file: Path) -> Iterator[None]:
    """Raise UsageError, which names the file, for one that can't be read."""
    try:
        yield
    except (pa.ArrowInvalid, OSError) as error:
        first = str(error).partition("\n")[0]
        raise UsageError(f"{file} can't be read as {format_of(file)}: {first}") from error


def _how_csv(options: Mapping[str, str]) -> dict[str, Any]:
    """Return PyArrow's words for the options of Spark's reader."""
    nulls = ["", *([options["nullValue"]] if "nullValue" in options else [])]
    return {
        "parse_options": pc.ParseOptions(
            delimiter=options.get("sep", ","), newlines_in_values=True
        ),
        "convert_options": pc.ConvertOptions(null_values=nulls, strings_can_be_null=True),
    }


def _options(file: Path) -> Mapping[str, str]:
    """Return the options of Spark's reader, by the file's first lines."""
    if format_of(file) == "parquet":
        return {}
    with pa.input_stream(file, compression="detect") as stream:
        head = stream.read(SNIFFED).decode("utf-8", "replace").splitlines()[:20]
    if format_of(file) == "json":
        return {"multiLine": "true"} if "".join(head).lstrip("\ufeff ").startswith("[") else {}
    try:
        sep = csv.Sniffer().sniff("\n".join(head), delimiters=",;\t|").delimiter
    except csv.Error:  # a single column
        sep = ","
    return {} if sep == "," else {"sep": sep}


def _null(rows: pa.Table) -> str:
    """Return the text that most often seems to mean null; nothing if there is none."""
    texts = [column for column in rows.columns if pa.types.is_string(column.type)]
    seen = Counter[str]()
    for column in texts:
        counts = column.filter(is_in(column, pa.array(NULLS))).value_counts().to_pylist()
        seen.update({one["values"]: one["counts"] for one in counts})
    return max(seen, key=lambda text: seen[text], default="")


def _path(shown: list[str], others: list[str], *, is_dated: bool) -> str:
    """Return one path for all files and no other: a dated folder, their name, or a pattern.

    Raises UsageError if each of these would also be a path of `others`.
    """
    if is_dated:
        shown = [dated(one) for one in shown]
    for path in _paths(sorted(set(shown))):
        if not any(_covers(path, other) for other in others):
            return path
    raise UsageError(
        f"{shown[0]} and {len(shown) - 1} more files of the same columns need a path of their own",
        hint="put files of other columns into another folder",
    )


def _paths(shown: list[str]) -> Iterator[str]:
    parents = {f"{one.rpartition('/')[0]}/" for one in shown}
    if len(parents) == 1 and schedule_of(min(parents)) == schedule_of(shown[0]) != "":
        yield min(parents)
    first, last = shown[0], shown[-1]
    if first == last:
        yield first
        return
    start = next(n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b)
    yield f"{first[:start]}*{''.join(Path(first).suffixes)}"


def _covers(path: str, file: str) -> bool:
    return bool(re.fullmatch(as_regex(path) + (".*" if path.endswith("/") else ""), file))


def _names(path: str) -> Iterator[str]:
    """Yield names for a table: of the last part of the path that is no date, then numbered."""
    parts = without_dates(path).split("/")
    stems = [stem for part in parts if (stem := part.partition(".")[0]).strip("*")]
    return names(stems[-1] if stems else "", "table")
