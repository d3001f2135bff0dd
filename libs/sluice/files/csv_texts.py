"""Files of CSV as rows of texts: RFC 4180, unless a source's options differ.

A header, quotes doubled inside quotes, line breaks inside quotes. Spark's parser silently accepts
input that violates RFC 4180, so rows that it may have altered get a reason.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.declare.declared import Declared
from sluice.declare.delivered_row import FILE, RAW
from sluice.errors import ConfigError
from sluice.files.conversion import METADATA, ROW
from sluice.files.csv_here import CUT, FAULT, ODD, SWALLOWED, cells_here, narrow
from sluice.files.filehead import FileHead, grouped, uris
from sluice.files.here import read_here
from sluice.files.spelled import Texts
from sluice.files.texts import of_texts
from sluice.gate.rules.sql import name, text
from sluice.language.typed.types import base_name
from sluice.limits import Limits

DEFAULTS = {"header": "true", "multiLine": "true", "escape": '"'}
KEPT = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": RAW, "enforceSchema": "true"}
LAST = "_sluice_last"  # marks the last row of a file that ends inside quotes
NESTED = ("ARRAY", "MAP", "STRUCT")


@dataclass(frozen=True)
class _Layout:
    """Layout of files that are read together."""

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
    for layout, group in grouped(heads, _Layout.of).items():
        columns = tuple(_own_name(spec, *pair) for pair in enumerate(layout.names))
        columns = columns or tuple(spec.types)
        schema = ", ".join(f"{name(c)} STRING" for c in columns)
        here = read_here(session, group, _cells(session, spec, columns), limits)
        if here is not None:
            yield of_texts(here, spec, Texts(spec.options), reason=FAULT)
            continue
        reader = session.read.format("csv").options(**{"lineSep": layout.line_end, **options})
        found = reader.schema(f"{schema}, {RAW} STRING").load(uris(group))
        rows = _placed(found, columns, options, layout)
        reason = _why_not(columns, options, layout)
        yield of_texts(rows, spec, Texts(spec.options), reason=reason)


def _cells(
    session: SparkSession, spec: Declared, columns: Sequence[str]
) -> Callable[[Sequence[FileHead]], DataFrame]:
    return lambda heads: cells_here(session, heads, columns, spec.options)


def _own_name(spec: Declared, nth: int, written: str) -> str:
    """Return a name for a column of the file; undeclared ones can't clash with ours."""
    return spec.of_files.get(written, f"_sluice_column_{nth}")


def _placed(
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
    separator, quote = options.get("sep", options.get("delimiter", ",")), options.get("quote", '"')
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
