"""Fields of structs that an expression may read."""

import pytest
from tests.support.declaring import Mistakes
from tests.support.wording import Wording, each

from sluice.declare.resolution import Scope


@each(
    "expression, told",
    ("where_from.pag", "'pag' of where_from … 'page' … page"),
    ("upper(where_from.page.nr)", "'where_from.page.nr' … STRING"),
)
def test_a_field_that_a_struct_lacks(
    mistakes: Mistakes, wording: Wording, expression: str, told: str
) -> None:
    found = mistakes(f"v: {{kind: select, from: clicks, select: {{x: {expression}}}}}")
    wording(found, f"11: views.v.select.x: … {told}")


@pytest.mark.parametrize(
    "type_",
    ["STRUCT<A: INT>", "ARRAY<STRUCT<a: INT>>", "MAP<STRING, INT>", "STRUCT<a: INT, `b c`: INT>"],
)
def test_fields_that_are_there(type_: str) -> None:
    assert Scope({"s": type_}).problem("s.a") == ""
    assert Scope({}, {"t": {"s": type_}}).problem("t.s.a") == ""
