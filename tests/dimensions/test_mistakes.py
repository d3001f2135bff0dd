"""What people get wrong in dimensions, and the line that each gets."""

from tests.support.declaring import Mistakes
from tests.support.wording import Wording, each


@each(
    "dimension, told",
    ("{path: x/, schema: id INT}", "x: … key"),
    ("{path: x/, schema: id INT, key: []}", "x.key:"),
    ("{path: x/, schema: id INT, key: [id], valid_from: id}", "x: … valid_from"),
    (
        '{path: x/, schema: "id INT, valid_to DATE", key: [id], history: true}',
        "x.schema: … valid_to",
    ),
)
def test_a_dimension(wrong: Mistakes, wording: Wording, dimension: str, told: str) -> None:
    text = f"""\
pipeline: p
schedule: assets
dimensions:
  a: {{path: a/, schema: "id INT, other INT", key: [id]}}
  b: {{path: b/, schema: "id INT, other INT", key: [id]}}
  x: {dimension}
"""
    wording(wrong({"pipelines/p.yaml": text}), f"pipelines/p.yaml:6: dimensions.{told}")


@each(
    "table, told",
    (
        "dimensions: {x: {format: kafka, schema: id INT, key: [id]}}",
        ".format: … json, csv, parquet, delta, jdbc … key",
    ),
    ("dimensions: {x: {format: jdbc, path: p/, schema: id INT, key: [id]}}", ".path: … options"),
)
def test_what_would_have_no_effect(
    wrong: Mistakes, wording: Wording, table: str, told: str
) -> None:
    text = f"pipeline: p\nschedule: assets\n{table}\n"
    wording(wrong({"pipelines/p.yaml": text}), f"pipelines/p.yaml:3: dimensions.x{told}")
