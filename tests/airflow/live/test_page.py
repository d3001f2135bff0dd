"""The page in Airflow: behind its login, and as a browser shows it, dark and light."""

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from fastapi.routing import APIRoute

from airflow_client import AirflowClient
from sluice.delta.log.opened import exists
from sluice.delta.places.lake_layout import layout
from stack import Stack

from .corner import DAYS, await_all, sluice
from .deliveries import APPLES, FIRST, HAM, SALAD, SECOND, deliver

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

RETAIL = "retail"


@pytest.fixture(scope="module", autouse=True)
def filled(stack: Stack, folder: Path) -> None:
    """Something to look at, where no test before these has made it."""
    if not exists(layout(stack.project).uri("retail.top_products")):
        deliver(folder / "landing")
        sluice(stack, "run", RETAIL, "--start", FIRST, "--end", SECOND)


def get(client: AirflowClient, path: str) -> httpx.Response:
    return client.http.get(f"/sluice{path}", follow_redirects=True)


def test_every_route_is_behind_the_login(stack: Stack, client: AirflowClient) -> None:
    from sluice.airflow.page_app import app

    paths = [route.path for route in app.routes if isinstance(route, APIRoute)]
    assert len(paths) == len(app.routes) >= 4
    with httpx.Client(base_url=stack.airflow.url) as stranger:
        for path in [*paths, "/docs", "/openapi.json"]:
            answer = stranger.get(f"/sluice{re.sub('{[a-z]+}', 'x', path)}")
            assert answer.status_code in (401, 404), path
            assert answer.status_code == 401 or path in ("/docs", "/openapi.json")


def test_the_overview_shows_where_each_table_stands(client: AirflowClient) -> None:
    answer = get(client, "/")
    assert answer.status_code == 200
    for name in ("retail", "corner", "news", "top_products", "baskets"):
        assert name in answer.text
    assert "script-src 'nonce-" in answer.headers["Content-Security-Policy"]


def test_a_page_needs_nothing_from_elsewhere(client: AirflowClient) -> None:
    for path in ("/", "/tables/retail.baskets", "/tables/retail.top_products"):
        assert not re.search(r"(?:src|href)=[\"'](?:https?:)?//", get(client, path).text)


def test_what_is_not_there_is_said_so(client: AirflowClient) -> None:
    assert get(client, "/tables/retail.nothing").status_code == 404
    assert get(client, "/report/..%2f..%2fsecrets.json").status_code == 404
    assert "none of Sluice" in get(client, "/pipelines/sluice_maintenance").text


def test_rankings_show_bars_and_window_stores_new_windows(client: AirflowClient) -> None:
    leaders = get(client, "/tables/retail.top_products").text
    bars = re.findall(r'aria-label="([^"]+)"><rect [^>]*width="([\d.]+)"', leaders)
    assert len(bars) == 3
    assert max(float(width) for _, width in bars) == 100
    assert all(name.split(":")[0] in (f"{HAM}", f"{SALAD}", f"{APPLES}") for name, _ in bars)
    windows = get(client, "/tables/retail.baskets").text.partition("Newest windows")[2]
    shown = re.findall(r"\d{4}-\d\d-\d\d \d\d:\d\d", windows.partition("Newest versions")[0])
    assert shown == sorted(shown, reverse=True) != []


def test_a_leader_links_to_why_it_is_there(client: AirflowClient) -> None:
    leaders = get(client, "/tables/retail.top_products").text
    links = re.findall(r'href="/sluice(/tables/retail.top_products/why[^"]+)"', leaders)
    assert len(links) == 3
    told = get(client, html.unescape(links[0])).text
    assert "Why this row is here" in told
    for part in ("retail.product_sales", "retail.transactions", "delivered by"):
        assert part in told
    nobody = get(client, "/tables/retail.top_products/why?key=DELI&key=4711").text
    assert "never had a row with the key" in nobody


def test_the_graph_has_the_colours_of_the_last_run(client: AirflowClient, page: "Page") -> None:
    client.await_dag("corner")
    client.unpause("corner")
    await_all(client, "corner", len(DAYS))
    for path in ("/plugin/sluice", "/dags/corner/plugin/sluice_pipeline"):
        best = shown(page, path).locator('.graph a[href$="/tables/corner.best"]')
        best.wait_for()
        assert "success in the last run" in (best.text_content() or "")
        assert best.locator("rect").get_attribute("class") == "passed"


@pytest.fixture(scope="module", params=["light", "dark"])
def page(browser: "Browser", stack: Stack, request: pytest.FixtureRequest) -> Iterator["Page"]:
    """A page of Airflow's UI, logged in, with that theme chosen in Airflow; tests go on with it."""
    context = browser.new_context(
        base_url=stack.airflow.url, viewport={"width": 1500, "height": 950}
    )
    context.add_init_script(f"localStorage.setItem('theme', '{request.param}')")
    page = context.new_page()
    page.goto("/auth/login")
    page.fill("input[name=username]", "admin")
    page.fill("input[name=password]", stack.airflow.password)
    page.click("button[type=submit]")
    page.wait_for_url(lambda url: "/auth/login" not in url)
    yield page
    context.close()


def shown(page: "Page", path: str) -> Any:
    page.goto(path)
    return page.frame_locator("iframe")


def test_menu_and_dags_lead_to_the_page(page: "Page", tmp_path: Path) -> None:
    frame = shown(page, "/plugin/sluice")
    frame.get_by_role("link", name="top_products", exact=True).click()
    frame.get_by_role("heading", name="top_products").wait_for()
    theme = page.evaluate("localStorage.getItem('theme')")
    assert frame.locator("html").get_attribute("data-theme") == theme
    assert "sluice/tables/retail.top_products" in page.url
    frame = shown(page, "/dags/retail/plugin/sluice_pipeline")
    frame.get_by_role("heading", name="retail").first.wait_for()
    assert frame.get_by_text("baskets", exact=True).count() == 2, "in the graph and in the list"


def test_a_link_to_airflow_leaves_the_frame(page: "Page") -> None:
    frame = shown(page, "/plugin/sluice")
    frame.get_by_role("link", name="retail", exact=True).click()
    page.wait_for_url("**/dags/retail**")
