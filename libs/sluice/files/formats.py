"""One reader per format: it turns files with known heads into rows with their reasons.

CSV is read by RFC 4180 (a header, quotes doubled inside quotes, line breaks inside quotes) unless
the source's options say otherwise. Values of CSV and JSON are read as the texts that they are. The
rules of `language.spellings` turn them into values.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.declare.declared import Declared
from sluice.declare.delivered_row import CUT, FILE, RAW
from sluice.errors import ConfigError, QualityStop
from sluice.files.conversion import BLOCK, METADATA, ROW, converted
from sluice.files.filehead import NANOS, VOID, FileHead
from sluice.files.json_texts import LINE, rows_of_lines
from sluice.files.spelled import Texts
from sluice.files.texts import of_texts
from sluice.gate.sql import text
from sluice.language.types import head
from sluice.spark.paths import spark_paths

CSV_DEFAULTS = {"header": "true", "multiLine": "true", "escape": '"'}
KEPT = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": RAW, "enforceSchema": "true"}
LAST = "_sluice_last"  # marks the last row of a file that ends inside quotes
NESTED = ("ARRAY", "MAP", "STRUCT", "VARIANT")

T = TypeVar("T", bound=Hashable)
Heads = Sequence[FileHead]
Reader = Callable[[SparkSession, Declared, Heads], Iterable[DataFrame]]


def _json(session: SparkSession, spec: Declared, heads: Heads) -> Iterator[DataFrame]:
    if not heads:
        return
    whole = spec.options.get("multiLine", "false")
    lines = session.read.options(**{**spec.options, "wholetext": whole}).text(_uris(heads))
    decoded = lines.selectExpr(f"{_decoded(spec)} AS {LINE}", *METADATA)
    yield rows_of_lines(decoded.where(f"trim(BOTH ' \\t\\r\\n' FROM {LINE}) <> ''"), spec)


def _decoded(spec: Declared) -> str:
    encoding = spec.options.get("encoding", spec.options.get("charset", "utf-8"))
    is_utf8 = encoding.lower().replace("-", "") == "utf8"
    line = LINE if is_utf8 else f"decode(CAST({LINE} AS BINARY), {text(encoding)})"
    return f"ltrim('\ufeff', {line})"


def _csv(session: SparkSession, spec: Declared, heads: Heads) -> Iterator[DataFrame]:
    options = {**CSV_DEFAULTS, **spec.options, **KEPT}
    if nested := [c.name for c in spec.columns if head(c.type) in NESTED]:
        raise ConfigError([f"{spec.name}: CSV holds no nested values: {', '.join(nested)}"])
    for (names, end, is_cut), group in _grouped(heads, _csv_kind).items():
        columns = names or tuple(spec.types)
        schema = ", ".join(f"`{_quoted(n)}` STRING" for n in columns)
        reader = session.read.format("csv").options(**{"lineSep": end, **options})
        found = reader.schema(f"{schema}, {RAW} STRING").load(_uris(group))
        rows = _placed(found, columns[-1], is_cut=is_cut)
        known = [c for c in spec.types if c in columns]
        reason = _why_not(known, len(columns), options)
        yield of_texts(rows, spec, Texts(spec.options), reason=reason)


def _csv_kind(found: FileHead) -> tuple[tuple[str, ...], str, bool]:
    return found.names, found.line_end, found.is_cut


def _placed(rows: DataFrame, last_column: str, *, is_cut: bool) -> DataFrame:
    """Add each row's place, and strip a carriage return left over from a line's end.

    A line without more than that is left out, as Spark leaves out empty ones.
    The last row of each file that ends inside quotes is marked; one task reads a file.
    """
    last = _quoted(last_column)
    whole = F.expr(f"regexp_replace(nullif(`{last}`, '\\r'), '\\\\r\\\\z', '')")
    is_empty = (
        f"coalesce({RAW}, '-') IN ('', '\r')" if len(rows.columns) > 2 else f"`{last}` <=> '\r'"
    )
    placed = rows.where(f"NOT ({is_empty})").selectExpr(
        "*", *METADATA, f"monotonically_increasing_id() AS {ROW}"
    )
    is_last = f"{ROW} = max({ROW}) OVER (PARTITION BY {FILE})" if is_cut else "false"
    return placed.withColumn(LAST, F.expr(is_last)).withColumn(last_column, whole)


def _why_not(texts: Sequence[str], width: int, options: Mapping[str, str]) -> str:
    """Return SQL for what is wrong with a row of CSV, whatever its types."""
    separator = options.get("sep", options.get("delimiter", ","))
    line = f"\\n([^\\n]*\\Q{separator}\\E){{{max(width - 1, 1)},}}"
    swallowed = [f"`{c}` RLIKE {text(line)}" for c in texts]
    return (
        f"CASE WHEN {RAW} IS NOT NULL THEN 'does not parse as {width} values' "
        f"WHEN {' OR '.join(swallowed) or 'false'} THEN "
        f"'a quote is not closed: its text goes on over the rows that follow' "
        f"WHEN {LAST} THEN 'a quote is not closed before the end of the file' END"
    )


def _parquet(session: SparkSession, spec: Declared, heads: Heads) -> Iterator[DataFrame]:
    for pairs, group in _grouped(heads, lambda h: _stored_types(spec, h)).items():
        schema = ", ".join(f"`{n}` {'BIGINT' if t == NANOS else t}" for n, t in pairs)
        rows = session.read.schema(schema).options(**spec.options).parquet(*_uris(group))
        nanos = [n for n, t in pairs if t == NANOS]
        values = (f"{_micros(n) if n in nanos else f'`{n}`'} AS `{n}`" for n, _ in pairs)
        origin = f"file {group[0].file.shown}"
        yield converted(rows.selectExpr(*values, *METADATA, *_cut(nanos)), spec, origin=origin)


def _stored_types(spec: Declared, found: FileHead) -> tuple[tuple[str, str], ...]:
    """Return the file's columns that are wanted and have values, with their types."""
    of = dict(zip(found.names, found.types, strict=True))
    if strange := [name for name in spec.types if of.get(name) == ""]:
        raise QualityStop(
            f"{spec.pipeline}.{spec.name}: Spark has no type for the column(s) "
            f"{', '.join(strange)} as file {found.file.shown} stores them"
        )
    return tuple((name, of[name]) for name in spec.types if of.get(name, VOID) != VOID)


def _cut(nanos: Sequence[str]) -> tuple[str, ...]:
    """Return SQL for CUT, the number of times that lie between two microseconds."""
    between = (f"CASE WHEN `{n}` % 1000 <> 0 THEN 1 ELSE 0 END" for n in nanos)
    return (f"{' + '.join(between)} AS {CUT}",) if nanos else ()


def _micros(name: str) -> str:
    return f"timestamp_micros((`{name}` - pmod(`{name}`, 1000L)) div 1000L)"


def store(session: SparkSession, spec: Declared) -> DataFrame:
    """Read Delta tables, JDBC and other stores: typed rows without files or an order."""
    reader = session.read.format(spec.format).options(**spec.options)
    rows = reader.load(spec.path) if spec.path else reader.load()
    if missing := [c for c in spec.types if c not in rows.columns]:
        raise QualityStop(
            f"{spec.pipeline}.{spec.name}: {spec.path or spec.format} lacks the declared "
            f"column(s) {', '.join(missing)}; it has {', '.join(rows.columns)}"
        )
    whole = f"xxhash64(to_json(struct({', '.join(f'`{c}`' for c in spec.types)})))"
    own = f"{text(spec.path)} AS {FILE}", f"0L AS {BLOCK}", f"{whole} AS {ROW}"
    columns = (f"`{c}`" for c in spec.types)
    return converted(rows.selectExpr(*columns, *own), spec, origin=spec.path or spec.format)


def _grouped(heads: Heads, by: Callable[[FileHead], T]) -> dict[T, list[FileHead]]:
    groups: dict[T, list[FileHead]] = defaultdict(list)
    for found in heads:
        groups[by(found)].append(found)
    return groups


def _quoted(name: str) -> str:
    return name.replace("`", "``")


def _uris(heads: Heads) -> list[str]:
    return spark_paths(h.file.uri for h in heads)


READERS: Mapping[str, Reader] = {"json": _json, "csv": _csv, "parquet": _parquet}
