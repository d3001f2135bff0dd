"""Answers to SQL over the samples: the interpreter's, and Spark's as `answers.jsonl` records them.

An answer is the type and value of each row, without rows that the interpreter refuses, or of each
group. `test_as_spark.py` asks Spark and writes the file with `--update-answers`; `test_recorded.py`
compares with the file, and needs no JVM.
"""

import json
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType
from tests.interpreter import samples

from sluice.delta.reading.local import to_arrow, to_spark_types
from sluice.interpreter import UnsupportedLocally
from sluice.interpreter.local_session import Session, interpreting
from sluice.interpreter.values import from_arrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FILE = Path(__file__).with_name("answers.jsonl")
SEED, EACH = "20", "4"  # of those that are recorded
GROUPS = ("CAST(NULL AS INT)", "CAST(b AS INT)", "j")

Answer = dict[int | None, tuple[str, Any]]  # of rows by number, or of groups
Recorded = tuple[str, str, dict[str, list[int | None]]]  # SQL, type, and the rows of each value


def sampled() -> tuple[pa.Table, StructType]:
    """The samples, and their schema in Spark's types."""
    session = Session()
    with interpreting(session):
        chance = Random(os.environ.get("SLUICE_SEED", SEED))
        rows = session.createDataFrame(samples.rows(chance), samples.SCHEMA)
        return to_spark_types(to_arrow(rows)), rows.schema


def of_rows(table: pa.Table, schema: StructType, sql: str) -> Answer | None:
    """Each row's value, without rows that are refused; None if the expression is."""
    session = Session()
    with interpreting(session):
        try:
            assert session.createDataFrame([], schema).selectExpr(f"{sql} AS found").schema
        except UnsupportedLocally:
            return None
        return dict(_of_halves(session, table, schema, sql))


def _of_halves(
    session: Session, table: pa.Table, schema: StructType, sql: str
) -> Iterator[tuple[int | None, tuple[str, Any]]]:
    """Yield the rows' values; of rows that are refused together, each half by itself."""
    rows = session.createDataFrame(table, schema)
    try:
        yield from values(rows.selectExpr("id", f"{sql} AS found").toArrow()).items()
    except UnsupportedLocally:
        half = table.num_rows // 2
        for part in (table.slice(0, half), table.slice(half)) if half else ():
            yield from _of_halves(session, to_spark_types(part), schema, sql)


def of_all_rows(
    table: pa.Table, schema: StructType, sql: str, rows: Sequence[int | None] | None = None
) -> Answer | None:
    """The values of all rows, or of these, computed together; None if that is refused."""
    session = Session()
    some = table if rows is None else to_spark_types(table.filter(pc.field("id").isin(rows)))
    with interpreting(session):
        try:
            given = session.createDataFrame(some, schema)
            return values(given.selectExpr("id", f"{sql} AS found").toArrow())
        except UnsupportedLocally:
            return None


def of_groups(table: pa.Table, schema: StructType, by: str, sql: str) -> Answer | None:
    """The aggregate's value for each group; None if it is refused."""
    session = Session()
    with interpreting(session):
        try:
            return grouped(session.createDataFrame(table, schema), by, sql)
        except UnsupportedLocally:
            return None


def grouped(rows: "DataFrame", by: str, sql: str) -> Answer:
    """The aggregate's value for each group, from the session of the rows."""
    found = rows.selectExpr("*", f"{by} AS g_").groupBy("g_").agg(F.expr(sql).alias("found"))
    return values(found.withColumnRenamed("g_", "id").toArrow())


def values(rows: pa.Table) -> Answer:
    """Each row's value, as the interpreter holds values: also dates that Python has none for."""
    type_ = from_arrow_schema(rows.schema, prefer_timestamp_ntz=True)["found"].dataType
    found = from_arrow(rows["found"], type_)
    name = type_.simpleString()
    return {i: (name, _told(v)) for i, v in zip(rows["id"].to_pylist(), found, strict=True)}


def _told(value: Any) -> Any:
    """A value that equals only its like: NaN itself, and -0.0 not 0.0."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else (math.copysign(1.0, value), value)
    if isinstance(value, list | tuple):
        return [_told(v) for v in value]
    return value


def describe(sql: str, answer: Answer) -> Recorded:
    """Return an answer as it is recorded: which rows have which value."""
    rows: dict[str, list[int | None]] = {}
    for row in sorted(answer, key=lambda row: (row is not None, row)):
        rows.setdefault(repr(answer[row][1]), []).append(row)
    ((type_, _),) = {(type_, None) for type_, _ in answer.values()}
    return sql, type_, rows


def read(part: str) -> list[Recorded]:
    """Return the recorded answers of a part."""
    return [(sql, type_, rows) for of, sql, type_, rows in _read_all() if of == part]


def write(part: str, found: Iterable[Recorded]) -> None:
    """Replace the recorded answers of a part."""
    others = [one for one in _read_all() if one[0] != part]
    lines = [json.dumps(one) for one in sorted([*others, *((part, *one) for one in found)])]
    FILE.write_text("\n".join(lines) + "\n", "utf-8")


def _read_all() -> list[tuple[str, str, str, dict[str, list[int | None]]]]:
    text = FILE.read_text("utf-8") if FILE.exists() else ""
    return [tuple(json.loads(line)) for line in text.splitlines()]
