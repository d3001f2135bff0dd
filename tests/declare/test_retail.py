"""The configuration of the demo loads, and is what its pages say."""

from pathlib import Path

import pytest

from sluice.declare.project import Project, load

CONFIG = Path(__file__).parents[2] / "config"


@pytest.fixture(scope="module")
def retail() -> Project:
    return load(CONFIG, environ={})


def test_relative_paths_start_at_the_projects_root(retail: Project) -> None:
    assert retail.root == CONFIG.parent
    assert retail.lake == str(CONFIG.parent / "lake")


def test_the_environment_moves_lake_and_landing() -> None:
    project = load(CONFIG, environ={"SLUICE_LAKE": "s3://lake", "SLUICE_LANDING": "/data"})
    assert project.lake == "s3://lake"
    assert project.pipelines["retail"].dimensions["products"].path == "/data/products/"


def test_every_tables_identity(retail: Project) -> None:
    keys = {table.name: table.key for table in retail.graph.tables.values()}
    assert keys == {
        "transactions": ("basket_id", "product_id"),
        "coupon_redemptions": ("_sluice_interval", "_sluice_id"),
        "campaign_memberships": ("campaign_id", "household_id"),
        "products": ("product_id",),
        "demographics": ("household_id",),
        "invoices": ("basket_id", "product_id"),
        "product_sales": ("department", "product_id"),
        "top_products": ("department", "product_id"),
        "product_sales_weekly": ("window_start", "department", "product_id"),
        "top_products_weekly": ("window_start", "department", "product_id"),
        "households": ("household_id",),
        "basket_totals": ("household_id", "basket_id"),
        "baskets": ("household_id", "window_start", "basket_id"),
        "redeemed_baskets": (
            "_sluice_left_key__sluice_interval",
            "_sluice_left_key__sluice_id",
            "_sluice_right_key_household_id",
            "basket_id",
        ),
        "campaign_events": (
            "_sluice_from",
            "_sluice_from_0__sluice_interval",
            "_sluice_from_0__sluice_id",
            "_sluice_from_1_campaign_id",
            "_sluice_from_1_household_id",
        ),
        "basket_steps": ("household_id", "basket_id"),
        "busy_departments": ("department",),
    }


def test_money_is_decimal_and_every_type_is_known(retail: Project) -> None:
    for table in retail.graph.tables.values():
        assert "" not in table.columns.values()
        assert not {"FLOAT", "DOUBLE"} & set(table.columns.values())


def test_the_year_has_365_intervals(retail: Project) -> None:
    pipeline = retail.pipelines["retail"]
    start = pipeline.start_date
    assert start is not None
    assert len(pipeline.schedule.intervals(start, start.replace(year=2018))) == 365


def test_a_project_is_frozen(retail: Project) -> None:
    with pytest.raises(ValueError, match="frozen"):
        retail.lake = "elsewhere"  # type: ignore[misc]
