"""Joins, subqueries and clauses of a SELECT that can't be kept: refused by name, with the line."""

from pathlib import Path

import pytest
from tests.kinds.sql.shop import refusal

REFUSED = {
    "SELECT o.id\nFROM orders o\nJOIN people p ON o.k <=> p.k": "line 3: `<=>` alone can't be",
    "SELECT id, n\nFROM orders, people": "line 2: a join without an equality",
    "SELECT o.id\nFROM orders o JOIN people p ON o.k < p.k": "line 2: a join without an equality",
    "SELECT o.id\nFROM orders o\nJOIN (SELECT pid, w AS k FROM people) p USING (k)": (
        "line 3: 'o.k' is INT and 'p.k' is STRING, which are not the same values"
    ),
    "SELECT o.id\nFROM orders o\nJOIN people p\nON o.k = p.w": (
        "line 4: 'o.k' is INT and 'p.w' is STRING"
    ),
    "SELECT id FROM orders LIMIT 3": "LIMIT without ORDER BY takes arbitrary rows",
    "SELECT id FROM orders ORDER BY id OFFSET 3": "OFFSET without LIMIT",
    "SELECT id AS a, v AS a FROM orders": "two columns have the same name",
    "SELECT id FROM orders TABLESAMPLE (10 PERCENT)": "TABLESAMPLE",
    "SELECT explode(array(k)) AS a, explode(array(v)) AS b FROM orders": "two arrays are exploded",
    "SELECT id FROM orders o WHERE v > (SELECT n FROM people p WHERE p.k = o.k)": "several rows",
    "SELECT id FROM orders WHERE (id, k, v, g, at) NOT IN (SELECT id, k, v, g, at FROM orders)": (
        "NOT IN of more than 4 columns: write NOT EXISTS"
    ),
    "SELECT id FROM orders o WHERE (k, v) NOT IN (SELECT k, n FROM people p WHERE p.w = o.g)": (
        "a correlated NOT IN of several columns is not supported: write NOT EXISTS"
    ),
    "SELECT o.id, q.s FROM orders o, LATERAL "
    "(SELECT sum(n) AS s FROM people p HAVING sum(n) > 1) q": ("a LATERAL aggregate with HAVING"),
    "SELECT pid FROM people p WHERE EXISTS (SELECT 1 FROM orders o WHERE o.k = p.k AND NOT EXISTS "
    "(SELECT 1 FROM events e WHERE e.id = o.id AND e.eid = p.n))": (
        "reads a table that is not in the query directly outside"
    ),
    "SELECT id, (SELECT n FROM people p WHERE p.k = o.k AND p.pid > 1) AS n FROM orders o": (
        "a scalar subquery without an aggregate may give several rows"
    ),
    "SELECT id, (SELECT max(n) FROM people p WHERE p.k = o.k GROUP BY w) AS n FROM orders o": (
        "a scalar subquery with GROUP BY may give several rows"
    ),
    "SELECT id, (SELECT max(n) FROM people p WHERE p.n < o.v) AS n FROM orders o": (
        "a scalar subquery needs an equality to the outer query"
    ),
    "SELECT id, (SELECT max(n) FROM people p WHERE p.k = o.k AND p.n <=> o.v) AS n FROM orders o": (
        "this condition on the outer query is not supported"
    ),
    "SELECT o.id FROM orders o ASOF LEFT JOIN people p ON o.k >= p.k": "ASOF LEFT JOIN",
    "SELECT * FROM orders o JOIN orders p ON o.id = p.id": "two columns have the same name",
    "SELECT o.id FROM orders o, people p FULL JOIN events e ON e.id = o.id WHERE o.k = p.k": (
        "write JOIN in place of the comma"
    ),
    "SELECT o.id FROM orders o LEFT JOIN people p ON p.k = o.k AND EXISTS (SELECT 1 FROM events)": (
        "a subquery in ON"
    ),
    "SELECT id, (SELECT max(n + o.v)\nFROM people p WHERE p.k = o.k) AS m FROM orders o": (
        "line 1: o.v of the outer query in the value of a subquery"
    ),
    "SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM people p\n"
    "LEFT JOIN events e ON e.id = p.pid AND e.eid > o.v WHERE p.k = o.k)": (
        "line 2: o.v of the outer query in ON of an outer join"
    ),
}


@pytest.mark.parametrize("sql", REFUSED)
def test_what_a_query_cannot_say_is_refused_by_name(sql: str, tmp_path: Path) -> None:
    assert REFUSED[sql] in refusal(sql, tmp_path)
