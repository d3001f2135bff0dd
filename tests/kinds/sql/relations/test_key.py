"""The key of a query: proved by the query itself, so that its rows can be read by it."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.kinds.sql.shop import planned, project
from tests.support.in_duckdb import wrong

from sluice.read.lake import Lake as Reader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOINED = "SELECT o.id AS o, p.pid AS p, p.w FROM orders o {} people p ON o.k = p.{}"
COUNTED = "SELECT p.pid, p.w, count(*) AS n FROM orders o {} people p ON o.k = p.pid GROUP BY 1, 2"
RANKED = "SELECT g, v, row_number() OVER (PARTITION BY g ORDER BY id) AS r FROM orders"
PROVED = {
    "SELECT id, v FROM orders": "id",
    "SELECT id AS renamed FROM orders WHERE v > 0": "renamed",
    "SELECT g, count(*) AS n FROM orders GROUP BY g": "g",
    "SELECT g, k, count(*) AS n FROM orders WHERE k = 3 GROUP BY g, k": "g",
    "SELECT DISTINCT g, v FROM orders": "v, g",
    "SELECT id FROM orders UNION SELECT pid FROM people": "id",
    "SELECT count(*) AS n FROM orders": "n",
    JOINED.format("JOIN", "pid"): "o",
    JOINED.format("LEFT JOIN", "pid"): "o",
    JOINED.format("JOIN", "k"): "o, p",
    JOINED.format("LEFT SEMI JOIN", "k").replace(", p.pid AS p, p.w", ""): "o",
    "SELECT p.pid FROM orders o JOIN people p ON o.id = p.pid": "pid",
    COUNTED.format("JOIN"): "pid",
    RANKED: "g, r",
    f"SELECT g, v FROM ({RANKED}) WHERE r = 1": "g",
    "SELECT id FROM orders ORDER BY v, id LIMIT 3": "id",
    "SELECT o.id, (SELECT max(n) FROM people p WHERE p.k = o.k) AS m FROM orders o": "id",
    "SELECT id FROM orders WHERE v > (SELECT avg(v) FROM orders)": "id",
    "SELECT id, i, e FROM orders LATERAL VIEW posexplode(array(k, v)) x AS i, e": "id, i",
}
REFUSED = {
    "SELECT v FROM orders": ("v", "no selected columns are known to be unique"),
    "SELECT id, v FROM orders": ("v", "its rows are known to be unique by (id)"),
    "SELECT g, k, count(*) AS n FROM orders GROUP BY g, k": ("g", "unique by (g, k)"),
    JOINED.format("JOIN", "k"): ("o", "unique by (o, p)"),
    RANKED.replace("g, v", "id, g"): ("g", "unique by (g, r) or (id)"),
    JOINED.format("RIGHT JOIN", "pid"): ("o", "unique by (o, p)"),
    JOINED.format("FULL JOIN", "pid"): ("o, p", "no selected columns"),
    COUNTED.format("LEFT JOIN"): ("pid", "unique by (pid, w)"),
    "SELECT id FROM orders UNION ALL SELECT pid FROM people": ("id", "no selected columns"),
    "SELECT g, k, count(*) AS n FROM orders WHERE g = 1 GROUP BY g, k": ("k", "unique by (g, k)"),
    f"SELECT g, v FROM ({RANKED}) WHERE r < 3": ("g", "no selected columns"),
    f"SELECT g, v FROM ({RANKED.replace('row_number', 'rank')}) WHERE r = 1": (
        "g",
        "no selected columns",
    ),
    "SELECT id, e FROM orders LATERAL VIEW explode(array(k, v)) x AS e": (
        "id",
        "no selected columns",
    ),
    "SELECT id FROM orders WHERE v = 1": ("nothing", "unknown column 'nothing'"),
    "SELECT DISTINCT array(k, v) AS a FROM orders": ("a", "'a' is ARRAY<INT>"),
}


@pytest.mark.parametrize("sql", PROVED)
def test_a_key_that_the_query_shows_to_be_unique_is_taken(sql: str, tmp_path: Path) -> None:
    assert not planned(sql, tmp_path, key=PROVED[sql])


@pytest.mark.parametrize("sql", REFUSED)
def test_a_key_that_may_have_several_rows_is_refused(sql: str, tmp_path: Path) -> None:
    key, why = REFUSED[sql]
    problems = planned(sql, tmp_path, key=key)
    assert any("views.v" in problem and why in problem for problem in problems), problems


def test_rows_are_read_by_the_declared_key_and_views_over_them_follow(
    spark: "SparkSession", tmp_path: Path
) -> None:
    queries = {
        "named": JOINED.format("JOIN", "pid"),
        "best": f"SELECT g, v FROM ({RANKED}) WHERE r = 1",
        "above": "SELECT g, v * 2 AS twice FROM best WHERE v > 0",
    }
    lake = project(tmp_path, queries, spark, keys={"named": "o", "best": "g", "above": "g"})
    lake.put("people", {"pid": 1, "w": "x"}, {"pid": 2, "w": "y"})
    lake.put("orders", *({"id": i, "k": i % 3, "g": f"g{i % 2}", "v": i} for i in range(6)))
    lake.advance()
    named, best = (Reader(lake.project).table(name) for name in ("named", "best"))
    assert named.get(4) == {"o": 4, "p": 1, "w": "x"}
    assert named.get(3) is None
    assert [row["o"] for row in named.range(key_from=2, key_to=4)] == [2, 4]
    assert best.get("g1") == {"g": "g1", "v": 1}
    lake.put("orders", {"id": -1, "k": 2, "g": "g1", "v": 9}, gone=[{"id": 0}, {"id": 1}])
    lake.advance()
    above = Reader(lake.project).table("above")
    assert above.get("g1") == {"g": "g1", "twice": 18}
    assert wrong(lake) == {}
