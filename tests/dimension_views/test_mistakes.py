"""What people get wrong in views of dimensions, and the line that each gets."""

from tests.support.declaring import Mistakes
from tests.support.wording import Wording, cells, each


@each(
    "dimension, told",
    *cells("""
        {join: [{dimension: a}, {dimension: c, on: a.id = b.id}], select: {id: a.id}}
            | .join[1].dimension: … c … a, b
        {join: [{dimension: a}, {dimension: b}], select: {id: a.id}} | .join[1].on: … on
        {join: [{dimension: a}, {dimension: b, on: a.id = b.other}], select: {id: a.id}}
            | .join[1].on:
        {join: [{dimension: a}, {dimension: b, on: a.id = b.id}], select: {other: b.other}}
            | .select: … a.id
        {join: [{dimension: a}, {dimension: b, on: id = b.id}], select: {id: a.id}}
            | .join[1].on: … id … a.id … b.id
    """),
)
def test_a_view_of_dimensions(wrong: Mistakes, wording: Wording, dimension: str, told: str) -> None:
    text = f"""\
pipeline: p
schedule: assets
dimensions:
  a: {{path: a/, schema: "id INT, other INT", key: [id]}}
  b: {{path: b/, schema: "id INT, other INT", key: [id]}}
  x: {dimension}
"""
    wording(wrong({"pipelines/p.yaml": text}), f"pipelines/p.yaml:6: dimensions.x{told}")
