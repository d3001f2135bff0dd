"""Models are chosen as dbt chooses them."""

import pytest
from tests.dbt.warehouse import MANIFEST

from sluice.dbt import read_artifacts
from sluice.dbt.importing import select_nodes

NODES = read_artifacts(MANIFEST, None).nodes
STAGING = {"stg_bakery__customers", "stg_bakery__orders", "stg_payments"}


@pytest.mark.parametrize(
    ("selectors", "names"),
    [
        (["orders"], {"orders"}),
        (["+orders"], {"orders", "stg_bakery__orders", "stg_payments"}),
        (["sold_orders+"], {"sold_orders", "monthly_sales"}),
        (
            ["+sold_orders+"],
            {*STAGING, "orders", "sold_orders", "monthly_sales"} - {"stg_bakery__customers"},
        ),
        (["tag:finance"], {"monthly_sales"}),
        (
            ["+tag:finance"],
            {*STAGING, "orders", "sold_orders", "monthly_sales"} - {"stg_bakery__customers"},
        ),
        (["path:models/staging"], STAGING),
        (["path:models/marts/orders.sql"], {"orders"}),
        (["stg_*"], STAGING),
        (["orders customers"], {"orders", "customers"}),
        (["orders", "tag:staging"], {"orders", *STAGING}),
    ],
)
def test_a_selector_chooses(selectors: list[str], names: set[str]) -> None:
    assert {NODES[i].name for i in select_nodes(NODES, selectors)} == names


def test_parents_come_before_their_children() -> None:
    order = select_nodes(NODES, [])
    places = {node: nth for nth, node in enumerate(order)}
    edges = [(p, i) for i in order for p in NODES[i].parents if p in places]
    assert len(edges) > 10
    assert all(places[parent] < places[child] for parent, child in edges)
