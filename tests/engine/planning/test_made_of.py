"""The tables that keep a view are known from its declaration, without its operators."""

from pathlib import Path

from sluice.declare.meaning import definition_of_deliveries, fingerprint
from sluice.declare.project import load
from sluice.delta.log.continuity import meanings
from sluice.delta.places.lake_layout import made_of
from sluice.engine.plan import nodes_of

CONFIG = Path(__file__).parents[3] / "config"


def test_a_view_is_made_of_the_tables_of_its_nodes() -> None:
    graph = load(CONFIG).graph
    views = [table for table in graph.tables.values() if table.is_view]
    assert {view.kind for view in views} >= {"topk", "cogroup", "lookup", "join", "union"}
    assert any(view.parts for view in views)
    for view in views:
        assert list(made_of(view)) == [node.id for node in nodes_of(view, graph)]


def test_a_table_means_what_its_nodes_were_built_by() -> None:
    graph = load(CONFIG).graph
    for table in graph.tables.values():
        own = {name: fingerprint(meaning) for name, meaning in meanings(table).items()}
        if table.is_delivered:
            assert own.pop(table.delivered_to) == definition_of_deliveries(table)
        built = {node.id: node.definition for node in nodes_of(table, graph)}
        assert list(own.items()) == list(built.items())
