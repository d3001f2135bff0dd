"""Dimensions joined to dimensions, resolved when they are read."""

from decimal import Decimal

import pyarrow as pa
import pytest
from tests.dimension_views.tables import brands, products
from tests.read.tables import CONFIG, day, project_at, write_table

from sluice.dimension_views.reader import translate
from sluice.errors import UsageError
from sluice.language.expression import Expression
from sluice.read.changelog import Changelog
from sluice.read.lake import Lake

CHAINED = """\
  named: {join: [{dimension: brands}], select: {id: brands.brand_id, small: lower(brands.brand)}}
  shown:
    join:
      - {dimension: products}
      - {dimension: named, on: products.brand_id = named.id}
      - {dimension: brands, on: products.brand_id = brands.brand_id}
    select: {id: products.product_id, small: named.small, brand: brands.brand}
  again: {join: [{dimension: shown}], select: {id: shown.id, what: shown.small}}
"""


@pytest.fixture
def project(tmp_path):
    project = project_at(tmp_path)
    write_table(
        project,
        "products",
        products([(3, "ham", 10), (1, "o'pie", 20), (2, "tea", None), (4, None, 10)]),
    )
    write_table(project, "brands", brands([(10, "Acme"), (30, "Zeta")]))
    return project


def test_a_get_joins_the_row_of_that_key(project):
    catalogue = Lake(project).table("catalogue")
    assert catalogue.get(3) == {"product_id": 3, "name": "HAM", "brand": "Acme"}
    assert catalogue.get(1) == {"product_id": 1, "name": "O'PIE", "brand": "none"}
    assert catalogue.get(2)["brand"] == "none"
    assert catalogue.get(9) is None


def test_it_is_read_in_key_order_with_bounds_limit_and_where(project):
    catalogue = Lake(project).table("catalogue")
    assert [row["product_id"] for row in catalogue.all()] == [1, 2, 3, 4]
    assert [row["product_id"] for row in catalogue.all(reverse=True, limit=2)] == [4, 3]
    assert [row["product_id"] for row in catalogue.range(key_from=2, key_to=3)] == [2, 3]
    assert list(catalogue.range(key_from=3, key_to=2)) == []
    backward = Lake(project).table("catalogue", backward_iteration=True)
    assert [row["product_id"] for row in backward.range(key_from=3, key_to=2)] == [3, 2]
    found = catalogue.range(where="brand = 'Acme'", columns=["name"], limit=1)
    assert list(found) == [{"name": "HAM"}]
    assert catalogue.count == 4
    assert catalogue.schema.names == ["product_id", "name", "brand"]
    assert catalogue.to_arrow().num_rows == 4


def test_a_condition_leaves_out_rows_that_do_not_meet_it(tmp_path):
    where = "    where: brands.brand = 'Acme' or products.product_id in (2, 9)\n    select:\n"
    project = project_at(tmp_path, CONFIG.replace("    select:\n", where, 1))
    write_table(project, "products", products([(1, "a", 20), (2, "b", None), (3, "c", 10)]))
    write_table(project, "brands", brands([(10, "Acme"), (20, "Zeta")]))
    catalogue = Lake(project).table("catalogue")
    assert [row["product_id"] for row in catalogue.all()] == [2, 3]
    assert (catalogue.count, catalogue.get(1)) == (2, None)


def test_it_stays_on_the_versions_it_was_opened_at(project):
    catalogue = Lake(project).table("catalogue")
    write_table(project, "brands", brands([(20, "New")]))
    assert catalogue.get(1)["brand"] == "none"
    assert Lake(project).table("catalogue").get(1)["brand"] == "New"
    assert catalogue.versions == {"products": 0, "brands": 0}


def test_what_the_engine_may_read_otherwise_than_spark_is_refused(tmp_path):
    config = CONFIG.replace("upper(products.name)", "concat(products.name, '!')")
    project = project_at(tmp_path, config)
    write_table(project, "products", products([(1, "a", 1)]))
    write_table(project, "brands", brands([(1, "b")]))
    with pytest.raises(UsageError, match="can't be read without Spark: \"concat"):
        Lake(project).table("catalogue").get(1)


def test_it_has_no_versions_of_its_own(project):
    with pytest.raises(UsageError, match="has no versions of its own"):
        Lake(project).table("catalogue", version=0)


def test_it_may_join_another_one(tmp_path):
    project = project_at(tmp_path, CONFIG.replace("  catalogue:\n", CHAINED + "  catalogue:\n"))
    for rows in ([(1, "pie", 10)], [(2, "tea", None)]):
        write_table(project, "products", products(rows))
    write_table(project, "brands", brands([(10, "Acme")]))
    shown = Lake(project).table("shown")
    assert list(shown.all()) == [
        {"id": 1, "small": "acme", "brand": "Acme"},
        {"id": 2, "small": None, "brand": None},
    ]
    assert shown.versions == {"products": 1, "named__brands": 0, "brands": 0}
    again = Lake(project).table("again")
    assert (again.get(1), again.version) == ({"id": 1, "what": "acme"}, 1)
    with pytest.raises(UsageError, match="no changelog of its own") as refused:
        Changelog.open(Lake(project), "again")
    assert refused.value.hint == "read those of the tables that it reads: products, brands"


def test_of_a_history_the_current_row_stands(tmp_path):
    project = project_at(tmp_path)
    times = pa.timestamp("us", "UTC")
    rows = pa.table(
        {
            "product_id": pa.array([1, 1], pa.int32()),
            "price": pa.array([Decimal("2.00"), Decimal("3.00")], pa.decimal128(9, 2)),
            "valid_from": pa.array([day(1), day(9)], times),
            "valid_to": pa.array([day(9), None], times),
            "is_current": [False, True],
        }
    )
    write_table(project, "prices", rows)
    prices = Lake(project).table("prices")
    assert prices.get(1)["price"] == Decimal("3.00")
    assert prices.get(1, day(1)) is None
    assert [row["price"] for row in prices.all()] == [Decimal("2.00"), Decimal("3.00")]


@pytest.mark.parametrize(
    ("text", "sql"),
    [("a || b + c", '("a" || "b") + "c"'), ("a + b || c", '"a" + "b" || "c"')],
)
def test_texts_are_joined_where_spark_joins_them(text: str, sql: str) -> None:
    """`||` binds as `+` in Spark, and less in the engine that reads."""
    assert translate(Expression.parse(text), "products") == sql
