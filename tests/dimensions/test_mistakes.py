"""What people get wrong in dimensions, and the line that each gets."""

import pytest
from tests.support.declaring import Mistakes


@pytest.mark.parametrize(
    ("dimension", "message"),
    [
        ("{path: x/, schema: id INT}", "x: `key` is missing"),
        ("{path: x/, schema: id INT, key: []}", "x.key: at least one is expected"),
        (
            "{path: x/, schema: id INT, key: [id], valid_from: id}",
            ("x: `valid_from` is the time from which a version is valid: it needs history: true"),
        ),
        (
            '{path: x/, schema: "id INT, valid_to DATE", key: [id], history: true}',
            "x.schema: history: true adds the columns valid_to itself",
        ),
    ],
)
def test_a_dimension(wrong: Mistakes, dimension: str, message: str) -> None:
    text = f"""\
pipeline: p
schedule: assets
dimensions:
  a: {{path: a/, schema: "id INT, other INT", key: [id]}}
  b: {{path: b/, schema: "id INT, other INT", key: [id]}}
  x: {dimension}
"""
    assert wrong({"pipelines/p.yaml": text}) == [f"pipelines/p.yaml:6: dimensions.{message}"]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            "dimensions: {x: {format: kafka, schema: id INT, key: [id]}}",
            (
                "dimensions.x.format: a dimension is loaded whole, and a topic has no end: "
                "use json, csv, parquet, delta, jdbc; "
                "or read the topic as a source with a `key`, and join it by a view of kind join"
            ),
        ),
        (
            "dimensions: {x: {format: jdbc, path: p/, schema: id INT, key: [id]}}",
            (
                "dimensions.x.path: a database has no path: "
                "name its table in `options` (dbtable or query)"
            ),
        ),
    ],
)
def test_what_would_have_no_effect(wrong: Mistakes, table: str, message: str) -> None:
    text = f"pipeline: p\nschedule: assets\n{table}\n"
    assert wrong({"pipelines/p.yaml": text}) == [f"pipelines/p.yaml:3: {message}"]
