"""One data file as Arrow's rows, for a guess at its table.

Rows that can't be read are left out and noted, since a delivery sends them to quarantine. A file
that can't be read at all is refused by name.

A text where a number or a time should be makes a reader take the whole column for text. A delivery
sends only the row of such a text to quarantine, so the column is declared by the other values.
"""

import csv
import io
import json
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.json as pj
import pyarrow.parquet as pq

from sluice.delta.log.files import table_size
from sluice.delta.log.opened import Foreign, naming_refusals, open_version
from sluice.delta.log.position import unread_features
from sluice.delta.places.folders import LOG
from sluice.delta.reading.live import live_rows
from sluice.delta.reading.local import arrow_schema
from sluice.errors import UsageError
from sluice.limits import Limits


def folders(matches: Iterable[Path]) -> list[Path]:
    """Return the Delta tables at these places and below them, each once."""
    logs = (log for match in matches for log in [match / LOG, *sorted(match.rglob(LOG))])
    return list(dict.fromkeys(log.parent.resolve() for log in logs if log.is_dir()))


def rows_of(uri: str) -> pa.Table:
    """Return a table's rows; only the columns if it is large or only Spark can read it."""
    version = Foreign.at(uri, uri).version
    table = open_version(uri, version)
    if unread_features(table) or table_size(uri, version).bytes > Limits.computed_here_bytes:
        return arrow_schema(uri, version).empty_table()
    with naming_refusals(uri):
        return live_rows(table, uri).to_table()


def comparable(rows: pa.Table) -> pa.Table:
    """Return the columns that a source may follow: a MAP can't be compared."""
    return rows.select([field.name for field in rows.schema if "map<" not in str(field.type)])


FORMATS: Mapping[str, str] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
}
COMPRESSED = (".gz", ".bz2", ".zst")  # those that pyarrow detects by their endings


def list_files(found_at: Mapping[str, list[Path]], followed: list[Path]) -> list[Path]:
    """Return the files at these places, except for those of Delta tables."""
    found: dict[Path, None] = {}
    for pattern, places in found_at.items():
        below = (f for p in places for f in ([p] if p.is_file() else sorted(p.rglob("*"))))
        every = [file.resolve() for file in below if file.is_file() and format_of(file)]
        data = [file for file in every if not {*file.parents} & {*followed}]
        if not data and not folders(places):
            raise UsageError(
                f"there is no data file at {pattern}",
                hint=f"name files that end in {', '.join(FORMATS)}, also compressed, or a folder",
            )
        found |= dict.fromkeys(data)
    return list(found)


def split_addresses(patterns: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the addresses among these patterns, and the others, each in their order."""
    found: dict[bool, list[str]] = {True: [], False: []}
    for one in patterns:
        found["://" in one].append(one.rstrip("/") if "://" in one else one)
    return found[True], found[False]


def matches(pattern: str, folder: Path) -> list[Path]:
    """Return the file or folder of that name, or else all that match the pattern."""
    if (folder / pattern).exists():
        return [folder / pattern]
    given = Path(pattern)
    anchor = given.anchor or str(folder)
    return sorted(Path(anchor).glob(str(given.relative_to(given.anchor))))


def format_of(file: Path) -> str:
    """Return the format that a file's name implies; nothing for other files."""
    if file.name.startswith(("_", ".")) or not str(file).isprintable():
        return ""
    return FORMATS.get(bare(file).suffix.lower(), "")


def bare(file: Path) -> Path:
    """Return the name without the ending of its compression."""
    return file.with_suffix("") if file.suffix in COMPRESSED else file


def shown_in(file: Path, folder: Path) -> str:
    """Return a file's path in the project's folder; of one outside of it, its whole path."""
    try:
        return file.relative_to(folder.resolve()).as_posix()
    except ValueError:
        return file.as_posix()


NEARLY = 0.9  # share of the values
SHOWN = 30  # characters of a value
TIME = r"^\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?"
NAIVE, ZONED = pa.timestamp("us"), pa.timestamp("us", "UTC")
FORMS: Mapping[str, Sequence[tuple[str, pa.DataType]]] = {  # of Spark's types, the narrowest first
    "BIGINT": [(r"^[+-]?\d{1,18}$", pa.int64())],
    "DOUBLE": [(r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$", pa.float64())],
    "BOOLEAN": [(r"^(?i:true|false)$", pa.bool_())],
    "DATE": [(r"^\d{4}-\d\d-\d\d$", pa.date32())],
    "TIMESTAMP": [(f"{TIME}$", NAIVE), (rf"{TIME}(Z|[+-]\d\d:?\d\d)$", ZONED)],
}
TIMES = ("DATE", "TIMESTAMP")
DAY_FIRST, MONTH_FIRST = r"(0[1-9]|[12]\d|3[01])", r"(0[1-9]|1[0-2])"
OTHER_SPELLINGS = {  # by the option that reads them
    "locale: de-DE": ("DECIMAL", r"[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+"),
    **{
        f"{option}: {day}{time}": (type_, days + times)
        for day, days in (
            ("dd.MM.yyyy", rf"{DAY_FIRST}\.{MONTH_FIRST}\.\d{{4}}"),
            ("dd/MM/yyyy", rf"{DAY_FIRST}/{MONTH_FIRST}/\d{{4}}"),
            ("MM/dd/yyyy", rf"{MONTH_FIRST}/{DAY_FIRST}/\d{{4}}"),
        )
        for option, type_, time, times in (
            ("dateFormat", "DATE", "", ""),
            ("timestampFormat", "TIMESTAMP", " HH:mm", r" \d\d:\d\d"),
            ("timestampFormat", "TIMESTAMP", " HH:mm:ss", r" \d\d:\d\d:\d\d"),
        )
    },
}
PADDED = r"^[+-]?0\d+$"
Place = Callable[[int], str]  # the words for the nth row


@dataclass(frozen=True)
class Narrowed:
    """Rows with the types that nearly all values have; values that don't fit are null.

    `misfits`: the number of these by column. `notes`: the odd values, in words.
    """

    rows: pa.Table
    misfits: Mapping[str, int]
    notes: tuple[str, ...]


def narrow(rows: pa.Table, place: Place, only_times: Container[str] = ()) -> Narrowed:
    """Return rows with narrower types. `only_times`: columns whose texts are no numbers."""
    notes, misfits = list[str](), dict[str, int]()
    for nth, name in enumerate(rows.column_names):
        column = rows[name]
        if pa.types.is_binary(column.type):
            column, found = _decode(name, column, place)
            notes += found
        if pa.types.is_string(column.type):
            forms = TIMES if name in only_times else tuple(FORMS)
            nulls = column.null_count
            column, found = _narrow(name, column, place, forms)
            notes += found
            misfits[name] = column.null_count - nulls
        rows = rows.set_column(nth, name, column)
    return Narrowed(rows, misfits, tuple(notes))


def _decode(name: str, column: pa.ChunkedArray, place: Place) -> tuple[pa.ChunkedArray, list[str]]:
    """Return bytes as text, if most values are text.

    One odd value makes a reader take all for bytes.
    """
    values = column.to_pylist()
    texts = [None if v is None else v.decode("utf-8", "replace") for v in values]
    odd = [n for n, v in enumerate(texts) if v is not None and "\ufffd" in v]
    if not odd or len(odd) > (1 - NEARLY) * len(values):
        is_text = not odd
        return (pa.chunked_array([texts], pa.string()), []) if is_text else (column, [])
    note = f"{name}: {_count(len(odd), len(values))} not UTF-8, such as that in {place(odd[0])}"
    return pa.chunked_array([texts], pa.string()), [note]


def _narrow(
    name: str, column: pa.ChunkedArray, place: Place, forms: Sequence[str]
) -> tuple[pa.ChunkedArray, list[str]]:
    total = len(column) - column.null_count
    if not total or True in pc.match_substring_regex(column, PADDED).unique().to_pylist():
        return column, []
    typed = {form: _convert(column, form) for form in forms}
    fits = {form: len(found) - found.null_count for form, found in typed.items()}
    best = max(forms, key=lambda form: fits[form])
    most, found = fits[best], typed[best]
    if most == total:
        return found, []
    if most < total / 2:
        return column, _suggest_options(name, column, total, has_numbers="DOUBLE" in forms)
    odd = pc.and_(pc.is_valid(column), pc.is_null(found)).to_pylist().index(True)
    value = column[odd].as_py()
    cut = value if len(value) <= SHOWN else f"{value[:SHOWN]}…"
    what = f"such as {json.dumps(cut, ensure_ascii=False)} in {place(odd)}"
    if most < NEARLY * total:
        return column, [f"{name}: {most:,} of {total:,} values are {best}, others not, {what}"]
    return found, [f"{name}: {_count(total - most, total)} no {best}, {what}"]


def _suggest_options(
    name: str, column: pa.ChunkedArray, total: int, *, has_numbers: bool
) -> list[str]:
    """Return a note on the option that would read nearly all of these texts as another type."""
    for option, (type_, spelling) in OTHER_SPELLINGS.items():
        if has_numbers or type_ != "DECIMAL":
            fits = pc.sum(pc.match_substring_regex(column, f"^{spelling}$")).as_py() or 0
            if fits >= NEARLY * total:
                what = f"{_count(fits, total)} {type_} with `options: {{{option}}}`"
                return [f"{name}: {what}"]
    return []


def _convert(column: pa.ChunkedArray, form: str) -> pa.ChunkedArray:
    """Return the values in a form's type; null for those of another form, or impossible ones."""
    found = [_cast(column, pattern, type_) for pattern, type_ in FORMS[form]]
    return found[0] if len(found) == 1 else pc.coalesce(found[0], found[1].cast(NAIVE))


def _cast(column: pa.ChunkedArray, pattern: str, type_: pa.DataType) -> pa.ChunkedArray:
    fits = pc.fill_null(pc.match_substring_regex(column, pattern), fill_value=False)
    kept = pc.if_else(fits, column, pa.scalar(None, pa.string()))
    try:
        return kept.cast(type_)
    except pa.ArrowInvalid:
        known = {text: _value(text, type_) for text in kept.unique().to_pylist()}
        return pa.chunked_array([[known[text] for text in kept.to_pylist()]], type_)


def _value(text: str | None, type_: pa.DataType) -> Any:
    try:
        return pa.scalar(text, pa.string()).cast(type_).as_py()
    except pa.ArrowInvalid:
        return None


def _count(few: int, total: int) -> str:
    return f"{few:,} of {total:,} values {'is' if few == 1 else 'are'}"


PADDED_START = r"^[+-]?0\d"


def read_csv(file: Path, *, convert_options: pcsv.ConvertOptions, **how: Any) -> pa.Table:
    """Read a file; a column of whole numbers, some of which begin with a zero, is text."""
    rows = pcsv.read_csv(file, convert_options=convert_options, **how)
    names = rows.column_names
    able = [field.name for field in rows.schema if pa.types.is_integer(field.type)]
    if able:
        convert_options.include_columns = able
        convert_options.column_types = dict.fromkeys(able, pa.string())
        texts = pcsv.read_csv(file, convert_options=convert_options, **how)
        for name in able:
            if True in pc.match_substring_regex(texts[name], PADDED_START).unique().to_pylist():
                rows = rows.set_column(names.index(name), name, texts[name])
    return rows


SNIFFED = 64_000  # bytes, to find a separator


class UnreadableFile(UsageError):
    """A file of which nothing can be read."""


@dataclass(frozen=True)
class ReadFile:
    """Rows of a file. `numbers`: that of each row in the file, in which a CSV's header is row 1.

    `broken`: rows that can't be read, by number, with the reason. `mixed`: columns whose values
    are of several types, as texts.
    """

    rows: pa.Table
    numbers: Sequence[int]
    broken: Mapping[int, str] = field(default_factory=dict)
    mixed: frozenset[str] = frozenset()


def read_data_file(file: Path, options: Mapping[str, str]) -> ReadFile:
    """Read a file. Raises UnreadableFile if nothing of it can be read."""
    with naming(file):
        match format_of(file):
            case "csv":
                return _read_csv(file, options)
            case "parquet":
                rows = pq.read_table(file)
                return ReadFile(rows, range(1, rows.num_rows + 1))
        try:
            rows = pj.read_json(_lines(file) if options else file)
        except pa.ArrowInvalid:
            if options:
                raise  # a document is delivered whole or not at all
            return _read_objects(file)
        return ReadFile(_convert_times(rows), range(1, rows.num_rows + 1))


@contextmanager
def naming(file: Path) -> Iterator[None]:
    """Raise UnreadableFile, which names the file, for one that can't be read."""
    try:
        yield
    except (pa.ArrowInvalid, UnicodeDecodeError, OSError) as error:
        first = str(error).partition("\n")[0]
        raise UnreadableFile(
            f"{file} can't be read as {format_of(file)}: {first}",
            hint="mend the file, or name others by `sluice init --from FILES`",
        ) from error


def how_csv(options: Mapping[str, str], broken: dict[int, str] | None = None) -> dict[str, Any]:
    """Return PyArrow's words for the options of Spark's reader; rows of other lengths are noted."""
    nulls = ["", *([options["nullValue"]] if "nullValue" in options else [])]

    def leave_out(row: pcsv.InvalidRow) -> str:
        if broken is not None and row.number is not None:
            broken[row.number] = f"has {row.actual_columns} fields, not {row.expected_columns}"
        return "skip"

    return {
        "read_options": pcsv.ReadOptions(use_threads=False),  # only so are rows numbered
        "parse_options": pcsv.ParseOptions(
            delimiter=options.get("sep", ","),
            newlines_in_values=True,
            invalid_row_handler=leave_out,
        ),
        "convert_options": pcsv.ConvertOptions(null_values=nulls, strings_can_be_null=True),
    }


def options_of(file: Path) -> Mapping[str, str]:
    """Return the options of Spark's reader, by the file's first lines."""
    if format_of(file) == "parquet":
        return {}
    with naming(file), pa.input_stream(file, compression="detect") as stream:
        head = stream.read(SNIFFED).decode("utf-8", "replace").splitlines()[:20]
    if format_of(file) == "json":
        return {"multiLine": "true"} if "".join(head).lstrip("\ufeff ").startswith("[") else {}
    try:
        sep = csv.Sniffer().sniff("\n".join(head), delimiters=",;\t|").delimiter
    except csv.Error:  # a single column
        sep = ","
    return {} if sep == "," else {"sep": sep}


def _read_csv(file: Path, options: Mapping[str, str]) -> ReadFile:
    broken = dict[int, str]()
    rows = read_csv(file, **how_csv(options, broken))
    every = range(2, 2 + rows.num_rows + len(broken))
    return ReadFile(rows, [n for n in every if n not in broken], broken)


def _lines(file: Path) -> io.BytesIO:
    """Return the objects of an array as lines of JSON. Raises ArrowInvalid for anything else."""
    with pa.input_stream(file, compression="detect") as stream:
        try:
            found = json.loads(stream.read())
        except ValueError as error:
            raise pa.ArrowInvalid(str(error)) from None
    return io.BytesIO("".join(f"{json.dumps(one)}\n" for one in found).encode())


def _read_objects(file: Path) -> ReadFile:
    """Read lines of JSON one by one. Raises ArrowInvalid if none of them is an object."""
    found, broken = dict[int, dict[str, Any]](), dict[int, str]()
    with pa.input_stream(file, compression="detect") as text:
        for number, line in enumerate(text.read().splitlines(), 1):
            if line.strip():
                row = _object(line)
                if row is None:
                    broken[number] = "is no JSON object"
                else:
                    found[number] = row
    if not found:
        raise pa.ArrowInvalid("no line is a JSON object")
    names = dict.fromkeys(name for row in found.values() for name in row)
    values = {name: [row.get(name) for row in found.values()] for name in names}
    arrays = {name: _array(of) for name, of in values.items()}
    several = [name for name, array in arrays.items() if array is None]  # types
    for name in several:
        texts = [v if v is None or isinstance(v, str) else json.dumps(v) for v in values[name]]
        arrays[name] = pa.array(texts, pa.string())
    mixed = frozenset(name for name in several if not _are_texts(values[name]))
    return ReadFile(_convert_times(pa.table(arrays)), list(found), broken, mixed)


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


def _array(values: list[Any]) -> pa.Array | None:
    with suppress(pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array(values)
    return None


def _are_texts(values: Sequence[Any]) -> bool:
    """True if a column is one of texts, in spite of other values."""
    texts = sum(isinstance(value, str) for value in values)
    return texts > (1 - NEARLY) * sum(value is not None for value in values)


def _convert_times(rows: pa.Table) -> pa.Table:
    """Return rows with texts converted to times, also within objects, if all of a field are."""
    for nth, name in enumerate(rows.column_names):
        column = rows[name].combine_chunks()
        rows = rows.set_column(nth, name, _as_times(column))
    return rows


def _as_times(values: pa.Array) -> pa.Array:
    if pa.types.is_struct(values.type) and values.type.num_fields:
        fields = [_as_times(pc.struct_field(values, n)) for n in range(values.type.num_fields)]
        names = [field.name for field in values.type]
        return pa.StructArray.from_arrays(fields, names, mask=values.is_null())
    if pa.types.is_timestamp(values.type):  # Arrow's reader knows only those of whole seconds
        return values.cast(NAIVE)
    for zone in (None, "UTC") if pa.types.is_string(values.type) else ():
        with suppress(pa.ArrowInvalid):
            times = values.cast(pa.timestamp("us", zone))
            if times.null_count < len(times):
                return times.cast(NAIVE)
    return values
