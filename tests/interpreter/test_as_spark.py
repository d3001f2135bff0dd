"""What the interpreter answers, Spark answers, too: functions, casts, aggregates and windows.

Expressions by chance are first computed row by row in the interpreter, which may refuse a row. The
others go to Spark, many expressions in one query. Spark must give the same values; an error of
Spark's, also one of analysis, is a difference as well. The answers for the default seed must be
those in `answers.jsonl`.
"""

import functools
import os
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql.types import StructType
from tests.interpreter import answers, samples
from tests.interpreter.answers import Answer
from tests.support.engines import differs

from sluice.interpreter.expressions.compiling import FUNCTIONS
from sluice.interpreter.local_session import Session, interpreting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.usefixtures("real_spark")

SEED = os.environ.get("SLUICE_SEED", answers.SEED)
EACH = os.environ.get("SLUICE_EACH", answers.EACH)
TRIED = 60  # expressions of each function
AT_ONCE = 60  # expressions in one query

Found = Sequence[tuple[str, Answer]]


@pytest.fixture(scope="module")
def sampled() -> tuple[pa.Table, StructType]:
    return answers.sampled()


def compare(rows: "DataFrame", found: Found) -> Iterator[str]:
    """Yield the differences of Spark's answers, in halves if it has none."""
    cases = [
        f"CASE WHEN id IN ({', '.join(map(str, of))}) THEN {sql} END AS c{nth}"
        for nth, (sql, of) in enumerate(found)
    ]
    try:
        told = rows.selectExpr("id", *cases).toArrow()
    except PySparkException as error:
        if len(found) == 1:
            if not differs(found[0][0]):
                yield f"{found[0][0]}: {str(error).splitlines()[0]}"
            return
        half = len(found) // 2
        yield from compare(rows, found[:half])
        yield from compare(rows, found[half:])
        return
    for nth, (sql, of) in enumerate(found):
        sparks = answers.values(told.select(["id", f"c{nth}"]).rename_columns(["id", "found"]))
        wrong = {i: (of[i], sparks[i]) for i in of if of[i] != sparks[i]}
        if wrong:
            number, (ours, theirs) = next(iter(wrong.items()))
            yield f"{sql}: row {number}: {ours!r} here, {theirs!r} in Spark"


def record(config: pytest.Config, part: str, found: Found) -> None:
    """Require that Spark's answers are those that are recorded, or record them."""
    if (SEED, EACH) != (answers.SEED, answers.EACH):
        return
    described = [answers.describe(sql, of) for sql, of in found if not differs(sql)]
    if config.getoption("update_answers"):
        answers.write(part, described)
    recorded = [one for one in answers.read(part) if not differs(one[0])]
    others = {one[0] for one in recorded if one not in described}
    others |= {one[0] for one in described if one not in recorded}
    hint = f"{answers.FILE.name} is old; write it by --update-answers"
    assert not others, "\n".join([hint, *sorted(others)])


def test_functions_and_casts_by_chance(
    spark: "SparkSession", sampled: tuple[pa.Table, StructType], pytestconfig: pytest.Config
) -> None:
    table, schema = sampled
    chosen = (*samples.LAMBDAS, *samples.TYPED)
    found = [(sql, of) for sql in chosen if (of := answers.of_rows(table, schema, sql))]
    assert [s for s, _ in found if not differs(s)] == [s for s in chosen if not differs(s)]
    compared = {word for sql, _ in found for word in re.split(r"[\s(),]+", sql.lower())}
    names = [*samples.CASTS, *sorted(FUNCTIONS)]
    for name, several in zip(names, samples.expressions(SEED), strict=True):
        some = list(_some(table, schema, several))
        found += some
        compared |= {name} if some else set()
    unseen = set(FUNCTIONS) - compared
    assert not unseen or "SLUICE_SEED" in os.environ
    rows = spark.createDataFrame(table, schema)
    parts = (found[at : at + AT_ONCE] for at in range(0, len(found), AT_ONCE))
    wrong = [what for part in parts for what in compare(rows, part)]
    assert not wrong, "\n".join(wrong)
    assert len(found) > 90 * int(EACH)
    record(pytestconfig, "rows", list(dict(found).items()))


def _some(
    table: pa.Table, schema: StructType, several: Iterator[str]
) -> Iterator[tuple[str, Answer]]:
    """Yield a few that are answered, some value not null, of the first ones."""
    left = int(EACH)
    for sql in islice(several, TRIED):
        of = answers.of_rows(table, schema, sql) if left else None
        if of and any(value is not None for _, value in of.values()):
            left -= 1
            yield sql, of


def test_window_functions_by_chance(
    spark: "SparkSession", sampled: tuple[pa.Table, StructType], pytestconfig: pytest.Config
) -> None:
    asked = dict.fromkeys(samples.windows(Random(SEED), int(EACH)))
    found = [(sql, of) for sql in asked if (of := answers.of_all_rows(*sampled, sql))]
    assert not list(compare(spark.createDataFrame(*sampled), found))
    assert len(found) > 10 * int(EACH)
    record(pytestconfig, "windows", found)


@pytest.mark.parametrize("by", answers.GROUPS)
def test_aggregates_by_chance(
    spark: "SparkSession",
    sampled: tuple[pa.Table, StructType],
    by: str,
    pytestconfig: pytest.Config,
) -> None:
    rows = spark.createDataFrame(*sampled)
    asked = dict.fromkeys(samples.aggregates(Random(f"{SEED}{by}"), int(EACH)))
    found = [(sql, of) for sql in asked if (of := answers.of_groups(*sampled, by, sql))]
    both = [(sql, ours, answers.grouped(rows, by, sql)) for sql, ours in found]
    wrong = [f"{sql}: {a} here, {b} in Spark" for sql, a, b in both if a != b]
    assert not wrong, "\n".join(wrong)
    assert len(found) > 5 * int(EACH)
    record(pytestconfig, by, found)


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
