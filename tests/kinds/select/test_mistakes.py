# ruff: noqa: E501 - messages stand here as they are printed
"""What people get wrong in selects, and the line that each gets."""

import pytest
from tests.support.declaring import Mistakes, OfViews


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("where: id", ".where: 'id' is INT; a condition is true or false"),
        (
            "select: {t: idd}",
            (
                ".select.t: unknown column 'idd'; did you mean 'id'? "
                "columns are: id, item, price, at, tags"
            ),
        ),
        *(
            (
                f"select: {{i: id, t: {nothing}}}",
                (
                    ".select.t: nothing is given; for a column of nulls, write one with a type: "
                    "'cast(null as STRING)'"
                ),
            )
            for nothing in ("null", "~", "")
        ),
        ("distinct: true", ": tags is a MAP, which has no order and can't be a key"),
        (
            "distinct: true, select: {t: tags}",
            ".select: t is a MAP, which has no order and can't be a key",
        ),
        (
            "retention: 7 days",
            ": `retention` needs a window; a select keeps its input's rows",
        ),
    ],
)
def test_a_select(mistakes: Mistakes, settings: str, message: str) -> None:
    found = mistakes(f"v: {{kind: select, from: sales, {settings}}}")
    assert found == [f"11: views.v{message}"]


def test_its_key_is_its_inputs_or_all_columns_if_distinct(table: OfViews) -> None:
    assert table("v: {kind: select, from: sales}").key == ("id",)
    assert table("v: {kind: select, from: sales, select: {x: id}}").key == ("x",)
    assert table("v: {kind: select, from: sales, select: {x: id, id: id}}").key == ("id",)
    assert table("v: {kind: select, from: sales, select: {x: id + 1}}").key == ("_sluice_key_id",)
    distinct = table("v: {kind: select, from: sales, select: {x: id, i: item}, distinct: true}")
    assert distinct.key == ("x", "i")


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (
            "v: {kind: select, from: sales, select: {v: parse_json(item)}}",
            (
                "11: views.v.select.v: 'parse_json(item)' is VARIANT, which can be neither compared nor "
                "read without Spark; write it by to_json(…), or a part of it by variant_get(…, '$.a', 'int')"
            ),
        ),
    ],
)
def test_types_that_do_not_fit(mistakes: Mistakes, view: str, message: str) -> None:
    assert mistakes(view) == [message]
