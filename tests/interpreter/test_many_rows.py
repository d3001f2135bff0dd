"""Two million rows by chance, through every aggregate and join by both engines: equal rows."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from sluice.interpreter.local_session import Session, interpreting
from sluice.spark.session import LARGE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.usefixtures("real_spark")

SEED = os.environ.get("SLUICE_SEED", "0")
ROWS, GROUPS, KEYS, OTHERS = 2_000_000, 50_000, 30_000, 40_000
EXTREMES = [f"{how}({c})" for how in ("min", "max") for c in ("n", "x", "m", "w", "b", "t", "d")]
AGGREGATES = (
    (
        *("count(*)", "count(n)", "count_if(b)", "count(*) FILTER (WHERE b)", *EXTREMES),
        *("sum(n)", "sum(x)", "sum(m)", "avg(n)", "avg(x)", "avg(m)"),
        *("min_by(w, id)", "max_by(m, id)", "max_by(n, id, 2)", "first(g)", "last(g)"),
        *("bool_and(b)", "bool_or(b)", "every(b)", "some(b)"),
    ),
    ("sort_array(collect_list(n))", "sort_array(collect_set(k))"),
    ("count(DISTINCT k)",),
    ("sum(DISTINCT k)",),
)
JOINS = (
    ("inner", "l.k = r.k"),
    ("left", "l.k <=> r.k"),
    ("right", "l.k = r.k AND l.n > r.v"),
    ("full", "l.k = r.k"),
    ("left_semi", "l.k = r.k AND l.n > r.v"),
    ("left_anti", "l.k <=> r.k"),
)


def nullable(
    chance: np.random.Generator, values: Any, type_: pa.DataType | None = None, share: float = 0.05
) -> Any:
    """Return the values; a share of them is null."""
    return pa.array(values, type_, mask=chance.random(len(values)) < share)


def left(chance: np.random.Generator) -> pa.Table:
    """Return rows whose fractions are quarters, so that they add up to the same in any order."""
    quarters, others = (chance.integers(-4_000, 4_000, ROWS) / 4 for _ in range(2))
    quarters[chance.random(ROWS) < 1e-5] = np.nan
    words = np.char.add("w\u00e9", chance.integers(0, 999, ROWS).astype(str))
    days = chance.integers(0, 20_000, ROWS).astype("int32")
    return pa.table(
        {
            "id": np.arange(ROWS),
            "g": chance.integers(0, GROUPS, ROWS),
            "k": nullable(chance, chance.integers(0, KEYS, ROWS)),
            "n": nullable(chance, chance.integers(-(10**6), 10**6, ROWS)),
            "x": nullable(chance, quarters),
            "m": nullable(chance, others).cast(pa.decimal128(9, 2)),
            "w": nullable(chance, words),
            "b": nullable(chance, chance.random(ROWS) < 0.9),
            "t": nullable(chance, chance.integers(0, 2**50, ROWS), pa.timestamp("us", "UTC")),
            "d": nullable(chance, days, pa.date32()),
        }
    )


def right(chance: np.random.Generator) -> pa.Table:
    """Return rows of keys of which some come twice, some match nothing, and few are null."""
    keys = nullable(chance, chance.integers(0, 2 * KEYS, OTHERS), share=1e-4)
    values = chance.integers(-(10**6), 10**6, OTHERS)
    return pa.table({"rid": np.arange(OTHERS), "k": keys, "v": values})


class Both:
    """The same tables in both engines."""

    def __init__(self, spark: "SparkSession", folder: Path) -> None:
        chance = np.random.default_rng(crc32(SEED.encode()))
        self.tables = {"l": left(chance), "r": right(chance)}
        self.here, self.spark, self.folder = Session(), spark, folder
        for name, rows in self.tables.items():
            pq.write_table(rows, folder / f"{name}.parquet")

    def found(self, query: Any) -> Iterator[pa.Table]:
        """Yield what a query finds here, and in Spark."""
        with interpreting(self.here):
            yield query(
                **{
                    name: self.here.createDataFrame(rows, from_arrow_schema(rows.schema))
                    for name, rows in self.tables.items()
                }
            ).toArrow()
        files = {name: str(self.folder / f"{name}.parquet") for name in self.tables}
        yield query(**{n: self.spark.read.parquet(file) for n, file in files.items()}).toArrow()


@pytest.fixture(scope="module")
def both(real_spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Both:
    """In a session of Spark that compiles its queries, as for large tables."""
    session = real_spark.newSession()
    for name, value in {**LARGE, "spark.sql.shuffle.partitions": "2"}.items():
        session.conf.set(name, value)
    return Both(session, tmp_path_factory.mktemp("many"))


def are_equal(here: pa.ChunkedArray, spark: pa.ChunkedArray) -> bool:
    """True if both hold the same values; fractions by how they are written, as NaN and -0.0 are."""
    is_exact = here.type == spark.type and not pa.types.is_floating(here.type)
    if is_exact and here.equals(spark):
        return True
    return list(map(repr, here.to_pylist())) == list(map(repr, spark.to_pylist()))


@pytest.mark.parametrize("aggregates", AGGREGATES, ids=lambda some: some[0])
def test_aggregates_of_two_million_rows(both: Both, aggregates: Sequence[str]) -> None:
    def query(l: "DataFrame", r: "DataFrame") -> "DataFrame":  # noqa: E741
        named = [F.expr(sql).alias(f"a{nth}") for nth, sql in enumerate(aggregates)]
        return l.groupBy("g").agg(*named)

    here, spark = (found.sort_by("g") for found in both.found(query))
    assert here.num_rows == spark.num_rows > 0
    assert here["g"].equals(spark["g"])
    for nth, sql in enumerate(aggregates):
        assert are_equal(here[f"a{nth}"], spark[f"a{nth}"]), sql


@pytest.mark.parametrize(("how", "condition"), JOINS)
def test_joins_of_two_million_rows(both: Both, how: str, condition: str) -> None:
    shown = ["l.id", "l.k"] if how in ("left_semi", "left_anti") else ["l.id", "r.rid", "r.k"]

    def query(l: "DataFrame", r: "DataFrame") -> "DataFrame":  # noqa: E741
        joined = l.alias("l").join(r.alias("r"), F.expr(condition), how)
        return joined.selectExpr(*shown)

    here, spark = (
        found.sort_by([(name, "ascending") for name in found.column_names])
        for found in both.found(query)
    )
    assert here.num_rows == spark.num_rows > 0
    assert here.cast(spark.schema).equals(spark)
