"""What a source's readers see, and what identifies its rows."""

from tests.support.declaring import Load, Write

from sluice.declare.project import load


def test_a_keyed_sources_rows_are_identified_by_its_key(shop: Load) -> None:
    graph = shop("").graph
    assert graph.table("sales").key == ("id",)
    assert graph.table("sales").hidden == {}


def test_a_keyless_sources_rows_have_a_hidden_identity(shop: Load) -> None:
    clicks = shop("").graph.table("clicks")
    assert clicks.key == ("_sluice_interval", "_sluice_id")
    assert clicks.hidden == {"_sluice_interval": "TIMESTAMP", "_sluice_id": "STRING"}
    assert list(clicks.columns) == ["item", "at", "where_from"]


def test_the_column_of_changes_is_not_the_tables(write: Write) -> None:
    text = """\
pipeline: p
schedule: assets
sources:
  x:
    path: x/
    delivery: stream
    key: [id]
    schema: id INT, op STRING
    change: {column: op, insert: [c, r], update: [u], delete: [d]}
"""
    project = load(write({"pipelines/p.yaml": text}))
    assert list(project.graph.table("x").columns) == ["id"]
