"""The page's content, as its HTML has it."""

import dataclasses as dc
import datetime as dt
import re
from dataclasses import replace

from tests.airflow.conftest import Configured

from sluice.airflow.page_app import arguments
from sluice.declare.meaning import definition_of_deliveries
from sluice.declare.project import load
from sluice.delta.failures import Failure, clear, keep
from sluice.delta.intervals import Note, record
from sluice.delta.places.lake_layout import layout
from sluice.delta.reading.landing import fingerprint
from sluice.language.interval import Interval
from sluice.pages import Page, html
from sluice.report import Visit, pages
from sluice.report.pages import overview, table, tables

NOW = dt.datetime(2017, 3, 9, 12, tzinfo=dt.UTC)
VISIT = Visit(
    *("/sluice", "", "dev"),
    reports=("index.html", "shop.sales.html"),
    now=NOW,
    sees=lambda pipeline: pipeline == "shop",
    has_run=lambda _, run: run.startswith("scheduled__"),
)


def test_last_failures_are_shown_with_reason_and_hint(configured: Configured) -> None:
    project = load(configured())
    keep(layout(project), Failure("shop.sales", NOW, "a column is <a> text", "mend it", 4, "r1"))
    shown = tables(project, project.graph.pipeline("shop"))
    first = html(overview(VISIT, [(project.pipelines["shop"], shown)]))
    assert "failed" in first
    assert "environment dev" in first
    assert "a column is &lt;a&gt; text" in first
    assert 'blocked: <a href="/sluice/tables/shop.sales">shop.sales</a> failed' in first
    states = {one.table.name: one.status.state for one in shown}
    assert states["sales"] == "stopped"
    assert {states[view] for view in ("lines", "sums", "best")} == {"blocked"}
    assert states["items"] == "not built"
    page = html(table(VISIT, project, project.graph.table("sales")))
    for part in ("2017-03-09 12:00:00", "exit code 4", "in r1", "&lt;a&gt; text", "mend it"):
        assert part in page
    assert ">stopped<" in page


def test_a_source_with_intervals_without_files_is_incomplete(configured: Configured) -> None:
    project = load(configured())
    sales = project.graph.table("sales")
    no_files = fingerprint((), definition_of_deliveries(sales))
    for nth, files in ((1, "a"), (2, no_files), (3, "b")):
        first = dt.datetime(2024, 1, nth, tzinfo=dt.UTC)
        note = Note(Interval(first, first + dt.timedelta(days=1)), files, nth % 2, nth % 2, 0)
        record(layout(project).uri("shop.sales", "intervals"), note)
    (shown,) = tables(project, [sales])
    assert shown.status.state == "incomplete"
    keep(layout(project), Failure("shop.sales", NOW, "a column is a text"))
    also_stopped = tables(project, [sales])
    assert also_stopped[0].status.state == "stopped"
    first = html(overview(VISIT, [(project.pipelines["shop"], also_stopped)]))
    assert re.search(r">1</span>\s*<div[^>]*>lack files or intervals", first)
    clear(layout(project), "shop.sales")
    page = html(table(VISIT, project, sales))
    assert "no files: [2024-01-02, 2024-01-03) (1 interval)" in page
    assert "delivered until 2024-01-04" in page
    assert ">up to date<" not in page


def test_quarantined_rows_are_counted_on_all_pages(configured: Configured) -> None:
    project = load(configured())
    for name, is_delivered in (("sales", True), ("items", True), ("best", False)):
        page = html(table(VISIT, project, project.graph.table(name)))
        assert ("In quarantine" in page) is is_delivered, name


def test_tables_link_to_what_they_are_made_from(configured: Configured) -> None:
    project = load(configured())
    lines = html(table(VISIT, project, project.graph.table("lines")))
    lines, _, drawn = lines.partition("Column lineage")
    assert set(re.findall(r'href="/sluice/tables/([^"]+)"', lines)) == {
        "shop.sales",
        "shop.catalogue",
    }
    linked = {f"shop.{name}" for name in ("sales", "sums", "best", "makers", "catalogue")}
    assert set(re.findall(r'href="/sluice/tables/([^"]+)"', drawn)) == linked
    assert 'data-from="shop.sales.' in drawn
    catalogue = html(table(VISIT, project, project.graph.table("catalogue")))
    assert "Computed when it is read." in catalogue
    assert 'href="/sluice/tables/shop.makers"' in catalogue


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
    part = {"table": "shop.items__deliveries", "version": 3, "count": 71, "rows": [{"id": None}]}
    state = {"table": "shop.items__state", "version": 3, "count": 1, "rows": [{"sum": 1}]}
    told = {**commit, "change": "insert", "before": None, "after": {"id": "<b>"}}
    told |= {"reads": [], "from": [{**part, "deliveries": [delivery]}, state]}
    page = html(pages.page(VISIT, found, told))
    assert "71 rows, version 3, the first 1 shown" in page
    assert "__state" not in page, "it has no more than the row"
    for text in ("&lt;b&gt;", "r&lt;1&gt;", "landing/a.csv", 'href="/sluice/tables/shop.items"'):
        assert text in page
    assert ">no such row<" in html(pages.page(VISIT, found, {"trouble": "no such row"}))


def test_why_shows_nothing_that_the_visitor_may_not_see(configured: Configured) -> None:
    found = load(configured()).graph.table("best")
    delivery = {
        "rows": 71,
        "interval_start": "2017-03-08",
        "interval_end": "2017-03-09",
        "commit": {"run": "secret-run"},
        "files": ["landing/secret.csv"],
    }
    part = {"table": "hr.pay__deliveries", "version": 73, "count": 71, "rows": [{"pay": "4711"}]}
    told = {"version": 3, "at": "", "batch": 2, "run": None, "change": "insert", "before": None}
    told |= {"after": {"id": 1}, "from": [part | {"deliveries": [delivery]}]}
    page = html(pages.page(VISIT, found, told))
    assert "Rows, runs and files of hr are not shown" in page
    for part_of_it in ("4711", "secret", "71 row", "version 73", "hr.pay", "tables/hr"):
        assert part_of_it not in page


def test_tables_that_visitors_may_not_see_are_no_links(configured: Configured) -> None:
    project = load(configured())
    worst = project.graph.table("worst")
    assert 'href="/sluice/tables/shop.sums"' in html(table(VISIT, project, worst))
    nobody = replace(VISIT, sees=lambda _: False)
    page = html(table(nobody, project, worst))
    assert "shop.sums" in page
    assert "/sluice/tables/" not in page


def test_only_runs_that_airflow_has_are_links() -> None:
    run = "scheduled__2017-03-08T00:00:00+00:00"
    assert html(Page("", VISIT.run("shop", run), (), (), "")).count("<a ") == 1
    for of_a_command in ("promote-20170309T120000-c0ffee", "shop-20170308T000000-c0ffee"):
        shown = html(Page("", VISIT.run("shop", of_a_command), (), (), ""))
        assert of_a_command in shown
        assert "<a " not in shown
    assert VISIT.run("shop", "") in (None, "")


def test_a_row_is_named_by_the_options_of_every_kind_and_by_no_others() -> None:
    given = [("key", "--json"), ("rank", "2"), ("time", "2017-05-08"), ("config", "/etc")]
    named = ["--rank=2", "--time=2017-05-08", "--", "shop.sales", "--json"]
    assert arguments("shop.sales", given) == named


def test_button_of_what_changed_is_for_those_who_may_trigger(configured: Configured) -> None:
    project = load(configured())
    shown = [(project.pipelines["shop"], tables(project, project.graph.pipeline("shop")))]
    assert "<button" not in html(overview(VISIT, shown))
    visit = dc.replace(VISIT, airflow="/af", may_trigger=lambda dag: dag == "shop")
    page = html(overview(visit, shown))
    assert 'data-address="/af/api/v2/dags/shop/dagRuns"' in page
    assert "{&#34;changed&#34;: true}" in page
