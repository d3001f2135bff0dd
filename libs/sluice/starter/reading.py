"""One data file as Arrow's rows, for a guess at its table.

Rows that can't be read are left out and noted, since a delivery sends them to quarantine. A file
that can't be read at all is refused by name.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.json as pj
import pyarrow.parquet as pq

from sluice.errors import UsageError
from sluice.starter.mostly import NEARLY
from sluice.starter.padded import read_csv
from sluice.starter.places import format_of

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


def read(file: Path, options: Mapping[str, str]) -> ReadFile:
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
        return ReadFile(_timed(rows), range(1, rows.num_rows + 1))


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

    def leave_out(row: pc.InvalidRow) -> str:
        if broken is not None and row.number is not None:
            broken[row.number] = f"has {row.actual_columns} fields, not {row.expected_columns}"
        return "skip"

    return {
        "read_options": pc.ReadOptions(use_threads=False),  # only so are rows numbered
        "parse_options": pc.ParseOptions(
            delimiter=options.get("sep", ","),
            newlines_in_values=True,
            invalid_row_handler=leave_out,
        ),
        "convert_options": pc.ConvertOptions(null_values=nulls, strings_can_be_null=True),
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
    rows = pa.table(
        {name: a if a is not None else _texts(values[name]) for name, a in arrays.items()}
    )
    mixed = frozenset(n for n, a in arrays.items() if a is None and not _are_texts(values[n]))
    return ReadFile(_timed(rows), list(found), broken, mixed)


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


def _array(values: list[Any]) -> pa.Array | None:
    """Return a field's values in the type that they have in common; None if there is none."""
    with suppress(pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array(values)
    return None


def _are_texts(values: Sequence[Any]) -> bool:
    """True if a column is one of texts, in spite of other values."""
    texts = sum(isinstance(value, str) for value in values)
    return texts > (1 - NEARLY) * sum(value is not None for value in values)


def _texts(values: Iterable[Any]) -> pa.Array:
    texts = [v if v is None or isinstance(v, str) else json.dumps(v) for v in values]
    return pa.array(texts, pa.string())


def _timed(rows: pa.Table) -> pa.Table:
    """Return rows with texts converted to times, if all texts of a column are times."""
    for nth, of in enumerate(rows.schema):
        for zone in (None, "UTC") if pa.types.is_string(of.type) else ():
            column = rows[of.name]
            with suppress(pa.ArrowInvalid):
                times = column.cast(pa.timestamp("us", zone))
                if times.null_count < len(times):
                    rows = rows.set_column(nth, of.name, times)
    return rows
