"""What people get wrong in views of dimensions, and the line that each gets."""

import pytest
from tests.support.declaring import Mistakes


@pytest.mark.parametrize(
    ("dimension", "message"),
    [
        (
            "{join: [{dimension: a}, {dimension: c, on: a.id = b.id}], select: {id: a.id}}",
            "x.join[1].dimension: unknown dimension 'c'; dimensions are: a, b",
        ),
        (
            "{join: [{dimension: a}, {dimension: b}], select: {id: a.id}}",
            "x.join[1].on: the first dimension takes no `on`; every other one needs it",
        ),
        (
            "{join: [{dimension: a}, {dimension: b, on: a.id = b.other}], select: {id: a.id}}",
            "x.join[1].on: b is unique by id: join on id as well, or rows multiply",
        ),
        (
            "{join: [{dimension: a}, {dimension: b, on: a.id = b.id}], select: {other: b.other}}",
            "x.select: the key of a must be selected: a.id",
        ),
        (
            "{join: [{dimension: a}, {dimension: b, on: id = b.id}], select: {id: a.id}}",
            "x.join[1].on: column 'id' is in both a and b; write a.id or b.id",
        ),
    ],
)
def test_a_view_of_dimensions(wrong: Mistakes, dimension: str, message: str) -> None:
    text = f"""\
pipeline: p
schedule: assets
dimensions:
  a: {{path: a/, schema: "id INT, other INT", key: [id]}}
  b: {{path: b/, schema: "id INT, other INT", key: [id]}}
  x: {dimension}
"""
    assert wrong({"pipelines/p.yaml": text}) == [f"pipelines/p.yaml:6: dimensions.{message}"]
