"""Queries that are not Spark SQL, or name what is not there: refused by name, with the line."""

from pathlib import Path

import pytest
from tests.kinds.sql.shop import refusal

REFUSED = {
    "SELECT nothing FROM orders": "line 1: column 'nothing' is unknown",
    "SELECT o.nothing FROM orders o": "line 1: unknown column 'nothing'; columns are: id, k, g",
    "SELECT k FROM orders JOIN people ON id = pid": (
        "line 1: column 'k' is unknown, or more than one table has it"
    ),
    "SELECT id, rand() AS r FROM orders": "the function 'rand' is not allowed",
    "SELECT id, now() AS t FROM orders": "the time of running is not allowed",
    "SELECT id, current_date AS t FROM orders": "the time of running is not allowed",
    "WITH RECURSIVE q AS (SELECT id FROM orders) SELECT id FROM q": "WITH RECURSIVE",
    "SELECT id FROM orders o, (VALUES (now())) AS n(a)": "the time of running is not allowed",
    "SELECT id FROM orders WHERE (k, v) NOT IN (SELECT k FROM people)": "2 value(s) with 1",
    "SELECT id FROM orders WHERE (k, v) NOT IN (SELECT * FROM people)": "2 value(s) with 4",
    "SELECT id FROM orders WHERE (k, v) IN (SELECT k, n, pid FROM people)": "2 value(s) with 3",
    "SELECT id FROM orders WHERE k IN (SELECT k, n FROM people) OR v = 1": "1 value(s) with 2",
    "SELECT id FROM orders o WHERE k IN (SELECT max(k), max(n) FROM people p WHERE p.k = o.k)": (
        "1 value(s) with 2"
    ),
    "SELECT id FROM orders WHERE (k, v) IN ((1, 2), (3, 4, 5))": "different numbers of columns",
    "SELECT id FROM orders WHERE (k, v) IN ((1, 2), 3)": "different numbers of columns",
    "SELECT id FROM orders WHERE v > ALL (SELECT n FROM people)": "ALL (subquery) is not Spark SQL",
    "SELECT k, listagg(g, ',') AS l FROM orders GROUP BY k": "add WITHIN GROUP (ORDER BY ...)",
    "SELECT k, percentile_disc(0.5) WITHIN GROUP (ORDER BY v) AS p FROM orders GROUP BY k": (
        "percentile_cont and mode sort ascending"
    ),
    "SELECT * FROM (PIVOT orders ON k IN (1, 2) USING sum(v) GROUP BY g) p": "PIVOT is written in",
    "WITH RECURSIVE q AS (SELECT 1 AS n FROM orders UNION ALL SELECT n + 1 FROM q WHERE n < 3) "
    "SELECT n FROM q": "WITH RECURSIVE",
    "SELECT * FROM orders, range(k)": "range(...) takes one to three whole numbers",
    "SELECT * FROM orders, range(2, 1)": "has no rows",
    "SELECT * FROM orders, stack(1, 2)": "stack(...) in FROM",
    "WITH orders AS (SELECT id FROM orders) SELECT id FROM orders": "'orders' of WITH",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_what_a_query_cannot_say_is_refused_by_name(sql: str, tmp_path: Path) -> None:
    assert REFUSED[sql] in refusal(sql, tmp_path)
