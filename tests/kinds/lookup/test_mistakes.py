# ruff: noqa: E501 - messages stand here as they are printed
"""What people get wrong in lookups, and the line that each gets."""

import pytest
from tests.support.declaring import Mistakes

LOOKUP = """\
bills:
  kind: lookup
  from: sales
  join: [{dimension: items, on: item = items.item, type: left}]
  select: {id: id, department: items.department}
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "items.department",
            "items.departmnt",
            (
                "15: views.bills.select.department: unknown column "
                "'departmnt' of items; did you mean 'department'? columns are: item, department, price"
            ),
        ),
        (
            "items.department",
            "department",
            (
                "15: views.bills.select.department: column 'department' "
                "belongs to items; write items.department"
            ),
        ),
        (
            "items.department",
            "brands.name",
            (
                "15: views.bills.select.department: unknown table or "
                "struct 'brands'; known ones are: items, id, item, price, at, tags"
            ),
        ),
        (
            "item = items.item",
            "itm = items.item",
            (
                "14: views.bills.join[0].on: unknown column "
                "'itm'; did you mean 'item'? columns are: id, item, price, at, tags"
            ),
        ),
        (
            "item = items.item",
            "item = items.department",
            (
                "14: views.bills.join[0].on: items is "
                "unique by item: join on item as well, or rows multiply"
            ),
        ),
        (
            "item = items.item",
            "[item]",
            (
                "14: views.bills.join[0].on: "
                "an equality is expected, such as 'id = items.id', not a list"
            ),
        ),
        (
            "item = items.item",
            "item > items.item",
            (
                "14: views.bills.join[0].on: 'item > items.item' "
                "is not `<fact expression> = items.<column>`: only equalities can join here"
            ),
        ),
        (
            "dimension: items, on: item = items.item",
            "dimension: sales, on: item = sales.item",
            (
                "14: views.bills.join[0].dimension: sales is not under `dimensions:`, and only "
                "tables there can be joined here (declare the table there as well, with format: "
                "delta)"
            ),
        ),
        (
            "dimension: items, on: item = items.item",
            "dimension: itmes, on: item = items.item",
            (
                "14: views.bills.join[0].dimension: unknown dimension 'itmes'; "
                "did you mean 'items'? dimensions are: items, prices"
            ),
        ),
        (
            "dimension: items, on: item = items.item",
            "dimension: sales, on: item = items.item",
            (
                "14: views.bills.join[0].dimension: sales is not under `dimensions:`, and only "
                "tables there can be joined here (declare the table there as well, with format: "
                "delta)"
            ),
        ),
        (
            "type: left",
            "type: outer",
            ("14: views.bills.join[0].type: unknown value 'outer'; values are: inner, left"),
        ),
        (
            "from: sales",
            "from: sales\n  as_of: event_time\n  time: at",
            (
                "16: views.bills.join[0].dimension: as_of: event_time needs the past of items: declare "
                "it with history: true"
            ),
        ),
        (
            "from: sales",
            "from: sales\n  as_of: event_time",
            ("11: views.bills: `time` names the fact's event time: it goes with as_of: event_time"),
        ),
        (
            "from: sales",
            "from: sales\n  retention: 1 day",
            ("11: views.bills: `retention` needs a window; a lookup keeps its facts' rows"),
        ),
        (
            "type: left}",
            "type: left}, {dimension: items, on: item = items.item}",
            (
                "11: views.bills: items is joined twice; declare a dimension view of another name "
                "for one"
            ),
        ),
    ],
)
def test_a_lookup(mistakes: Mistakes, old: str, new: str, message: str) -> None:
    found = mistakes(LOOKUP.replace(old, new))
    assert [m for m in found if "select" not in m or "select" in message] == [message]


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (
            "v: {kind: lookup, from: sales, join: [{dimension: items, on: tags = items.item}]}",
            (
                "11: views.v.join[0].on: 'tags' is MAP<STRING, STRING> and items.item is STRING: "
                "they can't be compared; cast one of them"
            ),
        ),
        (
            "v: {kind: lookup, from: sales, join: [{dimension: items, on: id = items.item}]}",
            (
                "11: views.v.join[0].on: 'id' is INT and items.item is STRING, which are not the same "
                "values; write cast(id as STRING)"
            ),
        ),
        (
            "v: {kind: lookup, from: sales, join: [{dimension: items, on: item = items.item}], select: {x: items.price > at}}",
            (
                "11: views.v.select.x: 'items.price > at': DECIMAL(12, 2) can't be compared with "
                "TIMESTAMP"
            ),
        ),
    ],
)
def test_types_that_do_not_fit(mistakes: Mistakes, view: str, message: str) -> None:
    assert mistakes(view) == [message]
