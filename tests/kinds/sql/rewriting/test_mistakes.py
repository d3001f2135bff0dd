"""Parts of a query that no equivalent one replaces: refused by name, with the line."""

from pathlib import Path

import pytest
from tests.kinds.sql.shop import refusal

REFUSED = {
    "SELECT o.id, q.w FROM orders o, LATERAL "
    "(SELECT w FROM people p WHERE p.k > o.k GROUP BY w) q": (
        "may be correlated with the outer query by equalities only"
    ),
    "SELECT * FROM (SELECT k, v FROM orders) PIVOT (sum(v) FOR k IN (1, 2))": (
        "'1' of PIVOT has no usable column name"
    ),
    "SELECT * FROM people UNPIVOT (a FOR b IN (k, n))": "UNPIVOT",
    "SELECT id FROM orders o WHERE EXISTS (SELECT k FROM people p WHERE p.k > o.k GROUP BY k)": (
        "may be correlated with the outer query by equalities only"
    ),
}


@pytest.mark.parametrize("sql", REFUSED)
def test_what_a_query_cannot_say_is_refused_by_name(sql: str, tmp_path: Path) -> None:
    assert REFUSED[sql] in refusal(sql, tmp_path)
