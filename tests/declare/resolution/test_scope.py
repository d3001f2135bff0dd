"""Fields of structs that an expression may read."""

import pytest
from tests.support.declaring import Mistakes

from sluice.declare.resolution.scope import Scope


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (
            "where_from.pag",
            "unknown field 'pag' of where_from; did you mean 'page'? fields are: page",
        ),
        (
            "upper(where_from.page.nr)",
            "'where_from.page.nr': where_from.page is STRING, it has no fields",
        ),
    ],
)
def test_a_field_that_a_struct_lacks(mistakes: Mistakes, expression: str, message: str) -> None:
    found = mistakes(f"v: {{kind: select, from: clicks, select: {{x: {expression}}}}}")
    assert found == [f"11: views.v.select.x: {message}"]


@pytest.mark.parametrize(
    "type_",
    ["STRUCT<A: INT>", "ARRAY<STRUCT<a: INT>>", "MAP<STRING, INT>", "STRUCT<a: INT, `b c`: INT>"],
)
def test_fields_that_are_there(type_: str) -> None:
    assert Scope({"s": type_}).problem("s.a") == ""
    assert Scope({}, {"t": {"s": type_}}).problem("t.s.a") == ""
