"""Output of results: a table for people, JSON lines and CSV for programs.

Rows are written as they arrive, so a long read starts at once and `head` can cut it. JSON and CSV
lose nothing: decimals keep their digits, times are ISO 8601 in UTC.
"""

import csv
import json
import sys
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum
from io import StringIO
from itertools import islice
from math import isfinite
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sluice.language.row import Row
from sluice.terminal import unstyled

PAGE = 500  # rows of a table that are aligned together
WIDE = 100_000  # width without a terminal: nothing is wrapped


class Format(StrEnum):
    """Values of `--format`."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def write_rows(rows: Iterable[Row], columns: Sequence[str], format_: Format) -> None:
    """Write all rows in the chosen format."""
    WRITERS[format_](iter(rows), columns)


def write_record(row: Row, format_: Format) -> None:
    """Write one row; as a table, one line per column."""
    if format_ is not Format.TABLE:
        write_rows([row], list(row), format_)
        return
    table = Table(show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for column, value in row.items():
        table.add_row(column, _styled(value))
    draw(table)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 interval`, `2 intervals`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def write_json(value: Any) -> None:
    """Write one value as a line of JSON."""
    sys.stdout.write(to_json(value) + "\n")


def to_json(value: Any) -> str:
    """Return JSON with exact decimals; values that JSON cannot express become text or null."""
    match value:
        case dict():
            inner = (f"{json.dumps(_name(k))}: {to_json(v)}" for k, v in value.items())
            return "{" + ", ".join(inner) + "}"
        case list() | tuple():
            return "[" + ", ".join(to_json(v) for v in value) + "]"
        case Decimal():
            return f"{value:f}" if value.is_finite() else "null"
        case float() if not isfinite(value):
            return "null"
        case _:
            return json.dumps(value, ensure_ascii=False, default=_as_text)


def _name(key: Any) -> str:
    return key if isinstance(key, str) else _as_text(key)


def _as_text(value: Any) -> str:
    match value:
        case datetime():
            return _time(value)
        case date():
            return value.isoformat()
        case bytes():
            return b64encode(value).decode()
        case _:
            return str(value)


def _time(moment: datetime) -> str:
    if moment.tzinfo is None:
        return moment.isoformat()
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def show_time(moment: datetime) -> str:
    """Return a time for people, in UTC."""
    return _time(moment).replace("T", " ").removesuffix("Z")


def _write_json_lines(rows: Iterator[Row], columns: Sequence[str]) -> None:
    for row in rows:
        write_json({column: row.get(column) for column in columns})


def _write_csv(rows: Iterator[Row], columns: Sequence[str]) -> None:
    """Write RFC 4180: CRLF, doubled quotes; null is empty, nested values are JSON."""
    writer = csv.writer(sys.stdout)
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_field(row.get(column)) for column in columns])


def _field(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dict | list | tuple | bool):
        return to_json(value)
    return f"{value:f}" if isinstance(value, Decimal) else _as_text(value)


def _write_table(rows: Iterator[Row], columns: Sequence[str]) -> None:
    for page in pages(rows):
        if terminal_width() or not _write_unstyled(page, columns):
            draw(table_of(page, columns))


def _write_unstyled(page: Sequence[Row], columns: Sequence[str]) -> bool:
    """Write a table without rich; return False if that is not possible."""
    texts = [[_cell(row.get(column)) for column in columns] for row in page]
    numeric = [_is_numeric([row.get(column) for row in page]) for column in columns]
    found = unstyled.lines(columns, texts, numeric)
    sys.stdout.write(found or "")
    sys.stdout.flush()
    return found is not None


def pages(rows: Iterator[Row]) -> Iterator[list[Row]]:
    """Yield the rows in pages; one empty page if there are no rows."""
    yield list(islice(rows, PAGE))
    while page := list(islice(rows, PAGE)):
        yield page


def table_of(page: Sequence[Row], columns: Sequence[str], missing: str = "null") -> Table:
    """Return a table of these columns, numbers on the right; `missing` stands for null."""
    table = Table(header_style="bold")
    for column in columns:
        values = [row.get(column) for row in page]
        table.add_column(column, justify="right" if _is_numeric(values) else "left")
    for row in page:
        table.add_row(*(_styled(row.get(column), missing) for column in columns))
    return table


def _is_numeric(values: Sequence[Any]) -> bool:
    numbers = [isinstance(v, int | float | Decimal) and not isinstance(v, bool) for v in values]
    return any(numbers) and all(n or v is None for n, v in zip(numbers, values, strict=True))


def _styled(value: Any, missing: str = "null") -> Text:
    style = "dim" if value is None else ""
    return Text(_cell(value, missing), style=style, overflow="fold")


def _cell(value: Any, missing: str = "null") -> str:
    if value is None:
        return missing
    return show_time(value) if isinstance(value, datetime) else _field(value)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str = "") -> None:
    """Print a table of a report: None is left blank, and each row has all columns."""
    named = [dict(zip(columns, row, strict=True)) for row in rows]
    table = table_of(named, columns, missing="")
    if table.columns:
        table.columns[0].no_wrap = True  # a folded name can't be read or copied
    table.title = title or None
    draw(table)


def terminal_width() -> int | None:
    """Return the width of the terminal that standard output is; None if it is none."""
    return Console().width if sys.stdout.isatty() else None


def draw(table: Table, least: int = 0) -> None:
    """Print a table as wide as the terminal, or as `least` if that is more."""
    terminal = terminal_width()
    page = StringIO()
    width = max(terminal or WIDE, least)
    console = Console(file=page, force_terminal=bool(terminal), width=width, highlight=False)
    console.print(table)
    sys.stdout.write(page.getvalue())
    sys.stdout.flush()


WRITERS: Mapping[Format, Callable[[Iterator[Row], Sequence[str]], None]] = {
    Format.TABLE: _write_table,
    Format.JSON: _write_json_lines,
    Format.CSV: _write_csv,
}
