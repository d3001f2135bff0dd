"""Output of results: a table for people, JSON lines and CSV for programs.

Rows are written as they arrive, so a long read starts at once and `head` can cut it. JSON and CSV
lose nothing: decimals keep their digits, times are ISO 8601 in UTC.

Tables for files and pipes, as rich draws them without a terminal, in a fifteenth of the time.

rich wraps, styles and measures each cell, which takes 39 seconds for 92,000 rows.

Rows that were read, for people: what identifies a row comes first, and the terminal is filled.

A column is shown only if it is readable: numbers and names of columns are never broken, texts only
to a few lines. The first columns that fit this way are shown, and a line below names the others.
Without a terminal nothing is hidden, nor in JSON and CSV.
"""

import csv
import json
import re
import sys
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum
from functools import partial
from io import StringIO
from itertools import accumulate, islice, takewhile
from math import isfinite
from textwrap import fill
from typing import Any, TextIO

import click
from rich.cells import cell_len
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

Row = Mapping[str, Any]
QUOTED = re.compile('[",\r\n]')  # in a field of CSV
PLAIN = re.compile(r"[\w ().%-]*")  # a head in which rich finds neither markup nor emoji


def lines(
    heads: Sequence[str], rows: Sequence[Sequence[str]], to_the_right: Sequence[bool]
) -> str | None:
    """Return a table of these texts; None if lines or widths of some are rich's to find out."""
    texts = [text for row in rows for text in row]
    if not heads or not all(map(PLAIN.fullmatch, heads)) or not all(map(str.isprintable, texts)):
        return None
    columns = list(zip(heads, *rows, strict=True))
    widths = [max(map(cell_len, column)) for column in columns]
    head, *body = zip(*map(_pad, columns, widths, to_the_right), strict=True)
    return "".join(
        f"{line}\n"
        for line in (
            _rule("┏", "━", "┳", "┓", widths),
            f"┃ {' ┃ '.join(head)} ┃",
            _rule("┡", "━", "╇", "┩", widths),
            *(f"│ {' │ '.join(row)} │" for row in body),
            _rule("└", "─", "┴", "┘", widths),
        )
    )


def _rule(left: str, line: str, between: str, right: str, widths: Iterable[int]) -> str:
    return left + between.join(line * (width + 2) for width in widths) + right


def _pad(column: Sequence[str], width: int, to_the_right: bool) -> list[str]:
    gaps = [" " * (width - cell_len(text)) for text in column]
    pairs = zip(gaps, column, strict=True)
    return [gap + text if to_the_right else text + gap for gap, text in pairs]


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
        table.add_row(column, _style(value))
    draw(table)


def pluralize(number: int, noun: str) -> str:
    """Return a number with its noun: `1 interval`, `2 intervals`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def write_json(value: Any) -> None:
    """Write one value as a line of JSON."""
    sys.stdout.write(to_json(value) + "\n")


def to_json(value: Any, *, spells: bool = False) -> str:
    """Return JSON with exact decimals; values that JSON cannot express become text or null.

    `spells`: NaN and infinities become text, too.
    """
    inside = partial(to_json, spells=spells)
    match value:
        case dict():
            inner = (
                f"{json.dumps(k if isinstance(k, str) else _as_text(k))}: {inside(v)}"
                for k, v in value.items()
            )
            return "{" + ", ".join(inner) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(inside, value)) + "]"
        case Decimal():
            return f"{value:f}" if value.is_finite() else "null"
        case float() if not isfinite(value):
            return json.dumps(spell(value) if spells else None)
        case _:
            return json.dumps(value, ensure_ascii=False, default=_as_text)


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


def write_csv(rows: Iterator[Row], columns: Sequence[str], file: TextIO | None = None) -> None:
    """Write RFC 4180: CRLF, doubled quotes; nested values are JSON.

    Null is empty, and an empty text or empty bytes are quoted. The null of a single column is
    quoted, too: readers skip empty lines.
    """
    file = file or sys.stdout
    writer = csv.writer(file)
    writer.writerow(columns)
    for row in rows:
        values = [row.get(column) for column in columns]
        fields = [*map(_field, values)]
        if "" in values or b"" in values:
            file.write(",".join(map(_quote, values, fields)) + "\r\n")
        else:
            writer.writerow(fields)


def _quote(value: Any, field: str) -> str:
    is_plain = value is None or (field and not QUOTED.search(field))
    return field if is_plain else '"{}"'.format(field.replace('"', '""'))


def _field(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dict | list | tuple | bool):
        return to_json(value, spells=True)
    if isinstance(value, float) and not isfinite(value):
        return spell(value)
    return f"{value:f}" if isinstance(value, Decimal) else _as_text(value)


def spell(value: float) -> str:
    """Return NaN, or an infinity, as a text that other programs read."""
    return {"inf": "Infinity", "-inf": "-Infinity"}.get(str(value), "NaN")


def _write_table(rows: Iterator[Row], columns: Sequence[str]) -> None:
    """Write a table for each page; without a terminal and rich, if that is possible."""
    for page in pages(rows):
        found = None
        if not terminal_width():
            texts = [[_cell(row.get(column)) for column in columns] for row in page]
            numeric = [_is_numeric([row.get(column) for row in page]) for column in columns]
            found = lines(columns, texts, numeric)
        if found is None:
            draw(table_of(page, columns))
        else:
            sys.stdout.write(found)
            sys.stdout.flush()


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
        table.add_row(*(_style(row.get(column), missing) for column in columns))
    return table


def _is_numeric(values: Sequence[Any]) -> bool:
    numbers = [isinstance(v, int | float | Decimal) and not isinstance(v, bool) for v in values]
    return any(numbers) and all(n or v is None for n, v in zip(numbers, values, strict=True))


def _style(value: Any, missing: str = "null") -> Text:
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
    Format.CSV: write_csv,
}

NARROW, BROAD = 20, 40  # a longer text is wrapped to a width between these
LINES = 4  # of a wrapped text, unless it would get wider than that
FRAME = 3  # a column's line and blanks; one more line ends the table


def write_found(
    rows: Iterable[Row],
    columns: Sequence[str],
    format_: Format,
    lead: Sequence[str],
    chosen: Sequence[str] | None,
) -> None:
    """Write the chosen columns of these, or all of them; a table begins with those of `lead`."""
    shown = arrange(columns, format_, lead, chosen)
    width = terminal_width()
    if format_ is Format.TABLE and width:
        _write_fitted(rows, shown, width)
    else:
        write_rows(rows, shown, format_)


def arrange(
    columns: Sequence[str], format_: Format, lead: Sequence[str], chosen: Sequence[str] | None
) -> list[str]:
    """Return the chosen columns, or all of them; then, in a table, the leading ones first."""
    if chosen is not None:
        return list(chosen)
    first = [c for c in lead if c in columns] if format_ is Format.TABLE else []
    return list(dict.fromkeys((*first, *columns)))


def _write_fitted(rows: Iterable[Row], columns: Sequence[str], width: int) -> None:
    """Write a table for each page; what a page has no room for stays hidden on the next ones."""
    shown = columns
    for page in pages(iter(rows)):
        table = fit_width(table_of(page, shown), width)
        shown = shown[: len(table.columns)]
        draw(table, width_of(table))
    if hidden := columns[len(shown) :]:
        _name_hidden(hidden, width, "--columns A,B chooses columns, --json shows all.")


def print_fitted(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table of a report; in a terminal, the first columns that it has room for."""
    if (width := terminal_width()) is None:
        print_table(columns, rows)
        return
    named = [dict(zip(columns, row, strict=True)) for row in rows]
    table = fit_width(table_of(named, columns, missing=""), width)
    draw(table, width_of(table))
    if hidden := columns[len(table.columns) :]:
        _name_hidden(hidden, width, "--json shows all.")


def _name_hidden(hidden: Sequence[str], width: int, how: str) -> None:
    """Print how many columns are hidden, which, and how to see them."""
    from sluice.language.names import listing  # imports pydantic, which `--help` does not need

    said = f"{pluralize(len(hidden), 'column')} hidden: {listing(hidden)}"
    for line in (said, how):
        click.echo(fill(line, width, break_long_words=False, break_on_hyphens=False))


def fit_width(table: Table, width: int) -> Table:
    """Return the first columns of a table that fit into that width, one at least."""
    sizes = [_size(column) for column in table.columns]
    ends = accumulate((size.least + FRAME for size in sizes), initial=1)
    count = max(1, sum(1 for _ in takewhile(lambda end: end <= width, ends)) - 1)
    widths = _share_space(sizes[:count], width - 1 - FRAME * count)
    table.columns = table.columns[:count]
    for column, given in zip(table.columns, widths, strict=True):
        column.width = given
    return table


def width_of(table: Table) -> int:
    """Return the width of a table with columns of these widths."""
    return 1 + sum((column.width or 0) + FRAME for column in table.columns)


@dataclass(frozen=True)
class _Size:
    """Widths of a column: the least that is readable, and that of its longest value."""

    least: int
    full: int


def _size(column: Column) -> _Size:
    header = cell_len(str(column.header))
    texts = [cell.plain for cell in column.cells if isinstance(cell, Text)]
    longest = max((cell_len(line) for text in texts for line in text.splitlines()), default=0)
    full = max(header, longest)
    if column.justify == "right":
        return _Size(full, full)
    word = max((cell_len(word) for text in texts for word in text.split()), default=0)
    readable = max(NARROW, min(BROAD, max(word, longest // LINES)))
    return _Size(max(header, min(longest, readable)), full)


def _share_space(sizes: Sequence[_Size], room: int) -> list[int]:
    """Return a width for each column; remaining space goes to the narrowest ones."""
    for level in range(room, 0, -1):
        widths = [min(size.full, max(size.least, level)) for size in sizes]
        if sum(widths) <= room:
            return widths
    return [size.least for size in sizes]
