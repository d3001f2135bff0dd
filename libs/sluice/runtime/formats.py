"""One reader per format: files whose heads are known, as rows that carry their reasons.

CSV is read as RFC 4180 has it (a header, quotes doubled inside quotes, line breaks inside quotes)
unless the source's options say otherwise; its values are cast here, not by Spark's parser, which
takes "1,5" for 15.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from pyspark.sql import DataFrame, SparkSession

from sluice.errors import ConfigError, QualityStop
from sluice.quality.sql import text
from sluice.quality.tally import FILE, RAW, REASON
from sluice.runtime.conversion import (
    BLOCK,
    METADATA,
    ROW,
    SHOWN,
    Declared,
    converted,
    ddl_of_texts,
    type_of_text,
)
from sluice.runtime.filehead import NANOS, VOID, FileHead
from sluice.specs.types import head

CSV_DEFAULTS = {"header": "true", "multiLine": "true", "escape": '"'}
JSON_DEFAULTS = {"enableDateTimeParsingFallback": "false"}  # which takes "1" for 1970-01-02
TEXTS = "_sluice_texts"
KEPT = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": RAW, "enforceSchema": "true"}
FORMATTED = {
    "dateFormat": "DATE",
    "timestampFormat": "TIMESTAMP",
    "timestampNTZFormat": "TIMESTAMP_NTZ",
    "locale": "DECIMAL",
}
NESTED = ("ARRAY", "MAP", "STRUCT", "VARIANT")

T = TypeVar("T", bound=Hashable)
Heads = Sequence[FileHead]
Reader = Callable[[SparkSession, Declared, Heads], Iterable[DataFrame]]


def _json(session: SparkSession, spec: Declared, heads: Heads) -> Iterator[DataFrame]:
    if not heads:
        return
    reader = session.read.format("json").options(**{**JSON_DEFAULTS, **spec.options, **KEPT})
    rows = reader.schema(f"{ddl_of_texts(spec)}, {RAW} STRING").load(_uris(heads))
    known = rows.selectExpr("*", *METADATA, f"{_as_texts(spec)} AS {TEXTS}")
    yield converted(known, spec, reason=_not_json(spec), is_text=True)
    if spec.options.get("multiLine", "false").lower() != "true":
        yield _behind_first_objects(session, heads)


def _as_texts(spec: Declared) -> str:
    """What did not parse, as far as it does with every column taken for a text."""
    columns = text(", ".join(f"`{c.name}` STRING" for c in spec.columns))
    pairs = ", ".join(text(part) for pair in spec.options.items() for part in pair)
    read = f"from_json({RAW}, {columns}{f', map({pairs})' if pairs else ''})"
    return f"CASE WHEN {RAW} IS NOT NULL THEN {read} END"


def _not_json(spec: Declared) -> str:
    """The reason of a row that does not parse: its first value of another type, if it has one."""
    wrong = (
        f"WHEN `{c.name}` IS NULL AND {TEXTS}.`{c.name}` IS NOT NULL THEN concat("
        f"{text(f'column {c.name}: ')}, left({TEXTS}.`{c.name}`, {SHOWN}),"
        f" {text(f' is no {c.type}')})"
        for c in spec.columns
    )
    otherwise = "'does not parse as the declared schema'"
    return f"CASE WHEN {RAW} IS NOT NULL THEN CASE {' '.join(wrong)} ELSE {otherwise} END END"


def _behind_first_objects(session: SparkSession, heads: Heads) -> DataFrame:
    """Lines that go on behind their first object, which is all that Spark reads of them."""
    goes_on = "RLIKE '[}\\\\]]\\\\s*[^\\\\s,\\\\]}]'"
    without_texts = """regexp_replace(value, '"([^"\\\\\\\\]|\\\\\\\\.)*"', '""')"""
    lines = session.read.text(_uris(heads))
    found = lines.where(f"value {goes_on}").where(f"{without_texts} {goes_on}")
    return found.selectExpr(
        f"'only the first object of this line was read' AS {REASON}",
        f"make_valid_utf8(value) AS {RAW}",
        f"_metadata.file_path AS {FILE}",
        f"_metadata.file_block_start AS {BLOCK}",
        f"monotonically_increasing_id() AS {ROW}",
    )


def _csv(session: SparkSession, spec: Declared, heads: Heads) -> Iterator[DataFrame]:
    options = {**CSV_DEFAULTS, **spec.options, **KEPT}
    if nested := [c.name for c in spec.columns if head(c.type) in NESTED]:
        raise ConfigError([f"{spec.name}: CSV holds no nested values: {', '.join(nested)}"])
    typed = {kind for option, kind in FORMATTED.items() if option in options}
    types = {c.name: type_of_text(c.type) for c in spec.columns if head(c.type) in typed}
    for names, group in _grouped(heads, lambda h: h.names).items():
        columns = names or tuple(spec.types)
        schema = ", ".join(f"`{_quoted(n)}` {types.get(n, 'STRING')}" for n in columns)
        reader = session.read.format("csv").options(**options)
        rows = reader.schema(f"{schema}, {RAW} STRING").load(_uris(group))
        plain = [c.name for c in spec.columns if c.name in columns and c.name not in types]
        yield converted(rows, spec, reason=_why_not(plain, len(columns), options), is_text=True)


def _why_not(texts: Sequence[str], width: int, options: Mapping[str, str]) -> str:
    """What is wrong with a row of CSV, whatever its types."""
    separator = options.get("sep", options.get("delimiter", ","))
    line = f"\\n([^\\n]*\\Q{separator}\\E){{{max(width - 1, 1)},}}"
    swallowed = [f"`{c}` RLIKE {text(line)}" for c in texts]
    return (
        f"CASE WHEN {RAW} IS NOT NULL THEN 'does not parse as {width} values' "
        f"WHEN {' OR '.join(swallowed) or 'false'} THEN "
        f"'a quote is not closed: its text goes on over the rows that follow' END"
    )


def _parquet(session: SparkSession, spec: Declared, heads: Heads) -> Iterator[DataFrame]:
    for pairs, group in _grouped(heads, lambda h: _stored_types(spec, h)).items():
        schema = ", ".join(f"`{n}` {'BIGINT' if t == NANOS else t}" for n, t in pairs)
        rows = session.read.schema(schema).options(**spec.options).parquet(*_uris(group))
        micros = {n: _micros(n) for n, t in pairs if t == NANOS}
        values = (f"{micros.get(n, f'`{n}`')} AS `{n}`" for n, _ in pairs)
        yield converted(rows.selectExpr(*values, *METADATA), spec, origin=f"file {_uris(group)[0]}")


def _stored_types(spec: Declared, found: FileHead) -> tuple[tuple[str, str], ...]:
    """The file's columns that are wanted and have values, with their types."""
    of = dict(zip(found.names, found.types, strict=True))
    if strange := [name for name in spec.types if of.get(name) == ""]:
        raise QualityStop(
            f"{spec.pipeline}.{spec.name}: Spark has no type for the column(s) "
            f"{', '.join(strange)} as file {found.file.uri} stores them"
        )
    return tuple((name, of[name]) for name in spec.types if of.get(name, VOID) != VOID)


def _micros(name: str) -> str:
    return f"timestamp_micros((`{name}` - pmod(`{name}`, 1000L)) div 1000L)"


def store(session: SparkSession, spec: Declared) -> DataFrame:
    """Delta tables, JDBC and other stores: typed rows without files or an order."""
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
    return [h.file.uri for h in heads]


READERS: Mapping[str, Reader] = {"json": _json, "csv": _csv, "parquet": _parquet}
