"""Delivered files as rows of the declared columns; unreadable rows keep their reason.

There is one reader per format.

Every row of every file comes out. A row that doesn't parse, has a wrong type or a null key carries
`_sluice_reason` and `_sluice_raw` (its original text). A file that can't be opened becomes one such
row, or an error if the table needs all of its files (`IS_WHOLE`). Nothing is dropped here.

A declared `change` column contains each row's operation, in the user's words. Here the word becomes
`insert` (the row is valid from now on) or `delete` (it is not).

Values of CSV and JSON are read as texts. The rules of `files.spelled` convert them.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, NullType, StructType

from sluice.declare.declared import CUT, FILE, OP, REASON, Change, Declared
from sluice.delta.places.folders import LandedFile
from sluice.delta.reading.foreign import read_version
from sluice.delta.reading.local import is_bare
from sluice.engine.operator import names, union
from sluice.errors import QualityStop, Retryable
from sluice.files.conversion import BLOCK, METADATA, NANOS, ROW, VOID, convert, ddl, ddl_of, empty
from sluice.files.csv import read_csv
from sluice.files.filehead import FileHead, Gone, Unreadable, group_heads, head_of, uris
from sluice.files.here import parquet_here, read_here
from sluice.files.json import FAULT, LINE, MARK, lines_here, rows_of_lines
from sluice.files.spelled import Texts, of_texts
from sluice.gate.sql import field_name, text
from sluice.language.names import ID
from sluice.limits import Limits

__all__ = ["OP", "POSITION", "comparable", "identify", "identity"]
POSITION = "_sluice_position"


def identity(rows: DataFrame, columns: tuple[str, ...], ordinal: Column) -> Column:
    """Return the hidden identity of a row without a key: a hash of its columns, and its ordinal."""
    return F.concat_ws("-", F.hex(F.xxhash64(*comparable(rows, columns))), ordinal.cast("string"))


def identify(rows: DataFrame, columns: tuple[str, ...]) -> DataFrame:
    """Return `rows` of one interval with ID, the same for equal rows in any reading order."""
    values = comparable(rows, columns)
    marks = rows.withColumn("_hash", F.xxhash64(*values))
    in_order = Window.partitionBy("_hash").orderBy(*values)
    numbered = marks.withColumn("_ordinal", F.row_number().over(in_order))
    known = identity(rows, columns, F.col("_ordinal"))
    return numbered.withColumn(ID, known).drop("_hash", "_ordinal")


def comparable(rows: DataFrame, columns: tuple[str, ...]) -> list[Column]:
    """Return the columns, as JSON if Spark neither hashes nor orders their type."""
    types = dict(rows.dtypes)
    return [
        F.to_json(F.struct(f"`{c}`")) if "map<" in types[c] else F.col(f"`{c}`") for c in columns
    ]


def unknown_word(change: Change) -> Column:
    """Return the reason for a row whose word is not declared, else null."""
    known = [*change.insert, *change.update, *change.delete, *change.update_before, *change.ignore]
    word = F.col(f"`{change.column}`")
    says = F.concat(F.lit(f"column {change.column}: "), F.coalesce(word, F.lit("null")))
    unknown = word.isNull() | ~word.isin(known)
    return F.when(unknown, F.concat(says, F.lit(f" is none of {', '.join(known)}")))


def operations(rows: DataFrame, change: Change | None) -> DataFrame:
    """Add OP, and leave out ignored rows."""
    if change is None:
        return rows.withColumn(OP, F.lit("insert"))
    word = F.col(f"`{change.column}`")
    deletes = [*change.delete, *change.update_before]
    kept = rows.where(~word.isin(list(change.ignore))) if change.ignore else rows
    return kept.withColumn(OP, F.when(word.isin(deletes), "delete").otherwise("insert"))


def place_rows(rows: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """Add POSITION: each row's place among those of its key, in the order of the files.

    Rows that have a REASON don't count.
    """
    by = Window.partitionBy(*names(key), F.isnull(REASON)).orderBy(FILE, BLOCK, ROW)
    place = F.row_number().over(by) if key else F.lit(1)
    return rows.withColumn(POSITION, place.cast("bigint")).drop(BLOCK, ROW)


@dataclass(frozen=True)
class Look:
    """Columns of each file, and the files that can't be read."""

    files: tuple[LandedFile, ...]
    heads: tuple[FileHead, ...] = ()
    broken: tuple[tuple[LandedFile, str], ...] = ()


@dataclass(frozen=True)
class Reading:
    """Rows of the declared columns and conversion.OWN; BLOCK and ROW give the order in a file."""

    rows: DataFrame
    warnings: tuple[str, ...] = ()


def read_files(
    session: SparkSession, spec: Declared, files: Sequence[LandedFile], limits: Limits
) -> Reading:
    """Read all rows of the files; of a store without files, all of its rows.

    Raises QualityStop if a file lacks a declared column, or has it with another kind of type.
    """
    return rows_of(session, spec, look(spec, files), limits)


def is_of_files(spec: Declared) -> bool:
    """Return whether it is read file by file."""
    return spec.format in READERS


def look(spec: Declared, files: Sequence[LandedFile]) -> Look:
    """Look at files for the first time, without Spark.

    Raises QualityStop if one lacks a declared column, or if one that the table needs can't be read.
    """
    if spec.format not in READERS:
        return Look(tuple(files))
    if is_bare():  # Parquet has types besides names
        declared = FileHead(LandedFile(uri="", size=0, modified=0), tuple(spec.of_files))
        return Look(tuple(files), () if spec.format == "parquet" else (declared,))
    heads, broken = _heads(spec, files)
    if broken and spec.IS_WHOLE:
        file, why = broken[0]
        raise QualityStop(
            f"{_id(spec)}: {file.shown} can't be read: {why}",
            hint="nothing was committed: without that file's rows the table would not be whole; "
            "fix the file, or remove it",
        )
    return Look(tuple(files), tuple(heads), tuple(broken))


def rows_of(session: SparkSession, spec: Declared, seen: Look, limits: Limits) -> Reading:
    """Read all rows of checked files; columns that a file lacks are null."""
    none = empty(session, spec)
    if spec.format not in READERS:
        is_there = bool(seen.files) or spec.format != "delta"
        return Reading(union([none, store(session, spec, limits)]) if is_there else none)
    parts = [none, *READERS[spec.format](session, spec, seen.heads, limits)]
    if seen.broken:
        bad = [(f"the file can't be read: {why}", file.uri) for file, why in seen.broken]
        parts.append(session.createDataFrame(bad, f"{REASON} STRING, {FILE} STRING"))
    warnings = [f"{file.shown} can't be read: {why}" for file, why in seen.broken]
    extra = {name or "(no name)" for head in seen.heads for name in head.names} - {*spec.of_files}
    if extra:
        warnings = [f"columns that `schema` lacks are ignored: {_cut(sorted(extra))}", *warnings]
    return Reading(union(parts), tuple(f"{_id(spec)}: {what}" for what in warnings))


def _heads(
    spec: Declared, files: Sequence[LandedFile]
) -> tuple[list[FileHead], list[tuple[LandedFile, str]]]:
    """Return the columns of each file, and the files that can't be read."""
    heads, broken = [], []
    for file in files:
        if file.fault:
            broken.append((file, file.fault))
            continue
        if file.size == 0 and spec.format != "json":  # an empty file of JSON lines has no rows
            broken.append((file, "it is empty"))
            continue
        try:
            head = head_of(file, spec.format, spec.options)
        except Unreadable as error:
            if isinstance(error, Gone) and spec.delivery != "stream":
                raise Retryable(f"{_id(spec)}: {file.shown}: {error}") from error
            broken.append((file, str(error)))
            continue
        if head.is_empty:
            broken.append((file, "it is empty"))
            continue
        if head.is_complete:
            _check_columns(spec, head)
        heads.append(head)
    return heads, broken


def _check_columns(spec: Declared, head: FileHead) -> None:
    missing = [name for name in spec.of_files if name not in head.names]
    alike = Counter(name.lower() for name in head.names)
    wanted = {name.lower() for name in (head.names if spec.takes_new_columns else spec.of_files)}
    several = {name for name, count in alike.items() if count > 1 and name in wanted and name}
    twice = [name for name in dict.fromkeys(head.names) if name.lower() in several]
    if not missing and not twice:
        return
    what = (
        f"lacks the declared column(s) {', '.join(missing)}; it has {_cut(head.names)}"
        if missing
        else f"has more than one column named {', '.join(twice)}"
    )
    raise QualityStop(
        f"{_id(spec)}: file {head.file.shown} {what}",
        hint="nothing was committed; fix the file or the source's `schema`, `names` or `options`",
    )


def _cut(names: Sequence[str], most: int = 400) -> str:
    shown = ascii(", ".join(names))[1:-1]
    return shown if len(shown) <= most else shown[:most] + "..."


def _id(spec: Declared) -> str:
    return f"{spec.pipeline}.{spec.name}"


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
