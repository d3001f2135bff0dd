"""Data in the groups that become tables: files of the same columns in one place, Delta tables.

Types are those of nearly all values; what is odd is noted, and left to quarantine. A date in the
name of a file, or of a folder above it, is the interval of the file. These files are one table,
whose path has a placeholder there, even if a supplier changed the columns on some day: the table
has the columns that nearly all of them have.
"""

import re
import unicodedata
from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from itertools import accumulate, count
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
from pyarrow.compute import is_in

from sluice.errors import UsageError
from sluice.language.names import LONGEST, NAME, RESERVED_PREFIX
from sluice.starter import reading
from sluice.starter.reading import (
    NEARLY,
    Place,
    ReadFile,
    UnreadableFile,
    bare,
    format_of,
    how_csv,
    list_files,
    matches,
    naming,
    narrow,
    options_of,
    read_data_file,
    shown_in,
    split_addresses,
)

# Word boundaries in CamelCase; the small s of `CDs` begins no word.
WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z](?!s(?![a-z]))[a-z])")
ROOM = 10  # for the number of a name


def names(written: str, default: str) -> Iterator[str]:
    """Yield names in snake case for what is written: `Miles per Gallon`, then numbered ones.

    `default`: the first word of a name that would not begin with a letter.
    """
    plain = unicodedata.normalize("NFKD", WORDS.sub("_", written)).encode("ascii", "ignore")
    name = re.sub(r"[^a-z0-9]+", "_", plain.decode().lower()).strip("_")
    name = name if name[:1].isalpha() else f"{default}_{name}".rstrip("_")
    name = name[: LONGEST - ROOM]
    yield name
    yield from (f"{name}_{nth}" for nth in count(2))


def columns_of(written: Iterable[str]) -> dict[str, str]:
    """Return a file's columns by the names that are declared for them, in the file's order.

    Columns whose names differ only in case are left out, because readers confuse them.
    """
    written = list(written)
    alike = Counter(name.lower() for name in written)
    able = [
        name
        for name in written
        if alike[name.lower()] == 1
        and name.isprintable()
        and not name.lower().startswith(RESERVED_PREFIX)
    ]
    taken = {name for name in able if NAME.fullmatch(name)}
    found: dict[str, str] = {}
    for name in able:
        if name in taken:
            found[name] = name
            continue
        own = next(n for n in names(name, "column") if n not in taken and n not in found)
        found[own] = name
    return found


YEAR, MONTH, DAY = r"(?:19|20)\d\d", r"(?:0[1-9]|1[0-2])", r"[0-3]\d"
# Forms of a date in a path, the finest first. Only whole parts of a path are years.
FORMS: Mapping[str, str] = {
    "%Y-%m-%d": rf"(?<!\d){YEAR}-{MONTH}-{DAY}(?!-?\d)",
    "%Y/%m/%d": rf"(?<![^/]){YEAR}/{MONTH}/{DAY}(?![^/.])",
    "%Y-%m": rf"(?<!\d){YEAR}-{MONTH}(?!-?\d)",
    "%Y/%m": rf"(?<![^/]){YEAR}/{MONTH}(?![^/.])",
    "%Y": rf"(?<![^/]){YEAR}(?![^/.])",
}
PLACEHOLDER = re.compile(r"\{interval_start:([^}]*)\}")
SCHEDULES: Mapping[str, str] = {"%d": "@daily", "%m": "@monthly", "%Y": "@yearly"}


def day_of(path: str) -> date | None:
    """Return the day in a path, or the first one of the month or of the year in it."""
    for form, looks in FORMS.items():
        for text in re.findall(looks, path):
            with suppress(ValueError):
                return datetime.strptime(text, form).date()  # noqa: DTZ007
    return None


def with_placeholders(path: str) -> str:
    """Return the path with placeholders for its day, and for the month and the year of that day."""
    day = day_of(path)
    for form, looks in FORMS.items() if day else ():
        parts = re.split(f"({looks})", path)
        parts[1::2] = [
            f"{{interval_start:{form}}}" if p == f"{day:{form}}" else p for p in parts[1::2]
        ]
        path = "".join(parts)
    return path


def schedule_of(path: str) -> str:
    """Return the schedule at which a path's placeholders change; nothing if it has none."""
    codes = "".join(PLACEHOLDER.findall(path))
    return next((schedule for code, schedule in SCHEDULES.items() if code in codes), "")


def as_regex(path: str) -> str:
    """Return a regular expression of the files at a path with placeholders and `*`."""
    texts = PLACEHOLDER.split(path)
    texts[::2] = [re.escape(text).replace(r"\*", ".*") for text in texts[::2]]
    texts[1::2] = [FORMS[form] for form in texts[1::2]]
    return "".join(texts)


NULLS = ("NA", "NULL", "null", "None", "NaN", "nan", "#N/A", "\\N")


@dataclass(frozen=True)
class FoundTable:
    """Data of one table. `path`: a pattern for all of its files, relative to the project.

    `format`: `delta` for a Delta table, whose folder is the path. `left_out`: columns of it that
    nobody may declare. `misfits`: numbers of values that don't fit their column's type. `notes`:
    what was odd. `place`: the words for the nth row.
    """

    name: str
    path: str
    format: str
    options: Mapping[str, str]
    rows: pa.Table
    days: tuple[date, ...] = ()
    left_out: tuple[str, ...] = ()
    misfits: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    place: Place = field(default=lambda nth: f"row {nth + 1:,}", compare=False)

    @property
    def is_followed(self) -> bool:
        """True for a Delta table, whose versions deliver its rows."""
        return self.format == "delta"

    @property
    def schedule(self) -> str:
        """Schedule of the dates in its path."""
        return schedule_of(self.path)


_Group = tuple[str, str, str, tuple[str, ...]]  # place, schedule, format, columns
_Groups = dict[_Group, list[Path]]


def find(patterns: Iterable[str], folder: Path) -> list[FoundTable]:
    """Return the tables in these files, folders and patterns below the project's folder.

    An address such as `s3://lake/orders` is that of one Delta table. Raises UsageError for places
    without data files, and for files that can't be read.
    """
    groups: _Groups = {}
    addresses, places = split_addresses(patterns)
    there = {pattern: matches(pattern, folder) for pattern in places}
    followed = reading.folders(place for several in there.values() for place in several)
    every = list_files(there, followed)
    unread = dict[Path, UsageError]()
    for file in every:
        place = with_placeholders(shown_in(file.parent, folder))
        kind = schedule_of(with_placeholders(shown_in(file, folder)))
        try:
            groups.setdefault((place, kind, format_of(file), _columns(file)), []).append(file)
        except UnreadableFile as error:
            unread[file] = error
    groups = _join_dated(groups, folder)
    found: dict[str, FoundTable] = {}
    shown = [*addresses, *(shown_in(place, folder) for place in followed)]
    tables = list(map(_follow, (*addresses, *map(str, followed)), shown))
    for files in groups.values():
        others = [shown_in(f, folder) for f in every if f not in files and f not in unread]
        try:
            tables.append(_found(files, folder, others))
        except UnreadableFile as error:
            unread[files[0]] = error
    if unread and not tables:
        raise next(iter(unread.values()))
    for table in tables:
        name = next(n for n in _names(table.path) if n not in found)
        found[name] = replace(table, name=name)
    left_out = [e.message.replace(str(f), shown_in(f, folder)) for f, e in unread.items()]
    first = next(iter(found))  # names the files that are of no table
    found[first] = replace(found[first], notes=(*left_out, *found[first].notes))
    return list(found.values())


def _join_dated(groups: _Groups, folder: Path) -> _Groups:
    """Return groups of which no two have files that differ in their dates alone."""
    joined: _Groups = {}
    owners: dict[str, _Group] = {}
    for group, files in groups.items():
        paths = {with_placeholders(shown_in(file, folder)) for file in files}
        owner = next((owners[path] for path in paths if path in owners), group)
        joined.setdefault(owner, []).extend(files)
        owners |= dict.fromkeys(paths, owner)
    return joined


def _columns(file: Path) -> tuple[str, ...]:
    """Return what files of one table have in common; JSON lines need not have every field."""
    with naming(file):
        match format_of(file):
            case "csv":
                how = how_csv(options_of(file))
                return _once(pcsv.open_csv(file, **how).schema.names, file)
            case "parquet":
                return _once(pq.read_schema(file).names, file)
    return (re.sub(r"[\d-]+", "*", bare(file).stem),)


def _once(names: list[str], file: Path) -> tuple[str, ...]:
    """Return a file's columns. Raises UsageError if two have the same name."""
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        hint = "give each column a name of its own, or leave the file out"
        raise UsageError(f"{file} has several columns of one name: {', '.join(twice)}", hint=hint)
    return tuple(names)


def _follow(uri: str, path: str) -> FoundTable:
    rows = reading.rows_of(uri)
    kept = reading.comparable(rows)
    odd = tuple(name for name in rows.column_names if name not in kept.column_names)
    return FoundTable("", path, "delta", {}, kept, left_out=odd)


def _found(files: list[Path], folder: Path, others: list[str]) -> FoundTable:
    options, format_ = options_of(files[0]), format_of(files[0])
    found, null = _together(files, options, folder)
    if not found.rows.num_rows:
        raise UnreadableFile(f"{files[0]} has no rows, so nothing shows the types of its columns")
    if format_ == "csv" and null:
        other, _ = _together(files, {**options, "nullValue": null}, folder)
        if (other.rows.schema, other.misfits) != (found.rows.schema, found.misfits):
            found, options = other, {**options, "nullValue": null}
    shown = [shown_in(file, folder) for file in files]
    days = tuple(sorted({day for one in shown if (day := day_of(one))}))
    path = _path(shown, others, is_dated=len(days) > 0)
    return replace(found, path=path, format=format_, options=options, days=days)


def _together(
    files: list[Path], options: Mapping[str, str], folder: Path
) -> tuple[FoundTable, str]:
    read_files, notes = dict[str, ReadFile](), list[str]()
    for file in files:
        try:
            read_files[shown_in(file, folder)] = read_data_file(file, options)
        except UnreadableFile as error:
            notes.append(error.message.replace(str(file), shown_in(file, folder)))
            if len(notes) == len(files):
                raise
    if format_of(files[0]) != "json":  # whose rows need not have every field
        read_files, unusual = _with_usual_columns(read_files)
        notes += unusual
    tables = [one.rows for one in read_files.values()]
    mixed = {name for table in tables for name in table.column_names if _is_mixed(name, tables)}
    mixed |= {name for one in read_files.values() for name in one.mixed}
    rows = pa.concat_tables([_as_text(t, mixed) for t in tables], promote_options="permissive")
    ends = list(accumulate(len(one.numbers) for one in read_files.values()))

    def place(nth: int) -> str:
        name, of = list(read_files.items())[file := bisect(ends, nth)]
        number = of.numbers[nth - (ends[file - 1] if file else 0)]
        return f"row {number:,} of {name}" if len(files) > 1 else f"row {number:,}"

    texts = () if format_of(files[0]) == "csv" else {*rows.column_names} - mixed
    narrowed = narrow(rows, place, texts)
    several = sorted(n for n in mixed if pa.types.is_string(narrowed.rows.schema.field(n).type))
    notes += [*_broken(read_files), *narrowed.notes]
    notes += [f"{name}: a text, since its values have several types" for name in several]

    found = FoundTable("", "", "", {}, narrowed.rows, (), (), narrowed.misfits, tuple(notes), place)
    return found, _null(rows)


def _with_usual_columns(
    read_files: Mapping[str, ReadFile],
) -> tuple[dict[str, ReadFile], list[str]]:
    """Return the files that have all usual columns, with these only, and notes on the others.

    A column is usual if nearly all files have it. Raises UsageError if no file has all of them.
    """
    having = dict[str, list[str]]()
    for file, one in read_files.items():
        for name in one.rows.column_names:
            having.setdefault(name, []).append(file)
    total = len(read_files)
    usual = [name for name, files in having.items() if len(files) >= NEARLY * total]
    lacks = {f: [n for n in usual if f not in having[n]] for f in read_files}
    kept = {f: one for f, one in read_files.items() if usual and not lacks[f]}
    if not kept:
        raise UsageError(
            f"{next(iter(read_files))} and {total - 1} more files have too few columns in common",
            hint="put files of other columns into another folder",
        )
    notes = [
        f"{file} lacks {', '.join(names)}, so its delivery stops"
        for file, names in lacks.items()
        if names
    ]
    notes += [
        f"left out: {name}, which {len(some):,} of {total:,} files have, such as {some[0]}"
        for name, files in having.items()
        if name not in usual and (some := [file for file in files if file in kept])
    ]
    narrowed = {f: replace(one, rows=one.rows.select(usual)) for f, one in kept.items()}
    return narrowed, notes


def _broken(files: Mapping[str, ReadFile]) -> Iterator[str]:
    """Yield a note on the rows that can't be read."""
    if some := [(name, *one) for name, file in files.items() for one in file.broken.items()]:
        name, number, why = some[0]
        rows = "1 row" if len(some) == 1 else f"{len(some):,} rows"
        yield f"{rows} can't be read, such as row {number:,} of {name}, which {why}"


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
        shown = [with_placeholders(one) for one in shown]
    for path in _paths(sorted(set(shown))):
        files = re.compile(as_regex(path) + (".*" if path.endswith("/") else ""))
        if not any(map(files.fullmatch, others)):
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


def _names(path: str) -> Iterator[str]:
    """Yield names for a table: of the last part of the path that is no date, then numbered."""
    undated = re.sub(rf"(?:(?<=/)[^/=]*=)?{PLACEHOLDER.pattern}", "", path)  # nor `day=`
    parts = undated.split("/")
    stems = [stem for part in parts if (stem := part.partition(".")[0]).strip("*")]
    return names(stems[-1] if stems else "", "table")
