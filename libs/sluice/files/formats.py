"""One reader per format: it turns files with known heads into rows with their reasons.

Values of CSV and JSON are read as texts. The rules of `language.typed.spellings` convert them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, NullType, StructType

from sluice.declare.declared import CUT, FILE, Declared
from sluice.delta.reading.foreign_rows import read_version
from sluice.errors import QualityStop
from sluice.files.conversion import BLOCK, METADATA, ROW, convert, ddl
from sluice.files.csv import read_csv
from sluice.files.filehead import FileHead, group_heads, uris
from sluice.files.here import parquet_here, read_here
from sluice.files.json import FAULT, LINE, MARK, lines_here, rows_of_lines
from sluice.files.parquet_types import NANOS, VOID, ddl_of
from sluice.files.spelled import Texts, of_texts
from sluice.gate.sql import field_name, text
from sluice.limits import Limits

FileHeads = Sequence[FileHead]
FileReader = Callable[[SparkSession, Declared, FileHeads, Limits], Iterable[DataFrame]]
VERSION = "versionAsOf"  # the option that chooses one of a Delta table


@dataclass(frozen=True)
class Voided:
    """A nested column of Parquet with parts that have no value in a whole file, and so no type.

    Arrow and pandas give such a part the type `null`: an empty list's elements, a field that is
    null in every row. It becomes null of the declared type. Spark reads it only as an integer.
    """

    name: str
    stored: DataType
    declared: DataType

    @property
    def read_as(self) -> str:
        """The type that Spark can read."""
        return ddl_of(self.stored, lambda t: "INT" if isinstance(t, NullType) else t.simpleString())

    @property
    def value(self) -> str:
        """SQL for the value, with nulls of the declared type."""
        return _fill(f"`{self.name}`", self.stored, self.declared)


def find_voided(
    session: SparkSession, pairs: Sequence[tuple[str, str]], declared: str
) -> Mapping[str, Voided]:
    """Return the columns of `pairs` (names and types) that have such parts, by name."""
    if not (ddl := ", ".join(f"`{n}` {t}" for n, t in pairs if VOID in t)):
        return {}
    types = {f.name: f.dataType for f in session.createDataFrame([], declared).schema.fields}
    fields = session.createDataFrame([], ddl).schema.fields
    return {f.name: Voided(f.name, f.dataType, types[f.name]) for f in fields}


def _fill(sql: str, stored: DataType, declared: DataType, depth: int = 0) -> str:
    """Return SQL for the value; unchanged if its structure differs from the declared one."""
    v = f"v{depth}"
    match stored, declared:
        case NullType(), _:
            return f"CAST(NULL AS {ddl_of(declared)})"
        case ArrayType(), ArrayType():
            each = _fill(v, stored.elementType, declared.elementType, depth + 1)
            return f"transform({sql}, {v} -> {each})"
        case MapType(), MapType():
            each = _fill(v, stored.valueType, declared.valueType, depth + 1)
            return f"transform_values({sql}, (k{depth}, {v}) -> {each})"
        case StructType(), StructType() if stored.names == declared.names:
            parts = (
                f"{text(a.name)}, "
                f"{_fill(f'{sql}.{field_name(a.name)}', a.dataType, b.dataType, depth)}"
                for a, b in zip(stored.fields, declared.fields, strict=True)
            )
            return f"CASE WHEN {sql} IS NOT NULL THEN named_struct({', '.join(parts)}) END"
    return sql


def _json(
    session: SparkSession, spec: Declared, heads: FileHeads, limits: Limits
) -> Iterator[DataFrame]:
    if not heads:
        return
    here = read_here(session, heads, lambda some: lines_here(session, spec, some), limits)
    if here is not None:
        yield of_texts(here, spec, Texts(spec.options, MARK), reason=FAULT)
    else:
        yield rows_of_lines(json_lines(session, spec, heads), spec)


def json_lines(session: SparkSession, spec: Declared, heads: FileHeads) -> DataFrame:
    """Return the files' lines, or whole documents, in `value`, with FILE, BLOCK and ROW."""
    is_whole = spec.options.get("multiLine", "false").lower() == "true"
    lines = session.read.options(**spec.options).text(uris(heads), wholetext=is_whole)
    encoding = spec.options.get("encoding", spec.options.get("charset", "UTF-8"))
    line = LINE if encoding == "UTF-8" else f"decode(CAST({LINE} AS BINARY), {text(encoding)})"
    decoded = lines.selectExpr(f"ltrim('\ufeff', {line}) AS {LINE}", *METADATA)
    return decoded.where(f"trim(BOTH ' \\t\\r\\n' FROM {LINE}) <> ''")


def _parquet(
    session: SparkSession, spec: Declared, heads: FileHeads, limits: Limits
) -> Iterator[DataFrame]:
    for pairs, group in group_heads(heads, lambda h: _stored_types(spec, h)).items():
        here = partial(parquet_here, session, pairs, names=spec.names, options=spec.options)
        found = read_here(session, group, here, limits)
        if found is not None:
            yield convert(found, spec, origin=_origin(group))
            continue
        voids = find_voided(session, pairs, ddl(spec))
        nanos = [n for n, t in pairs if t == NANOS]
        values = {n: f"`{n}`" for n, _ in pairs}
        for n in nanos:
            before = f"CASE WHEN `{n}` % 1000 < 0 THEN 1 ELSE 0 END"
            values[n] = f"timestamp_micros(`{n}` div 1000L - {before})"
        values |= {n: v.value for n, v in voids.items()}
        types = dict(pairs) | dict.fromkeys(nanos, "BIGINT")
        types |= {n: v.read_as for n, v in voids.items()}
        names = {n: field_name(spec.names.get(n, n)) for n in types}
        schema = ", ".join(f"{names[n]} {t}" for n, t in types.items())
        reader = session.read.schema(schema or StructType()).options(**spec.options)
        stored = reader.parquet(*uris(group))
        rows = stored.selectExpr(*(f"{names[n]} AS `{n}`" for n in types), *METADATA)
        read = (f"{value} AS `{n}`" for n, value in values.items())
        cut = " + ".join(f"CASE WHEN `{n}` % 1000 <> 0 THEN 1 ELSE 0 END" for n in nanos)
        known = rows.selectExpr(*read, FILE, BLOCK, *([f"{cut} AS {CUT}"] if cut else []))
        yield convert(known, spec, origin=_origin(group))


def _origin(heads: FileHeads) -> str:
    return f"file {heads[0].file.shown}"


def _stored_types(spec: Declared, found: FileHead) -> tuple[tuple[str, str], ...]:
    """Return the wanted columns with values in the file, with its types."""
    of = dict(zip(found.names, found.types, strict=True))
    if strange := [name for name in spec.of_files if of.get(name) == ""]:
        raise QualityStop(
            f"{spec.pipeline}.{spec.name}: Spark has no type for the column(s) "
            f"{', '.join(strange)} as file {found.file.shown} stores them"
        )
    wanted = spec.of_files.items()
    return tuple((own, of[name]) for name, own in wanted if of.get(name, VOID) != VOID)


def store(session: SparkSession, spec: Declared, limits: Limits) -> DataFrame:
    """Read Delta tables, JDBC and other stores: typed rows without files or an order."""
    if spec.format == "delta" and set(spec.options) == {VERSION}:
        version, names = int(spec.options[VERSION]), tuple(spec.of_files)
        rows = read_version(session, spec.path, version, names, limits)
    else:
        reader = session.read.format(spec.format).options(**spec.options)
        rows = reader.load(spec.path) if spec.path else reader.load()
    if missing := [name for name in spec.of_files if name not in rows.columns]:
        raise QualityStop(
            f"{spec.pipeline}.{spec.name}: {spec.path or spec.format} lacks the declared "
            f"column(s) {', '.join(missing)}; it has {', '.join(rows.columns)}"
        )
    whole = f"xxhash64(to_json(struct({', '.join(f'`{c}`' for c in spec.types)})))"
    own = f"{text(spec.path)} AS {FILE}", f"0L AS {BLOCK}", f"{whole} AS {ROW}"
    columns = (f"{field_name(name)} AS `{c}`" for name, c in spec.of_files.items())
    known = rows.selectExpr(*columns).selectExpr("*", *own)
    return convert(known, spec, origin=spec.path or spec.format)


READERS: Mapping[str, FileReader] = {"json": _json, "csv": read_csv, "parquet": _parquet}
