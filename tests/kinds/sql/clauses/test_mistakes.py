"""Groups, windows and constants that a query can't have: refused by name, with the line."""

from pathlib import Path

import pytest
from tests.kinds.sql.shop import refusal

REFUSED = {
    "SELECT g, v FROM orders GROUP BY g": "orders.v is neither in GROUP BY nor in an aggregate",
    "SELECT o.id FROM orders o JOIN (VALUES (1), (2, 3)) AS n(a) ON o.k = n.a": "each row of",
    "SELECT k, any_value(g) AS l FROM orders GROUP BY k": "write min(x), or group by its columns",
    "SELECT last_value(v) OVER (PARTITION BY g ORDER BY k) AS l FROM orders": "rows that tie",
    "SELECT last(v) OVER (PARTITION BY g ORDER BY k) AS l FROM orders": "rows that tie",
    "SELECT first_value(v) IGNORE NULLS OVER (ORDER BY k) AS l FROM orders": "rows that tie",
    "SELECT first_value(v, true) OVER (ORDER BY k) AS l FROM orders": "rows that tie",
    "SELECT id,\n  rank(v) OVER (ORDER BY id) AS l FROM orders": (
        "line 2: 'RANK(v) OVER (ORDER BY id)': rank takes no argument"
    ),
    "SELECT id,\n  avg(x) OVER (ORDER BY eid) AS l FROM events": (
        "line 2: AVG(x) of DOUBLE depends on the order of ties; write OVER (… ROWS UNBOUNDED"
    ),
    "SELECT k,\n  sum(g) AS l FROM orders GROUP BY k": "line 2: 'SUM(g)': sum takes a number",
    "SELECT g, last(v, true) AS l FROM orders GROUP BY g": "last depends on the order of the rows",
    "SELECT g, sum(v) IGNORE NULLS AS s FROM orders GROUP BY g": "sum has no IGNORE NULLS",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_what_a_query_cannot_say_is_refused_by_name(sql: str, tmp_path: Path) -> None:
    assert REFUSED[sql] in refusal(sql, tmp_path)
