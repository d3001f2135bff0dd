"""What people get wrong in selects, and the line that each gets."""

from tests.support.declaring import Mistakes, OfViews
from tests.support.wording import Wording, each


@each(
    "settings, told",
    ("where: id", ".where: … id … INT"),
    ("select: {t: idd}", ".select.t: … idd … id … id, item, price, at, tags"),
    ("select: {i: id, t: null}", ".select.t: … cast(null as STRING)"),
    ("select: {i: id, t: ~}", ".select.t: … cast(null as STRING)"),
    ("select: {i: id, t: }", ".select.t: … cast(null as STRING)"),
    ("distinct: true", ": … MAP"),
    ("distinct: true, select: {t: tags}", ".select: … MAP"),
    ("retention: 7 days", ": … retention"),
)
def test_a_select(mistakes: Mistakes, wording: Wording, settings: str, told: str) -> None:
    found = mistakes(f"v: {{kind: select, from: sales, {settings}}}")
    wording(found, f"11: views.v{told}")


def test_its_key_is_its_inputs_or_all_columns_if_distinct(table: OfViews) -> None:
    assert table("v: {kind: select, from: sales}").key == ("id",)
    assert table("v: {kind: select, from: sales, select: {x: id}}").key == ("x",)
    assert table("v: {kind: select, from: sales, select: {x: id, id: id}}").key == ("id",)
    assert table("v: {kind: select, from: sales, select: {x: id + 1}}").key == ("_sluice_key_id",)
    distinct = table("v: {kind: select, from: sales, select: {x: id, i: item}, distinct: true}")
    assert distinct.key == ("x", "i")


@each(
    "view, told",
    (
        "v: {kind: select, from: sales, select: {v: parse_json(item)}}",
        " … parse_json(item) … VARIANT … to_json … variant_get … $.a … int",
    ),
)
def test_types_that_do_not_fit(mistakes: Mistakes, wording: Wording, view: str, told: str) -> None:
    wording(mistakes(view), f"11: views.v.select.v:{told}")
