"""The graph of tables: order, cycles, names across pipelines."""

from collections.abc import Callable

import pytest

from sluice.declare.project import Project, load
from sluice.declare.table import UnknownTable

Shop = Callable[..., Project]
Mistakes = Callable[..., list[str]]

CHAIN = """\
last: {kind: topk, from: middle, order_by: [n], limit: 1}
middle: {kind: cogroup, key: [department], streams: {b: {from: bills, aggregates: {n: count(*)}}}}
bills: {kind: lookup, from: sales, join: [{dimension: items, on: item = items.item}]}
"""
OTHER = """\
pipeline: other
schedule: assets
views:
  best: {kind: topk, from: shop.sales, order_by: [price desc], limit: 3}
"""


def test_inputs_come_before_the_views_over_them(shop: Shop) -> None:
    order = list(shop(CHAIN).graph.tables)
    assert order.index("shop.bills") < order.index("shop.middle") < order.index("shop.last")
    assert order.index("shop.items") < order.index("shop.bills")


def test_consumers_and_ancestors_are_known(shop: Shop) -> None:
    graph = shop(CHAIN).graph
    assert [t.name for t in graph.consumers("shop.bills")] == ["middle"]
    assert {t.name for t in graph.ancestors("shop.last")} == {"middle", "bills", "sales", "items"}
    assert [t.id for t in graph.inputs("shop.bills")] == ["shop.sales", "shop.items"]


@pytest.mark.parametrize(
    ("edges", "cycles"),
    [
        ("ac ba cb", ["11: views.a: a cycle: a -> b -> c -> a"]),
        ("aa", ["11: views.a: a cycle: a -> a"]),
        ("ab ba cd dc", ["11: views.a: a cycle: a -> b -> a", "13: views.c: a cycle: c -> d -> c"]),
    ],
)
def test_cycles_are_named_from_their_first_view_on(
    mistakes: Mistakes, edges: str, cycles: list[str]
) -> None:
    view = "{}: {{kind: topk, from: {}, order_by: [x], limit: 1}}"
    assert mistakes("\n".join(view.format(*edge) for edge in edges.split())) == cycles


def test_a_table_is_found_by_name_or_id(shop: Shop) -> None:
    graph = shop(CHAIN).graph
    assert graph.table("bills") is graph.table("shop.bills")
    assert [t.name for t in graph.pipeline("shop")][-1] == "last"


def test_an_unknown_table_is_refused_with_a_near_one(shop: Shop) -> None:
    with pytest.raises(UnknownTable) as refusal:
        shop(CHAIN).graph.table("bils")
    assert str(refusal.value) == (
        "unknown table 'bils'\nhint: did you mean 'bills'? tables are: shop.sales, shop.clicks, "
        "shop.items, shop.prices, shop.bills, shop.middle, shop.last"
    )


def test_a_view_reads_a_table_of_another_pipeline(shop: Shop, write: Callable[..., object]) -> None:
    shop(CHAIN)
    project = load(write({"pipelines/other.yaml": OTHER}))  # type: ignore[arg-type]
    assert project.graph.table("best").inputs == ("shop.sales",)


def test_one_name_in_two_pipelines_needs_the_pipelines_name(
    shop: Shop, write: Callable[..., object]
) -> None:
    shop(CHAIN)
    other = OTHER.replace("best", "last")
    graph = load(write({"pipelines/other.yaml": other})).graph  # type: ignore[arg-type]
    with pytest.raises(UnknownTable, match=r"'last' names several tables: other\.last, shop\.last"):
        graph.table("last")
    assert graph.table("other.last").pipeline == "other"


def test_two_files_of_one_pipeline_are_refused(shop: Shop, wrong: Mistakes) -> None:
    shop(CHAIN)
    found = wrong({"pipelines/zoo.yaml": "pipeline: shop\nschedule: assets\n"})
    assert found == ["pipelines/zoo.yaml:1: pipeline: 'shop' is declared in pipelines/shop.yaml"]


def test_a_file_that_can_not_be_read_casts_no_doubt_on_views_over_it(wrong: Mistakes) -> None:
    found = wrong({"pipelines/other.yaml": OTHER, "pipelines/shop.yaml": "pipeline: [shop\n"})
    assert len(found) == 1
    assert found[0].startswith("pipelines/shop.yaml:")


def test_facts_do_not_come_from_a_view_of_dimensions(wrong: Mistakes) -> None:
    text = """\
pipeline: p
schedule: assets
dimensions:
  a: {path: a/, schema: "id INT", key: [id]}
  v: {join: [{dimension: a}], select: {id: a.id}}
views:
  t: {kind: topk, from: v, order_by: [id], limit: 1}
"""
    assert wrong({"pipelines/p.yaml": text}) == [
        "pipelines/p.yaml:7: views.t.from: v is computed when it is read: it has no stored rows"
    ]
