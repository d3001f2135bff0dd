"""Reading delivered files as rows of the declared columns; what can't be read keeps its reason.

Every row of every file comes out: one that doesn't parse, has a wrong type or a null key carries
`_sluice_reason` (and `_sluice_raw`, its text), and a file that can't be opened becomes one such
row. Nothing is dropped here.
"""

import csv
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.errors import QualityStop
from sluice.operators.operator import union
from sluice.quality.tally import FILE, RAW, REASON
from sluice.specs.dimension import Dimension
from sluice.specs.source import Source
from sluice.storage.landing import LandedFile

Declared = Source | Dimension
BLOCK, ROW = "_sluice_block", "_sluice_row"


def read(session: SparkSession, spec: Declared, files: Sequence[LandedFile]) -> DataFrame:
    """The declared columns, REASON, RAW, FILE, and BLOCK and ROW, which give the order in a file.

    Raises QualityStop if a file lacks a declared column.
    """
    schema = empty(session, spec)
    if not files:
        return schema
    reader = _READERS.get(spec.format)
    if reader is None:
        return _other(session, spec)
    return union([schema, *reader(session, spec, files)])


def empty(session: SparkSession, spec: Declared) -> DataFrame:
    """No rows, with all the columns of `read`."""
    return session.createDataFrame([], _with_own(spec))


def _with_own(spec: Declared) -> str:
    own = f"{REASON} STRING, {RAW} STRING, {FILE} STRING, {BLOCK} BIGINT, {ROW} BIGINT"
    return f"{ddl(spec)}, {own}"


def ddl(spec: Declared) -> str:
    """The declared columns as a Spark schema."""
    return ", ".join(f"`{c.name}` {c.type}" for c in spec.columns)


def _json(
    session: SparkSession, spec: Declared, files: Sequence[LandedFile]
) -> Iterable[DataFrame]:
    reader = session.read.format("json").options(**spec.options)
    schema = f"{ddl(spec)}, {RAW} STRING"
    rows = reader.schema(schema).option("columnNameOfCorruptRecord", RAW).load(_uris(files))
    return [_finish(rows, spec, _unparsed())]


def _csv(session: SparkSession, spec: Declared, files: Sequence[LandedFile]) -> Iterable[DataFrame]:
    options = {"header": "true", "mode": "PERMISSIVE", **spec.options}
    names = [c.name for c in spec.columns]
    if options["header"] != "true":
        by_header = {tuple(names): list(files)}
    else:
        by_header = _grouped(files, lambda f: _header(f, options))
    for header, group in by_header.items():
        if header == ():
            continue
        _check_columns(spec, header, group)
        types = {c.name: c.type for c in spec.columns}
        schema = ", ".join(f"`{_plain(n)}` {types.get(n, 'STRING')}" for n in header)
        reader = session.read.format("csv").options(**options)
        reader = reader.option("columnNameOfCorruptRecord", RAW).option("enforceSchema", "true")
        rows = reader.schema(f"{schema}, {RAW} STRING").load(_uris(group))
        yield _finish(rows, spec, _unparsed())


def _parquet(
    session: SparkSession, spec: Declared, files: Sequence[LandedFile]
) -> Iterable[DataFrame]:
    broken: list[tuple[LandedFile, str]] = []
    schemas: dict[str, list[LandedFile]] = defaultdict(list)
    for file in files:
        try:
            found = _parquet_schema(file)
        except (pa.ArrowException, OSError) as error:
            broken.append((file, str(error).splitlines()[0]))
            continue
        _check_columns(spec, found.names, [file])
        schemas[str(found.remove_metadata())].append(file)
    for group in schemas.values():
        rows = session.read.format("parquet").options(**spec.options).load(_uris(group))
        yield _cast(rows, spec)
    if broken:
        yield _unreadable(session, spec, broken)


def _other(session: SparkSession, spec: Declared) -> DataFrame:
    """Delta tables, JDBC and other stores: typed rows without files."""
    reader = session.read.format(spec.format).options(**spec.options)
    rows = reader.load(spec.path) if spec.path else reader.load()
    _check_columns(spec, rows.columns, [])
    return _cast(rows.withColumn(FILE, F.lit(spec.path)).withColumn(BLOCK, F.lit(0)), spec)


_Reader = Callable[[SparkSession, Declared, Sequence[LandedFile]], Iterable[DataFrame]]
_READERS: dict[str, _Reader] = {"json": _json, "csv": _csv, "parquet": _parquet}


def _cast(rows: DataFrame, spec: Declared) -> DataFrame:
    """Stored types to declared ones; a value that does not fit makes its row's reason."""
    wrong = [_misfit(c.name, c.type) for c in spec.columns]
    typed = [F.expr(f"try_cast(`{c.name}` AS {c.type})").alias(c.name) for c in spec.columns]
    own = [c for c in (FILE, BLOCK) if c in rows.columns]
    marked = rows.select(*typed, *own, *_metadata(rows), F.coalesce(*wrong).alias(REASON))
    return _finish(marked.withColumn(RAW, F.lit(None).cast("string")), spec, F.col(REASON))


def _misfit(name: str, type_: str) -> Column:
    lost = F.expr(f"`{name}` IS NOT NULL AND try_cast(`{name}` AS {type_}) IS NULL")
    value = F.substring(F.expr(f"cast(`{name}` AS STRING)"), 1, 80)
    return F.when(lost, F.concat(F.lit(f"column {name}: "), value, F.lit(f" is no {type_}")))


def _unparsed() -> Column:
    return F.when(F.col(RAW).isNotNull(), "does not parse as the declared schema")


def _finish(rows: DataFrame, spec: Declared, reason: Column) -> DataFrame:
    """The declared columns and our own, null keys among the reasons."""
    nulls = [
        F.when(F.col(f"`{c}`").isNull(), f"key column {c} is null")
        for c in spec.key
        if c in {d.name for d in spec.columns}
    ]
    known = rows if FILE in rows.columns else rows.select("*", *_metadata(rows))
    return known.select(
        *[F.col(f"`{c.name}`") for c in spec.columns],
        F.coalesce(reason, *nulls).alias(REASON),
        RAW,
        FILE,
        F.col(BLOCK).cast("bigint").alias(BLOCK),
        F.monotonically_increasing_id().alias(ROW),
    )


def _metadata(rows: DataFrame) -> list[Column]:
    if FILE in rows.columns:
        return []
    meta = F.col("_metadata")
    return [
        meta.getField("file_path").alias(FILE),
        meta.getField("file_block_start").alias(BLOCK),
    ]


def _unreadable(
    session: SparkSession, spec: Declared, broken: Sequence[tuple[LandedFile, str]]
) -> DataFrame:
    rows = [(f"the file can't be read: {why}", file.uri) for file, why in broken]
    frame = session.createDataFrame(rows, f"{REASON} STRING, {FILE} STRING")
    own = {RAW: "STRING", BLOCK: "BIGINT", ROW: "BIGINT"}
    absent = {**{c.name: c.type for c in spec.columns}, **own}
    for name, type_ in absent.items():
        frame = frame.withColumn(name, F.expr(f"CAST(NULL AS {type_})"))
    return frame.select(*empty(session, spec).columns)


def _check_columns(spec: Declared, found: Sequence[str], files: Sequence[LandedFile]) -> None:
    missing = [c.name for c in spec.columns if c.name not in found]
    if missing:
        where = f"file {files[0].uri}" if files else spec.path
        raise QualityStop(
            f"{spec.pipeline}.{spec.name}: {where} lacks the declared column(s) "
            f"{', '.join(missing)}; it has {', '.join(found)}",
            hint="mend the file, or take the column out of `schema`",
        )


def _grouped(
    files: Sequence[LandedFile], by: Callable[[LandedFile], tuple[str, ...]]
) -> dict[tuple[str, ...], list[LandedFile]]:
    groups: dict[tuple[str, ...], list[LandedFile]] = defaultdict(list)
    for file in files:
        groups[by(file)].append(file)
    return groups


def _header(file: LandedFile, options: dict[str, str]) -> tuple[str, ...]:
    filesystem, path = _open(file)
    with filesystem.open_input_stream(path) as stream:
        line = stream.read(1_000_000).decode(options.get("encoding", "utf-8"), "replace")
    first = line.lstrip("\ufeff").splitlines()[:1]
    separator = options.get("sep", options.get("delimiter", ","))
    return tuple(next(csv.reader(first, delimiter=separator), [])) if first else ()


def _parquet_schema(file: LandedFile) -> pa.Schema:
    filesystem, path = _open(file)
    return pq.read_schema(path, filesystem=filesystem)


def _open(file: LandedFile) -> tuple[FileSystem, str]:
    from pyarrow.fs import LocalFileSystem

    if "://" in file.uri:
        return FileSystem.from_uri(file.uri)  # type: ignore[no-any-return]
    return LocalFileSystem(), file.uri


def _plain(name: str) -> str:
    return name.replace("`", "``")


def _uris(files: Sequence[LandedFile]) -> list[str]:
    return [f.uri for f in files]
