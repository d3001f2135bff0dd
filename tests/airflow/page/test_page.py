"""The page's content, as its HTML has it."""

import datetime as dt
import re

from tests.airflow.conftest import Configured

from sluice.airflow.page import why
from sluice.airflow.page.contents import tables
from sluice.airflow.page.overview import overview
from sluice.airflow.page.table_page import table
from sluice.airflow.page.visit import Visit
from sluice.declare.project import load
from sluice.delta.notes.failures import Failure, keep
from sluice.delta.places.lake_layout import layout
from sluice.pages.html import html

NOW = dt.datetime(2017, 3, 9, 12, tzinfo=dt.UTC)
VISIT = Visit("/sluice", "", "dev", has_report=True, now=NOW)


def test_the_last_failure_of_a_table_is_shown_with_its_time_reason_and_hint(
    configured: Configured,
) -> None:
    project = load(configured())
    keep(layout(project), Failure("shop.sales", NOW, "a column is <a> text", "mend it", 4, "r1"))
    shown = tables(project, project.graph.pipeline("shop"))
    first = html(overview(VISIT, [(project.pipelines["shop"], shown)]))
    assert "failed" in first
    assert "environment dev" in first
    assert "a column is &lt;a&gt; text" in first
    assert 'blocked: <a href="/sluice/tables/shop.sales">shop.sales</a> failed' in first
    page = html(table(VISIT, project, project.graph.table("sales")))
    for part in ("2017-03-09 12:00:00", "exit code 4", "in r1", "&lt;a&gt; text", "mend it"):
        assert part in page
    assert ">stopped<" in page


def test_a_table_links_to_what_it_is_made_from_where_that_has_a_page(
    configured: Configured,
) -> None:
    project = load(configured())
    lines = html(table(VISIT, project, project.graph.table("lines")))
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
    page = html(why.page(VISIT, found, told))
    for text in ("&lt;b&gt;", "r&lt;1&gt;", "landing/a.csv", 'href="/sluice/tables/shop.items"'):
        assert text in page
    assert ">no such row<" in html(why.page(VISIT, found, {"trouble": "no such row"}))


def test_a_row_is_named_by_the_options_of_every_kind_and_by_no_others() -> None:
    given = [("key", "--json"), ("rank", "2"), ("time", "2017-05-08"), ("config", "/etc")]
    assert why.options(given) == ["--key=--json", "--rank=2", "--time=2017-05-08"]
