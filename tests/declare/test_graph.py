# ruff: noqa: E501 - messages stand here as they are printed
"""The graph of tables: order, cycles, names across pipelines."""

from collections.abc import Callable

import pytest

from sluice.declare.graph import UnknownTable
from sluice.declare.meaning.definition import definition
from sluice.declare.project import Project, load

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


def test_a_cycle_is_named_from_its_first_view_on(mistakes: Mistakes) -> None:
    views = """\
a: {kind: topk, from: c, order_by: [x], limit: 1}
b: {kind: topk, from: a, order_by: [x], limit: 1}
c: {kind: topk, from: b, order_by: [x], limit: 1}
"""
    assert mistakes(views) == ["11: views.a: a cycle: a -> b -> c -> a"]


def test_a_view_over_itself_is_a_cycle(mistakes: Mistakes) -> None:
    view = "a: {kind: topk, from: a, order_by: [x], limit: 1}"
    assert mistakes(view) == ["11: views.a: a cycle: a -> a"]


def test_two_cycles_are_both_reported(mistakes: Mistakes) -> None:
    views = "\n".join(
        f"{name}: {{kind: topk, from: {of}, order_by: [x], limit: 1}}"
        for name, of in ("ab", "ba", "cd", "dc")
    )
    assert mistakes(views) == [
        "11: views.a: a cycle: a -> b -> a",
        "13: views.c: a cycle: c -> d -> c",
    ]


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


CATALOGUE = """\
pipeline: p
schedule: assets
sources:
  sales: {path: s/, delivery: stream, schema: "sku INT, at TIMESTAMP"}
dimensions:
  products: {path: a/, schema: "id INT, brand INT", key: [id]}
  brands: {path: b/, schema: "id INT, name STRING", key: [id]}
  catalogue:
    join: [{dimension: products}, {dimension: brands, on: products.brand = brands.id}]
    select: {sku: products.id, brand: brands.name}
views:
  bills: {kind: lookup, from: sales, join: [{dimension: catalogue, on: sku = catalogue.sku}]}
"""
BEHIND = """\
  named: {join: [{dimension: brands}], select: {id: brands.id, name: upper(brands.name)}}
  catalogue:
    join: [{dimension: products}, {dimension: named, on: products.brand = named.id}]
    select: {sku: products.id, brand: named.name}
views:
"""
CHAINED = CATALOGUE.partition("  catalogue:")[0] + BEHIND + CATALOGUE.partition("views:\n")[2]


def test_a_lookup_joins_a_view_of_dimensions(write: Callable[..., object]) -> None:
    graph = load(write({"pipelines/p.yaml": CATALOGUE})).graph  # type: ignore[arg-type]
    assert graph.table("catalogue").key == ("sku",)
    assert dict(graph.table("bills").columns)["brand"] == "STRING"
    assert [t.name for t in graph.ancestors("p.bills")] == [
        "sales",
        "products",
        "brands",
        "catalogue",
    ]


def test_a_view_of_dimensions_joins_views_of_dimensions_but_not_in_a_circle(
    write: Callable[..., object], wrong: Mistakes
) -> None:
    graph = load(write({"pipelines/p.yaml": CHAINED})).graph  # type: ignore[arg-type]
    above = [t.name for t in graph.ancestors("p.bills")]
    assert above == ["sales", "products", "brands", "named", "catalogue"]
    circle = CHAINED.replace(
        "[{dimension: brands}], select",
        "[{dimension: brands}, {dimension: catalogue, on: brands.id = catalogue.sku}], select",
    )
    assert wrong({"pipelines/p.yaml": circle}) == [
        "pipelines/p.yaml:8: dimensions.named: a cycle: named -> catalogue -> named"
    ]


def test_a_view_of_dimensions_joins_by_the_values_as_they_are(
    write: Callable[..., object], wrong: Mistakes
) -> None:
    texts = CATALOGUE.replace('b/, schema: "id INT', 'b/, schema: "id STRING')
    assert wrong({"pipelines/p.yaml": texts}) == [
        (
            "pipelines/p.yaml:9: dimensions.catalogue.join[1].on: 'products.brand' is INT and brands.id "
            "is STRING, which are not the same values; write cast(products.brand as STRING)"
        )
    ]


@pytest.mark.parametrize(
    ("old", "new"), [("upper(", "lower("), ("brand: named.name", "brand: upper(named.name)")]
)
def test_what_a_view_of_dimensions_means_is_part_of_what_is_looked_up_in_it(
    write: Callable[..., object], old: str, new: str
) -> None:
    found = {
        definition(load(write({"pipelines/p.yaml": text})).graph.table("bills"))  # type: ignore[arg-type]
        for text in (CHAINED, CHAINED.replace(old, new))
    }
    assert len(found) == 2
