"""Numbers and times as the page writes them."""

import datetime as dt
import re

import pytest

from sluice.airflow.page.contents import pipeline, table
from sluice.airflow.page.rendering import ago, render
from sluice.declare.project import load
from sluice.delta.notes.failures import Failure, keep
from sluice.delta.places.lake_layout import layout

from .conftest import Configured

NOW = dt.datetime(2017, 3, 9, 12, tzinfo=dt.UTC)
AROUND = {"root": "/sluice", "airflow": "", "nonce": "n", "has_report": True, "environment": "dev"}


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(5, "just now"), (60, "1 minute ago"), (7_300, "2 hours ago"), (90_000, "1 day ago")],
)
def test_freshness_is_written_in_the_largest_unit(seconds: int, told: str) -> None:
    assert ago(NOW - dt.timedelta(seconds=seconds), NOW) == told


def test_the_last_failure_of_a_table_is_shown_with_its_time_reason_and_hint(
    configured: Configured,
) -> None:
    project = load(configured())
    keep(layout(project), Failure("shop.sales", NOW, "a column is <a> text", "mend it", 4, "r1"))
    declared = project.pipelines["shop"]
    overview = render("overview", pipelines=[pipeline(project, declared)], mistakes="", **AROUND)
    assert "failed" in overview
    assert "environment dev" in overview
    assert "a column is &lt;a&gt; text" in overview
    assert "blocked: shop.sales failed" in overview
    page = render("table", table=table(project, project.graph.table("sales")), **AROUND)
    for part in ("2017-03-09 12:00:00", "exit code 4", "in r1", "&lt;a&gt; text", "mend it"):
        assert part in page
    assert ">stopped<" in page


def test_a_table_links_to_what_it_is_made_from_where_that_has_a_page(
    configured: Configured,
) -> None:
    project = load(configured())
    lines = render("table", table=table(project, project.graph.table("lines")), **AROUND)
    assert set(re.findall(r'href="/sluice/tables/([^"]+)"', lines)) == {"shop.sales"}
    assert "shop.catalogue" in lines  # a view over dimensions is not stored


def test_why_a_row_is_there_is_shown_with_its_rows_and_deliveries(configured: Configured) -> None:
    found = load(configured()).graph.table("sales")
    commit = {"version": 3, "at": "2017-03-09T12:00:00Z", "batch": 2, "run": "r<1>"}
    delivery = {
        "rows": 1,
        "interval_start": "2017-03-08",
        "interval_end": "2017-03-09",
        "commit": {"run": "r<1>"},
        "files": ["landing/a.csv"],
    }
    part = {"table": "shop.items__deliveries", "version": 3, "count": 1, "rows": [{"id": None}]}
    told = {**commit, "change": "insert", "before": None, "after": {"id": "<b>"}}
    told |= {"reads": [], "from": [{**part, "deliveries": [delivery]}]}
    page = render("why", table=found, why=told, **AROUND)
    for text in ("&lt;b&gt;", "r&lt;1&gt;", "landing/a.csv", 'href="/sluice/tables/shop.items"'):
        assert text in page
    assert "<pre>no such row" in render(
        "why", table=found, why={"trouble": "no such row"}, **AROUND
    )
