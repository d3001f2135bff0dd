"""Files of CSV as rows of texts, in Spark and in this process: RFC 4180, unless options differ.

A header, quotes doubled inside quotes, line breaks inside quotes. Spark's parser silently accepts
input that violates RFC 4180, so rows that it may have altered get a reason. The parser here gives
the same cells, reasons and texts; for quotes that violate RFC 4180, it follows Spark's.
"""

import codecs
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField

from sluice.declare import declared
from sluice.declare.declared import FILE, RAW, Declared
from sluice.errors import ConfigError
from sluice.files.conversion import METADATA, ROW
from sluice.files.filehead import FileHead, group_heads, separator_of, uris
from sluice.files.here import PLACE, content_of, frame, read_here
from sluice.files.spelled import Texts, of_texts
from sluice.gate.sql import name, text
from sluice.interpreter import UnsupportedLocally
from sluice.language.types import base_name
from sluice.limits import Limits

CSV_OPTIONS = frozenset(
    {"header", "sep", "delimiter", "nullValue", "locale", *declared.PATTERN_OPTIONS}
)
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
    separator = separator_of(options)
    if further := sorted(options.keys() - CSV_OPTIONS):
        raise UnsupportedLocally(f"CSV with {', '.join(f'`{name}`' for name in further)}")
    if len(separator) != 1:
        raise UnsupportedLocally("CSV with a `sep` of several characters")
    has_header = options.get("header", "true").lower() == "true"
    null = options.get("nullValue", "")
    rows: list[tuple[Any, ...]] = []
    for head in heads:
        data = content_of(head)
        if not has_header and data.startswith(codecs.BOM_UTF8):
            raise UnsupportedLocally("CSV without a header that begins with a byte order mark")
        text = _decode(data)
        table = _Table(separator, head.line_end, len(columns), head.has_odd_quotes, null)
        found = list(table.rows(text))[has_header:]
        if null and (head.is_cut or any(fault for _, fault, _ in found)):
            raise UnsupportedLocally("a malformed CSV row with `nullValue`")
        if head.is_cut and found:
            cells, fault, raw = found[-1]
            if text.endswith('"') and cells[-1] is None:  # Spark keeps a quote at the end
                cells = [*cells[:-1], '"']
            found[-1] = (cells, fault or CUT, raw)
        rows += ((*c, f, r, head.file.uri, 0, len(rows) + n) for n, (c, f, r) in enumerate(found))
    texts = [StructField(name, StringType()) for name in (*columns, FAULT, RAW)]
    return frame(session, rows, [*texts, *PLACE])


def _decode(data: bytes) -> str:
    text = _SURROGATE.sub("\ufffd".encode(), data).decode("utf-8", "replace")
    if "\0" in text:
        raise UnsupportedLocally("CSV with null characters")
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
                values = [None if c == self.null else c for c in self._strip_end(cells)]
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
                raise UnsupportedLocally(f"CSV with more than {WIDEST:,} columns")
            at = found.end() + 1
            if text[at - 1 : at] == self.separator and at < len(text):
                continue
            if text[at - 1 : at] == self.separator:
                cells.append(None)
            record = text[start:at]
            if self.line_end == "\r":
                record = record.removesuffix("\r")
            yield cells, re.sub(r"(?:\r?\n|\f)\Z", "", record)
            start, cells = at, []

    def _strip_end(self, cells: list[str | None]) -> list[str | None]:
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


DEFAULTS = {"header": "true", "multiLine": "true", "escape": '"'}
KEPT = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": RAW, "enforceSchema": "true"}
LAST = "_sluice_last"  # marks the last row of a file that ends inside quotes
NESTED = ("ARRAY", "MAP", "STRUCT")


@dataclass(frozen=True)
class _Layout:
    names: tuple[str, ...]
    line_end: str
    is_cut: bool
    has_odd_quotes: bool

    @classmethod
    def of(cls, found: FileHead) -> "_Layout":
        return cls(found.names, found.line_end, found.is_cut, found.has_odd_quotes)


def read_csv(
    session: SparkSession, spec: Declared, heads: Sequence[FileHead], limits: Limits
) -> Iterator[DataFrame]:
    """Yield the rows of files of each layout. Raises ConfigError for nested columns."""
    options = {**DEFAULTS, **spec.options, **KEPT}
    if nested := [c.name for c in spec.columns if base_name(c.type) in NESTED]:
        raise ConfigError([f"{spec.name}: CSV holds no nested values: {', '.join(nested)}"])
    for layout, group in group_heads(heads, _Layout.of).items():
        # Undeclared columns get names that can't clash with ours.
        named = enumerate(layout.names)
        columns = tuple(spec.of_files.get(own, f"_sluice_column_{nth}") for nth, own in named)
        columns = columns or tuple(spec.types)
        schema = ", ".join(f"{name(c)} STRING" for c in columns)
        cells = partial(cells_here, session, columns=columns, options=spec.options)
        here = read_here(session, group, cells, limits)
        if here is not None:
            yield of_texts(here, spec, Texts(spec.options), reason=FAULT)
            continue
        reader = session.read.format("csv").options(**{"lineSep": layout.line_end, **options})
        found = reader.schema(f"{schema}, {RAW} STRING").load(uris(group))
        rows = _add_places(found, columns, options, layout)
        reason = _why_not(columns, options, layout)
        yield of_texts(rows, spec, Texts(spec.options), reason=reason)


def _add_places(
    rows: DataFrame, columns: Sequence[str], options: Mapping[str, str], layout: _Layout
) -> DataFrame:
    """Add each row's place, and strip a carriage return left over from a line's end.

    A line with only carriage returns is left out, as Spark leaves out empty ones; in a single
    column, it may mean null. LAST is true for the last row of a file that ends inside quotes; one
    task reads a file.
    """
    last = name(columns[-1])
    null = text(options.get("nullValue", ""))
    whole = f"nullif(regexp_replace(nullif({last}, '\\r'), '\\\\r\\\\z', ''), {null})"
    is_empty = f"trim('\\r' FROM coalesce({RAW}, '-')) = ''" if len(columns) > 1 else "false"
    number = f"monotonically_increasing_id() AS {ROW}"
    placed = rows.where(f"NOT ({is_empty})").selectExpr("*", *METADATA, number)
    is_last = f"{ROW} = max({ROW}) OVER (PARTITION BY {FILE})" if layout.is_cut else "false"
    marked = placed.withColumn(LAST, F.expr(is_last))
    return marked.withColumn(columns[-1], F.expr(whole)) if layout.line_end == "\n" else marked


def _why_not(columns: Sequence[str], options: Mapping[str, str], layout: _Layout) -> str:
    """Return SQL for a row's faults, regardless of its types."""
    separator, quote = separator_of(options), options.get("quote", '"')
    cell = rf"(?:(?!\Q{separator}\E)[^{layout.line_end}])*+\Q{separator}\E"
    line = rf"{layout.line_end}(?:{cell}){{{max(len(columns) - 1, 1)}}}"
    swallowed = [f"{name(c)} RLIKE {text(line)}" for c in columns]
    # With `escape`, Spark's parser removes the opening quote of such a value.
    marked = "startswith" if options["escape"] == quote else "contains"
    odd = [f"{marked}({name(c)}, {text(quote)})" for c in columns if layout.has_odd_quotes]
    return (
        f"CASE WHEN {RAW} IS NOT NULL THEN {text(narrow(len(columns)))} "
        f"WHEN {' OR '.join(swallowed)} THEN {text(SWALLOWED)} "
        f"WHEN {' OR '.join(odd) or 'false'} THEN {text(ODD)} WHEN {LAST} THEN {text(CUT)} END"
    )
