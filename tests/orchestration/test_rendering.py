"""How the page tells people what it shows."""

import datetime as dt
import re

import pytest

from sluice.orchestration.page.facts import table
from sluice.orchestration.page.rendering import ago, render
from sluice.specs import load

from .conftest import Configured

NOW = dt.datetime(2017, 3, 9, 12, tzinfo=dt.UTC)
AROUND = {"root": "/sluice", "airflow": "", "nonce": "n", "has_report": True}


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(5, "just now"), (60, "1 minute ago"), (7_300, "2 hours ago"), (90_000, "1 day ago")],
)
def test_freshness_is_told_in_the_largest_unit(seconds: int, told: str) -> None:
    assert ago(NOW - dt.timedelta(seconds=seconds), NOW) == told


def test_a_table_links_to_what_it_is_made_from_where_that_has_a_page(
    configured: Configured,
) -> None:
    project = load(configured())
    lines = render("table", table=table(project, project.graph.table("lines")), **AROUND)
    assert set(re.findall(r'href="/sluice/tables/([^"]+)"', lines)) == {"shop.sales"}
    assert "shop.catalogue" in lines  # a view over dimensions is not stored
