"""Delivered files as rows of the declared columns; unreadable rows keep their reason.

Every row of every file comes out. A row that doesn't parse, has a wrong type or a null key carries
`_sluice_reason` and `_sluice_raw` (its original text). A file that can't be opened becomes one such
row, or an error if the table needs all of its files (`IS_WHOLE`). Nothing is dropped here.

A declared `change` column contains each row's operation, in the user's words. Here the word becomes
`insert` (the row is valid from now on) or `delete` (it is not).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from sluice.declare.declared import FILE, OP, REASON, Change, Declared
from sluice.delta.places.folders import LandedFile
from sluice.delta.reading.local import is_bare
from sluice.engine.query.operator import names, union
from sluice.errors import QualityStop, Retryable
from sluice.files.conversion import BLOCK, ROW, empty
from sluice.files.filehead import FileHead, Gone, Unreadable, head_of
from sluice.files.formats import READERS, store
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
