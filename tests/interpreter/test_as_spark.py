"""What the interpreter answers, Spark answers, too: functions, casts, aggregates and windows.

Expressions by chance are first computed row by row in the interpreter, which may refuse a row. The
others go to Spark, many expressions in one query. Spark must give the same values; an error of
Spark's, also one of analysis, is a difference as well.
"""

import functools
import math
import os
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType
from tests.interpreter import samples

from sluice.delta.reading.local import plain, to_arrow
from sluice.interpreter.functions.known import FUNCTIONS
from sluice.interpreter.local_session import Session, interpreting
from sluice.interpreter.refusals import UnsupportedLocally
from sluice.interpreter.values.arrow_conversion import from_arrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SEED = int(os.environ.get("SLUICE_SEED", "20"))
EACH = int(os.environ.get("SLUICE_EACH", "4"))
TRIED = 60  # expressions of each function
AT_ONCE = 60  # expressions in one query


@pytest.fixture(scope="module")
def table(real_spark: "SparkSession") -> pa.Table:
    """The samples, as Spark makes them."""
    return to_arrow(real_spark.createDataFrame(samples.rows(Random(SEED)), samples.SCHEMA))


@pytest.fixture(scope="module")
def schema(real_spark: "SparkSession") -> StructType:
    return real_spark.createDataFrame([], samples.SCHEMA).schema


def answered(table: pa.Table, schema: StructType, sql: str) -> dict[int, Any] | None:
    """Each row's value, without rows that are refused; None if the expression is."""
    session = Session()
    with interpreting(session):
        try:
            assert session.createDataFrame([], schema).selectExpr(f"{sql} AS found").schema
        except UnsupportedLocally:
            return None
        return dict(_computed(session, table, schema, sql))


def _computed(
    session: Session, table: pa.Table, schema: StructType, sql: str
) -> Iterator[tuple[int, Any]]:
    """Yield the rows' values; of rows that are refused together, each half by itself."""
    rows = session.createDataFrame(plain(table), schema)
    try:
        yield from values(rows.selectExpr("id", f"{sql} AS found").toArrow()).items()
    except UnsupportedLocally:
        half = table.num_rows // 2
        for part in (table.slice(0, half), table.slice(half)) if half else ():
            yield from _computed(session, part, schema, sql)


def values(rows: pa.Table) -> dict[int, Any]:
    """Each row's value, as the interpreter holds values: also dates that Python has none for."""
    type_ = from_arrow_schema(rows.schema)["found"].dataType
    found = from_arrow(rows["found"], type_)
    name = type_.simpleString()
    return {i: (name, shown(v)) for i, v in zip(rows["id"].to_pylist(), found, strict=True)}


def shown(value: Any) -> Any:
    """A value that equals only its like: NaN itself, and -0.0 not 0.0."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else (math.copysign(1.0, value), value)
    if isinstance(value, list | tuple):
        return [shown(v) for v in value]
    return value


def compare(rows: "DataFrame", found: Sequence[tuple[str, dict[int, Any]]]) -> Iterator[str]:
    """Yield the differences of Spark's answers, in halves if it has none."""
    cases = [
        f"CASE WHEN id IN ({', '.join(map(str, of))}) THEN {sql} END AS c{nth}"
        for nth, (sql, of) in enumerate(found)
    ]
    try:
        told = rows.selectExpr("id", *cases).toArrow()
    except PySparkException as error:
        if len(found) == 1:
            yield f"{found[0][0]}: {str(error).splitlines()[0]}"
            return
        half = len(found) // 2
        yield from compare(rows, found[:half])
        yield from compare(rows, found[half:])
        return
    for nth, (sql, of) in enumerate(found):
        sparks = values(told.select(["id", f"c{nth}"]).rename_columns(["id", "found"]))
        wrong = {i: (of[i], sparks[i]) for i in of if of[i] != sparks[i]}
        if wrong:
            number, (ours, theirs) = next(iter(wrong.items()))
            yield f"{sql}: row {number}: {ours!r} here, {theirs!r} in Spark"


def test_functions_and_casts_by_chance(
    spark: "SparkSession", table: pa.Table, schema: StructType
) -> None:
    chosen = (*samples.LAMBDAS, *samples.TYPED)
    found = [(sql, of) for sql in chosen if (of := answered(table, schema, sql))]
    assert [sql for sql, _ in found] == list(chosen)
    compared = {word for sql, _ in found for word in re.split(r"[\s(),]+", sql.lower())}
    names = [*samples.CASTS, *sorted(FUNCTIONS)]
    for name, several in zip(names, samples.expressions(Random(SEED)), strict=True):
        some = list(_some(table, schema, several))
        found += some
        compared |= {name} if some else set()
    unseen = set(FUNCTIONS) - compared
    assert not unseen or "SLUICE_SEED" in os.environ
    rows = spark.createDataFrame(plain(table), schema)
    parts = (found[at : at + AT_ONCE] for at in range(0, len(found), AT_ONCE))
    wrong = [what for part in parts for what in compare(rows, part)]
    assert not wrong, "\n".join(wrong)
    assert len(found) > 90 * EACH


def _some(
    table: pa.Table, schema: StructType, several: Iterator[str]
) -> Iterator[tuple[str, dict[int, Any]]]:
    """Yield a few that are answered, some value not null, of the first ones."""
    left = EACH
    for sql in islice(several, TRIED):
        of = answered(table, schema, sql) if left else None
        if of and any(value is not None for _, value in of.values()):
            left -= 1
            yield sql, of


def test_window_functions_by_chance(
    spark: "SparkSession", table: pa.Table, schema: StructType
) -> None:
    rows = spark.createDataFrame(plain(table), schema)
    asked = dict.fromkeys(samples.windows(Random(SEED), EACH))
    found = [(s, of) for s in asked if (of := whole(table, schema, ["id", f"{s} AS found"]))]
    assert not list(compare(rows, found))
    assert len(found) > 10 * EACH


def whole(table: pa.Table, schema: StructType, columns: Sequence[str]) -> dict[int, Any] | None:
    """Each row's value, computed together; None if that is refused."""
    session = Session()
    with interpreting(session):
        try:
            rows = session.createDataFrame(plain(table), schema)
            return values(rows.selectExpr(*columns).toArrow())
        except UnsupportedLocally:
            return None


@pytest.mark.parametrize("by", ["CAST(NULL AS INT)", "CAST(b AS INT)", "j"])
def test_aggregates_by_chance(
    spark: "SparkSession", table: pa.Table, schema: StructType, by: str
) -> None:
    rows, wrong, count = spark.createDataFrame(plain(table), schema), [], 0
    for sql in dict.fromkeys(samples.aggregates(Random(f"{SEED}{by}"), EACH)):
        session = Session()
        with interpreting(session):
            try:
                ours = _by(session.createDataFrame(plain(table), schema), by, sql)
            except UnsupportedLocally:
                continue
        count += 1
        theirs = _by(rows, by, sql)
        if ours != theirs:
            wrong.append(f"{sql}: {ours} here, {theirs} in Spark")
    assert not wrong, "\n".join(wrong)
    assert count > 5 * EACH


def _by(rows: "DataFrame", by: str, sql: str) -> dict[int, Any]:
    grouped = rows.selectExpr("*", f"{by} AS g_").groupBy("g_").agg(F.expr(sql).alias("found"))
    return values(grouped.withColumnRenamed("g_", "id").toArrow())


@pytest.mark.usefixtures("real_spark")
@pytest.mark.parametrize("within", ["{}", "struct(1 AS n, {} AS m)", "array({})", "map('k', {})"])
def test_maps_of_the_same_entries_are_one_group(within: str, spark: "SparkSession") -> None:
    """Whatever the order of their entries; the group shows them in that of their keys."""
    pairs = ["('b', 1, 'a', 2)", "('a', 2, 'b', 1)", "('é', null, 'z', 0)", "('z', 0, 'é', null)"]
    texts = [within.format(f"map{p}") for p in pairs]
    every = " UNION ALL ".join(f"SELECT {text} AS m" for text in texts)
    sql = f"SELECT m, count(*) AS n FROM ({every}) GROUP BY m"
    found = spark.sql(sql).toArrow().to_pylist()
    session = Session()
    with interpreting(session):
        each = [session.range(1).selectExpr(f"{text} AS m") for text in texts]
        rows = functools.reduce(lambda a, b: a.union(b), each)
        ours = rows.groupBy("m").agg(F.expr("count(*) AS n")).toArrow().to_pylist()
    assert sorted(ours, key=str) == sorted(found, key=str)
    assert [row["n"] for row in found] == [2, 2]
