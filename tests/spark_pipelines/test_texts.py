"""Queries over temporary views, and with parts of WITH that share a name, mean what they say."""

from pathlib import Path

import duckdb
import pytest
from tests.spark_pipelines.projects import read_here, write_project

RAW = """
from pyspark import pipelines as dp

@dp.table
def o():
    return spark.readStream.schema("id BIGINT, v BIGINT").json("landing/o")
"""
VIEWS = {
    "v1": "SELECT id, v FROM o WHERE v > 1",
    "v2": "SELECT id, v + 1 AS v FROM v1",
    "v3": "SELECT a.id, a.v + b.v AS v FROM v2 a JOIN v1 b ON a.id = b.id",
    "v4": "WITH x AS (SELECT * FROM v1) SELECT id, v * 100 AS v FROM x",
}
QUERIES = {
    "of_a_view": "SELECT * FROM v2",
    "of_a_view_of_views": "SELECT v3.id, v3.v + v1.v AS s FROM v3 JOIN v1 ON v3.id = v1.id",
    "of_its_own_name": "WITH o AS (SELECT id * 10 AS id FROM o) SELECT o.id FROM o",
    "of_a_views_name": "WITH v1 AS (SELECT id * 10 AS id FROM v1) SELECT * FROM v1",
    "of_a_name_that_a_view_reads": (
        "WITH o AS (SELECT id + 1 AS id FROM o) SELECT o.id, v1.v FROM o JOIN v1 ON o.id = v1.id"
    ),
    "of_a_name_in_a_subquery": (
        "SELECT x.id, v1.v FROM (WITH v1 AS (SELECT id + 1 AS id FROM o) SELECT * FROM v1) x"
        " JOIN v1 ON x.id = v1.id"
    ),
    "of_a_part_of_a_view": (
        "WITH x AS (SELECT id FROM o) SELECT x.id, v4.v FROM x JOIN v4 ON x.id = v4.id"
    ),
}


def test_texts_of_queries_over_views_give_the_rows_of_what_the_files_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = {"TEMPORARY": VIEWS, "MATERIALIZED": QUERIES}
    created = [
        f"CREATE {kind} VIEW {name} AS {query}"
        for kind, queries in kinds.items()
        for name, query in queries.items()
    ]
    spec = write_project(tmp_path, o_py=RAW, q_sql=";\n".join(created))
    found = read_here(spec, monkeypatch)
    assert found["left_out"] == found["mistakes"] == []

    duck = duckdb.connect()
    duck.execute("CREATE TABLE o AS SELECT i AS id, i % 4 AS v FROM range(12) r(i)")
    kept = {name: duck.sql(found["sections"]["views"][name]["sql"]).fetchall() for name in QUERIES}
    for name, query in VIEWS.items():
        duck.execute(f"CREATE VIEW {name} AS {query}")
    for name, query in QUERIES.items():
        assert sorted(kept[name]) == sorted(duck.sql(query).fetchall()) != []
