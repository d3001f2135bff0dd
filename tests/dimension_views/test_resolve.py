# ruff: noqa: E501 - messages stand here as they are printed
"""Views of dimensions over each other, and the values that they join by."""

from tests.support.catalogue import CATALOGUE, CHAINED
from tests.support.declaring import Mistakes, Write

from sluice.declare.project import load


def test_a_view_of_dimensions_joins_views_of_dimensions_but_not_in_a_circle(
    write: Write, wrong: Mistakes
) -> None:
    graph = load(write({"pipelines/p.yaml": CHAINED})).graph
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
    write: Write, wrong: Mistakes
) -> None:
    texts = CATALOGUE.replace('b/, schema: "id INT', 'b/, schema: "id STRING')
    assert wrong({"pipelines/p.yaml": texts}) == [
        (
            "pipelines/p.yaml:9: dimensions.catalogue.join[1].on: 'products.brand' is INT and brands.id "
            "is STRING, which are not the same values; write cast(products.brand as STRING)"
        )
    ]
