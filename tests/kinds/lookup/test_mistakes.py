# ruff: noqa: E501 - a mistake stands in one line
"""What people get wrong in lookups, and the line that each gets."""

from tests.support.declaring import Mistakes
from tests.support.wording import Wording, cells, each

LOOKUP = """\
bills:
  kind: lookup
  from: sales
  join: [{dimension: items, on: item = items.item, type: left}]
  select: {id: id, department: items.department}
"""


@each(
    "old, new, told",
    *cells("""
        items.department | items.departmnt | 15: views.bills.select.department: … departmnt … item, department, price
        items.department | department | 15: views.bills.select.department: … department … items.department
        items.department | brands.name | 15: views.bills.select.department: … brands … items, id, item
        item = items.item | itm = items.item | 14: views.bills.join[0].on: … itm … id, item, price
        item = items.item | item = items.department | 14: views.bills.join[0].on:
        item = items.item | [item] | 14: views.bills.join[0].on: … id = items.id
        item = items.item | item > items.item | 14: views.bills.join[0].on: … item > items.item … <fact expression> = items.<column>
        dimension: items, on: item = items.item | dimension: sales, on: item = sales.item
            | 14: views.bills.join[0].dimension: … dimensions
        dimension: items, on: item = items.item | dimension: itmes, on: item = items.item
            | 14: views.bills.join[0].dimension: … itmes … items … items, prices
        dimension: items, on: item = items.item | dimension: sales, on: item = items.item
            | 14: views.bills.join[0].dimension: … dimensions
        type: left | type: outer | 14: views.bills.join[0].type: … outer … inner, left
        type: left} | type: left}, {dimension: items, on: item = items.item} | 11: views.bills:
    """),
    (
        "from: sales",
        "from: sales\n  as_of: event_time\n  time: at",
        "16: views.bills.join[0].dimension: … as_of … event_time",
    ),
    ("from: sales", "from: sales\n  as_of: event_time", "11: views.bills: … time … as_of"),
    ("from: sales", "from: sales\n  retention: 1 day", "11: views.bills: … retention"),
)
def test_a_lookup(mistakes: Mistakes, wording: Wording, old: str, new: str, told: str) -> None:
    found = mistakes(LOOKUP.replace(old, new))
    wording([m for m in found if "select" not in m or "select" in told], told)


@each(
    "view, told",
    (
        "v: {kind: lookup, from: sales, join: [{dimension: items, on: tags = items.item}]}",
        "views.v.join[0].on: … tags … MAP<STRING, STRING> … items.item … STRING",
    ),
    (
        "v: {kind: lookup, from: sales, join: [{dimension: items, on: id = items.item}]}",
        "views.v.join[0].on: … id … INT … items.item … STRING",
    ),
    (
        "v: {kind: lookup, from: sales, join: [{dimension: items, on: item = items.item}], select: {x: items.price > at}}",
        "views.v.select.x: … items.price > at … DECIMAL(12, 2) … TIMESTAMP",
    ),
)
def test_types_that_do_not_fit(mistakes: Mistakes, wording: Wording, view: str, told: str) -> None:
    wording(mistakes(view), f"11: {told}")
