"""Qualifiers of columns, replaced where they are those of a table."""

import pytest

from sluice.language.syntax import requalify


@pytest.mark.parametrize(
    ("sql", "other"),
    [
        ("p.price + q.price", "row.price + q.price"),
        ("P.price", "row.price"),
        ("`p`.price", "`row`.price"),
        ("p.address.city", "row.address.city"),
        ("p + price", "p + price"),
        ("TRANSFORM(tags, p -> p.x)[0] + p.x", "TRANSFORM(tags, p -> p.x)[0] + row.x"),
    ],
)
def test_only_a_table_that_a_column_names_gets_the_other_name(sql: str, other: str) -> None:
    assert requalify(sql, {"p": "row"}) == other
