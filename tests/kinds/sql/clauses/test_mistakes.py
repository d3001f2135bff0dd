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
}


@pytest.mark.parametrize("sql", REFUSED)
def test_what_a_query_cannot_say_is_refused_by_name(sql: str, tmp_path: Path) -> None:
    assert REFUSED[sql] in refusal(sql, tmp_path)
