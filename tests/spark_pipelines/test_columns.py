"""Columns of DataFrames: `df.name` is the column that Spark finds, or it is refused."""

from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.spark_pipelines.projects import read_here, write_project

SOURCES = """
from pyspark import pipelines as dp
from pyspark.sql import functions as F
from pyspark.sql.functions import col

def stream(name, schema):
    dp.table(name=name)(
        lambda: spark.readStream.format("json").load(f"landing/{name}", schema=schema))

stream("ta", "k INT, v INT, g STRING")
stream("tb", "k INT, w INT")
a, b = spark.table("ta"), spark.table("tb")
left, right, full = (a.join(b, "k", how) for how in ("left", "right", "full"))
one = spark.createDataFrame([(1, 5)], "k INT, u INT")
by_pivot = a.groupBy("g").pivot("k", [1, 2])
by_k = a.groupBy("k").agg(F.sum("v").alias("s"))
"""
TABLES = {
    "ta(k INT, v INT, g VARCHAR)": "(1, 10, 'x'), (2, 20, 'y'), (NULL, 30, 'z')",
    "tb(k INT, w INT)": "(2, 200), (3, 300)",
}
ANSWERS: dict[str, list[tuple[Any, ...]]] = {  # those of Spark
    "left.where(b.k.isNull()).select('k', 'v')": [(1, 10), (None, 30)],
    "left.withColumn('known', b.k.isNotNull()).select('k', 'known')": [
        (1, False),
        (2, True),
        (None, False),
    ],
    "left.groupBy(b.k).agg(F.count('*').alias('n'))": [(2, 1), (None, 2)],
    "left.drop(b.k).select('k')": [(1,), (2,), (None,)],
    "left.select('v').where(b.k.isNull())": [(10,), (30,)],
    "left.select(b['*']).where('w is null')": [(None, None), (None, None)],
    "right.where(a.k.isNull()).select('k', 'w')": [(3, 300)],
    "right.drop(a.k).select('k')": [(2,), (3,)],
    "full.select('k', a.k.alias('ak'), b.k.alias('bk'))": [
        (1, 1, None),
        (2, 2, 2),
        (3, None, 3),
        (None, None, None),
    ],
    "full.drop(a.k).select('k')": [(1,), (2,), (3,), (None,)],
    "full.select('v', 'w').where(a.k.isNotNull())": [(10, None), (20, 200)],
    "a.alias('l').join(b.alias('r'), 'k', 'left').where('r.k is null').select('k', 'v')": [
        (1, 10),
        (None, 30),
    ],
    "a.join(by_k, 'k', 'left').select(a.k, 's')": [(1, 10), (2, 20), (None, None)],
    "a.selectExpr('k', 'v').join(one.select('k', 'u'), a.k == one.k).select(a.v, 'u')": [(10, 5)],
    "a.select('k').subtract(b.select('k')).where(a.k == 1)": [(1,)],
    "a.rollup('g').agg(F.sum('v').alias('s')).where(a.g.isNull())": [(None, 60)],
    "a.withColumn('v', col('v') + 100).where(a.v > 50)": [],
    "a.withColumn('v', col('v') + 100).where('v > 120').select('k')": [(None,)],
    "a.withColumn('v', -a.v).withColumn('z', -col('v')).where(a.v > 15).select('v', 'z')": [
        (-30, 30),
        (-20, 20),
    ],
    "a.fillna({'k': 0}).where(a.k.isNull()).select('k', 'v')": [(0, 30)],
    "a.select('k', (a.v * -1).alias('v')).where(a.v > 15)": [(2, -20), (None, -30)],
    "a.select('k', (a.v * -1).alias('v')).orderBy(a.v.desc()).limit(1)": [(None, -30)],
    "a.withColumnRenamed('v', 'x').withColumnRenamed('k', 'v').where(a.v > 15).select('x')": [
        (20,),
        (30,),
    ],
    "a.drop('v').where('v > 15').select('g')": [("y",), ("z",)],
    "a.alias('x').select('x.g', (col('x.v') + 1).alias('v')).where('x.v > 20')": [("z", 31)],
    "a.withColumn('z', col('v')).select('z')": [(10,), (20,), (30,)],
    "a.withColumn('z', col('v')).drop(a.v).select('z')": [(10,), (20,), (30,)],
    "by_pivot.agg(F.max('v').alias('m'), (F.count('v') + 1).alias('c'))": [
        ("x", 10, 2, None, None),
        ("y", None, None, 20, 2),
        ("z", None, None, None, None),
    ],
    "by_pivot.agg(F.expr('array_agg(g)').alias('l'), F.coalesce(F.sum('v'), F.lit(0)).alias('s'))"
    ".select('g', '1_s', '2_s')": [("x", 10, 0), ("y", 0, 20), ("z", 0, 0)],
    "by_pivot.agg(F.max('g').alias('m'), F.count('v').alias('c'))": [
        ("x", "x", 1, None, 0),
        ("y", None, 0, "y", 1),
        ("z", None, 0, None, 0),
    ],
    "a.withColumnsRenamed({'v': 'q', 'q': 'r'}).select('r')": [(10,), (20,), (30,)],
    "a.join(b, a.k == b.k).withColumn('k', F.lit(0)).toDF('p', 'q', 'r', 's', 't')": [
        (0, 20, "y", 0, 200)
    ],
    "b.select('w', 'k').join(a, 'k', 'anti').union(a.select('v', 'k'))": [
        (3, 300),
        (10, 1),
        (20, 2),
        (30, None),
    ],
    "a.unionByName(a).drop(col('ta.k')).where('ta.v > 20')": [(30, "z"), (30, "z")],
    "a.alias('l').select('k', 'v').intersect(a.select('k', 'v')).where('l.v > 20')": [(None, 30)],
    "b.select('w', 'k').join(a, 'k', 'semi').toDF('p', 'q')": [(2, 200)],
    "a.groupBy(F.lit(3).alias('three'), 'g').agg(F.sum('v').alias('s')).where('s > 20')": [
        (3, "z", 30)
    ],
}
REFUSED = {
    "a.withColumn('v', col('v') + 100).select(a.v)": "column 'v' of a DataFrame is not here any",
    "a.withColumn('k', col('k') + 1).join(b, a.k == b.k)": "column 'k' of a DataFrame is not",
    "a.withColumn('g', F.upper('g')).groupBy(a.g).count()": "column 'g' of a DataFrame is not",
    "a.withColumn('v', col('v') + 1).select(a['*'])": "column 'v' of a DataFrame is not here any",
    "a.select(b.k)": "column 'k' of a DataFrame is not here any more: name it by col('k'), or by",
    "left.distinct().where(b.k.isNull())": "column 'k' of a DataFrame is not here any more",
    "a.union(a.withColumn('v', -a.v)).where(a.v > 15)": "column 'v' of a DataFrame is not",
    "by_pivot.agg(F.first('v'), F.count('v'))": "pivot of a count or expression, in a query that",
    "by_pivot.agg(F.lit(7))": "pivot of an expression without an aggregate",
    "a.withColumnsRenamed({'k': 'v', 'v': 'k'})": "the name of column 'k' is that of another one",
}


def read_frames(
    folder: Path, monkeypatch: pytest.MonkeyPatch, frames: dict[str, Any]
) -> dict[str, Any]:
    """Return what a project declares in which each of these DataFrames is a view, t0, t1 …"""
    text = SOURCES + "".join(
        f"@dp.materialized_view\ndef t{n}():\n    return {frame}\n"
        for n, frame in enumerate(frames)
    )
    return read_here(write_project(folder, a_py=text), monkeypatch)


def test_a_column_of_a_dataframe_is_the_one_that_spark_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = read_frames(tmp_path, monkeypatch, ANSWERS)
    assert found["left_out"] == []
    database = duckdb.connect()
    for table, rows in TABLES.items():
        name = table.partition("(")[0]
        database.execute(f"CREATE TABLE {table}; INSERT INTO {name} VALUES {rows}")
    views = found["sections"]["views"].items()
    queries = {name: view["sql"].replace("LEFT ANTI", "ANTI") for name, view in views}
    rows = {
        name: database.sql(query.replace("LEFT SEMI", "SEMI")).fetchall()
        for name, query in queries.items()
    }
    for n, (frame, answer) in enumerate(ANSWERS.items()):
        assert sorted(rows[f"t{n}"], key=repr) == sorted(answer, key=repr), frame


def test_a_column_that_spark_finds_no_more_is_refused_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = read_frames(tmp_path, monkeypatch, REFUSED)
    first = SOURCES.count("\n") + 1
    for n, (frame, problem) in enumerate(REFUSED.items()):
        path, line, what, _ = found["left_out"][n]
        assert (path, line) == ("transformations/a.py", first + 3 * n), frame
        assert what.startswith(f"t{n}: {problem}"), frame
    assert len(found["left_out"]) == len(REFUSED)
