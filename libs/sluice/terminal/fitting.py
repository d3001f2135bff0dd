"""Rows that were read, for people: what identifies a row comes first, and the terminal is filled.

A column is shown only if it is readable: numbers and names of columns are never broken, texts only
to a few lines. The first columns that fit this way are shown, and a line below names the others.
Without a terminal nothing is hidden, nor in JSON and CSV.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile
from textwrap import fill
from typing import Any

import click
from rich.cells import cell_len
from rich.table import Column, Table
from rich.text import Text

from sluice.language.row import Row
from sluice.terminal.output import (
    Format,
    counted,
    draw,
    pages,
    print_table,
    table_of,
    terminal_width,
    write_rows,
)

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
    shown = arranged(columns, format_, lead, chosen)
    width = terminal_width()
    if format_ is Format.TABLE and width:
        _write_fitted(rows, shown, width)
    else:
        write_rows(rows, shown, format_)


def arranged(
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
        table = fitted(table_of(page, shown), width)
        shown = shown[: len(table.columns)]
        draw(table, width_of(table))
    if hidden := columns[len(shown) :]:
        _name(hidden, width, "--columns A,B chooses columns, --json shows all.")


def print_fitted(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table of a report; in a terminal, the first columns that it has room for."""
    if (width := terminal_width()) is None:
        print_table(columns, rows)
        return
    named = [dict(zip(columns, row, strict=True)) for row in rows]
    table = fitted(table_of(named, columns, missing=""), width)
    draw(table, width_of(table))
    if hidden := columns[len(table.columns) :]:
        _name(hidden, width, "--json shows all.")


def _name(hidden: Sequence[str], width: int, how: str) -> None:
    """Print how many columns are hidden, which, and how to see them."""
    from sluice.language.names import listing  # imports pydantic, which `--help` does not need

    said = f"{counted(len(hidden), 'column')} hidden: {listing(hidden)}"
    for line in (said, how):
        click.echo(fill(line, width, break_long_words=False, break_on_hyphens=False))


def fitted(table: Table, width: int) -> Table:
    """Return the first columns of a table that fit into that width, one at least."""
    sizes = [_size(column) for column in table.columns]
    ends = accumulate((size.least + FRAME for size in sizes), initial=1)
    count = max(1, sum(1 for _ in takewhile(lambda end: end <= width, ends)) - 1)
    widths = _spread(sizes[:count], width - 1 - FRAME * count)
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


def _spread(sizes: Sequence[_Size], room: int) -> list[int]:
    """Return a width for each column; remaining space goes to the narrowest ones."""
    for level in range(room, 0, -1):
        widths = [min(size.full, max(size.least, level)) for size in sizes]
        if sum(widths) <= room:
            return widths
    return [size.least for size in sizes]
