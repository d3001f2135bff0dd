"""Files of CSV read in this process: the cells, reasons and texts that `csv_texts` gives in Spark.

For quotes that violate RFC 4180, this parser follows Spark's.
"""

import codecs
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField

from sluice.declare import pattern_problems
from sluice.declare.delivered_row import RAW
from sluice.files.filehead import FileHead
from sluice.files.here import PLACE, frame, held
from sluice.interpreter.refusals import NotHere

CSV_OPTIONS = frozenset({"header", "sep", "delimiter", "nullValue", *pattern_problems.OPTIONS})
FAULT = "_sluice_fault"
WIDEST = 20_480  # columns that Spark's parser takes
SWALLOWED = "a quote is not closed: its value continues into the next rows"
ODD = "a value continues after its closing quote"
CUT = "a quote is not closed before the end of the file"
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")  # one fault to Java, several to Python


def narrow(width: int) -> str:
    """Return the reason for a row with a different number of values."""
    return f"does not parse as {width} values"


def cells_here(
    session: SparkSession,
    heads: Iterable[FileHead],
    columns: Sequence[str],
    options: Mapping[str, str],
) -> DataFrame:
    """Return the rows of CSV files as texts under these names, FAULT, RAW, and their place."""
    separator = options.get("sep", options.get("delimiter", ","))
    if further := sorted(options.keys() - CSV_OPTIONS):
        raise NotHere(f"CSV with {', '.join(f'`{name}`' for name in further)}")
    if len(separator) != 1:
        raise NotHere("CSV with a `sep` of several characters")
    has_header = options.get("header", "true").lower() == "true"
    null = options.get("nullValue", "")
    rows: list[tuple[Any, ...]] = []
    for head in heads:
        data = held(head)
        if not has_header and data.startswith(codecs.BOM_UTF8):
            raise NotHere("CSV without a header that begins with a byte order mark")
        text = _decoded(data)
        table = _Table(separator, head.line_end, len(columns), head.has_odd_quotes, null)
        found = list(table.rows(text))[has_header:]
        if null and (head.is_cut or any(fault for _, fault, _ in found)):
            raise NotHere("a malformed CSV row with `nullValue`")
        if head.is_cut and found:
            cells, fault, raw = found[-1]
            if text.endswith('"') and cells[-1] is None:  # Spark keeps a quote at the end
                cells = [*cells[:-1], '"']
            found[-1] = (cells, fault or CUT, raw)
        rows += ((*c, f, r, head.file.uri, 0, len(rows) + n) for n, (c, f, r) in enumerate(found))
    texts = [StructField(name, StringType()) for name in (*columns, FAULT, RAW)]
    return frame(session, rows, [*texts, *PLACE])


def _decoded(data: bytes) -> str:
    text = _SURROGATE.sub("\ufffd".encode(), data).decode("utf-8", "replace")
    if "\0" in text:
        raise NotHere("CSV with null characters")
    return text.removeprefix("\ufeff")


CsvRow = tuple[list[str | None], str | None, str | None]


@dataclass(frozen=True)
class _Table:
    """Layout of a file: the ends of cells and lines, and the number of columns."""

    separator: str
    line_end: str
    width: int
    has_odd_quotes: bool
    null: str

    def rows(self, text: str) -> Iterator[CsvRow]:
        """Yield cells, the fault of the row, and its text if it has one."""
        for cells, raw in self._records(text):
            if len(cells) == self.width:
                values = [None if c == self.null else c for c in self._ended(cells)]
                yield values, self._fault(cells), None
            elif self.width == 1 or raw.strip("\r"):
                yield [None] * self.width, narrow(self.width), raw

    def _records(self, text: str) -> Iterator[tuple[list[str | None], str]]:
        s, n = re.escape(self.separator), re.escape(self.line_end)
        blank = rf"(?:(?![{s}{n}])[\0-\x20])*"
        body = '"([^"]*(?:""[^"]*)*)'
        cell = re.compile(rf'{body}(?:"{blank}(?=[{s}{n}]|\Z)|\Z)|{body}("[^{s}{n}]*)|([^{s}{n}]*)')
        at, start, cells = 0, 0, list[str | None]()
        while at < len(text):
            if not cells and text[at] == self.line_end:
                at = start = at + 1
                continue
            found = cell.match(text, at)
            assert found
            cells.append(_text(found))
            if len(cells) > WIDEST:
                raise NotHere(f"CSV with more than {WIDEST:,} columns")
            at = found.end() + 1
            if text[at - 1 : at] == self.separator and at < len(text):
                continue
            if text[at - 1 : at] == self.separator:
                cells.append(None)
            record = text[start:at]
            yield cells, _stripped(record.removesuffix("\r") if self.line_end == "\r" else record)
            start, cells = at, []

    def _ended(self, cells: list[str | None]) -> list[str | None]:
        """Return the cells without a carriage return left over from the line's end."""
        last = cells[-1]
        if self.line_end == "\r" or last is None:
            return cells
        return [*cells[:-1], last.removesuffix("\r") if last != "\r" else None]

    def _fault(self, cells: Iterable[str | None]) -> str | None:
        texts = [cell for cell in cells if cell is not None]
        if any(map(self._has_swallowed, texts)):
            return SWALLOWED
        if self.has_odd_quotes and any(text.startswith('"') for text in texts):
            return ODD
        return None

    def _has_swallowed(self, cell: str) -> bool:
        most = max(self.width - 1, 1)
        _, *behind = cell.split(self.line_end)
        return any(line.count(self.separator) >= most for line in behind)


def _text(found: re.Match[str]) -> str | None:
    """Return a cell's text; null if there is nothing, not even quotes."""
    whole, odd, rest, bare = found.groups()
    if whole is not None:
        return whole.replace('""', '"')
    if odd is not None:
        return f'"{odd.replace(chr(34) * 2, chr(34))}{rest}'
    return bare or None


def _stripped(record: str) -> str:
    return re.sub(r"(?:\r?\n|\f)\Z", "", record)
