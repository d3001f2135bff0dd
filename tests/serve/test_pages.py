"""Pages for people: what they show of tables, rows and the graph, and to whom."""

import re
import shutil
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable
from tests.serve.conftest import DECLARED, Visitor, deliver, event, serving
from tests.support.landed import Landed

from sluice.read.changelog import Changelog
from sluice.report.publish import report_folder
from sluice.serve import pages

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from pyspark.sql import SparkSession

TOKENS = ("a" * 20, f"{'b' * 20} news")


def test_the_first_page_has_every_table_and_their_graph(visit: Visitor) -> None:
    found = visit().get("/")
    assert found.status_code == 200
    assert "script-src 'nonce-" in found.headers["Content-Security-Policy"]
    graph = found.text[found.text.index('class="card scroll graph"') :]
    graph = graph[: graph.index("</svg>")]
    linked = set(re.findall(r'href="/tables/shop\.(\w+)"', graph))
    stored = {"events", "products", "brands", "visits", "sums", "best", "tied", "unranked"}
    assert linked == stored | {"catalogue"}
    assert graph.count("<path") == 7  # from each input to each table
    assert 'data-from="shop.sums" data-to="shop.best"' in graph
    assert visit().get("/pipelines/shop").status_code == 200
    assert visit().get("/pipelines/nope").status_code == 404


def test_a_table_shows_the_rows_that_its_form_asks_for(visit: Visitor) -> None:
    client = visit()
    page = client.get("/tables/sums", params={"key": ["1", "x"]}).text
    row = client.get("/v1/tables/sums/rows", params={"key": ["1", "x"]}).json()["rows"][0]
    assert f">{row['paid']}<" in page
    assert 'name="key" value="1"' in page
    newest = page.partition("Newest changes")[2].partition("</section>")[0]
    versions = [int(v) for v in re.findall(r'data-name="_commit_version">(\d+)<', newest)]
    changed = client.get("/v1/tables/sums/changes").json()["rows"]
    assert [*dict.fromkeys(versions)] == sorted({r["_commit_version"] for r in changed})[:-4:-1]
    assert max(map(versions.count, versions)) <= 12
    costs = re.findall(r'data-name="(Seconds|Bytes read|Bytes written)">([\d.,]+)<', page)
    assert {name for name, _ in costs} == {"Seconds", "Bytes read", "Bytes written"}
    assert 'href="/tables/shop.events"' in page  # what its columns are made from
    ordered = client.get("/tables/visits", params={"from": "2024-01-02", "limit": 3}).text
    assert "Next page" in ordered
    wrong = client.get("/tables/sums", params={"where": "reflect('a')"}).text
    assert "where does not support" in wrong


def test_a_view_over_dimensions_has_a_page_with_its_rows(visit: Visitor) -> None:
    client = visit()
    page = client.get("/tables/catalogue", params={"key": 3}).text
    shown = re.findall(r'data-name="(name|brand)">(\w+)<', page)
    assert shown == [("name", "P3"), ("brand", "one")]
    assert "upper(products.name)" in unescape(page.partition("Definition")[2])
    assert "Newest changes" not in page
    assert "P8" in client.get("/tables/catalogue?limit=50").text
    said = client.get("/v1/tables/catalogue").json()
    assert said["definition"]["select"]["brand"] == "brands.brand"
    assert "path" not in client.get("/v1/tables/events").json()["definition"]


def test_changes_that_are_no_longer_kept_are_nothing_wrong(copy: Landed, visit: Visitor) -> None:
    table = DeltaTable(copy.uri("sums"))
    table.optimize.compact()
    shutil.rmtree(Path(copy.uri("sums"), "_change_data"), ignore_errors=True)
    table.vacuum(0, enforce_retention_duration=False, dry_run=False)
    client = visit(of=copy)
    assert client.get("/v1/tables/sums/changes").status_code == 410
    shown = client.get("/tables/sums").text.partition("<h2>Newest changes</h2>")[2]
    shown = shown.partition("</section>")[0]
    assert "Those so far are gone" in shown
    assert "wrong" not in shown
    deliver(copy, 5, event(24 * 5))
    page = client.get("/tables/sums").text
    assert "Those so far are gone" not in page
    newest = page.partition("Newest changes")[2].partition("</section>")[0]
    assert 'data-name="_change_type">' in newest
    answer = client.get("/v1/tables/sums/changes", params={"from_version": table.version() + 1})
    assert answer.json()["rows"]


def test_changes_of_a_large_batch_are_not_read_for_a_page(
    visit: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "LARGEST", 1)
    monkeypatch.setattr(Changelog, "feed", None)  # it would fail
    shown = unescape(visit().get("/tables/sums").text).partition("Newest changes")[2]
    said = r"Version \d+ changed too many rows to show here. Read them from /v1/tables/\S+/changes"
    assert re.search(said, shown.partition("</section>")[0])


def test_a_column_is_followed_there_and_back(visit: Visitor) -> None:
    page = visit().get("/tables/sums").text
    graph = page[page.index("Column lineage") :]
    lines = set(re.findall(r'data-from="shop\.([\w.]+)" data-to="shop\.([\w.]+)"', graph))
    assert {("events.price", "sums.paid"), ("events.what", "sums.what")} <= lines
    assert {("sums.paid", f"{view}.paid") for view in ("best", "tied", "unranked")} <= lines
    assert not any("visits" in line[1] for line in lines), "it is made from events alone"


def test_a_row_is_explained_and_what_comes_next_is_shown(visit: Visitor) -> None:
    client = visit()
    assert "Why this row is here" in client.get("/tables/best/why?partition=user=1&rank=1").text
    assert "never had such a row" in client.get("/tables/events/why?key=999").text
    assert "shop.best" in client.get("/plan").text
    every = client.get("/tables/sums", params={"limit": 50}).text
    links = re.findall(r'href="(/tables/shop\.sums/why\?[^"]+)">why', every)
    rows = client.get("/v1/tables/sums/rows").json()["rows"]
    assert len(links) == len(rows)
    for link, row in zip(links, rows, strict=True):
        page = client.get(unescape(link)).text
        assert "Why this row is here" in page
        assert f">{row['paid']}<" in page
    assert "why?" not in client.get("/tables/sums", params={"columns": "paid"}).text
    assert 'href="/plan"' in client.get("/").text


def test_mistakes_and_reports_are_shown_to_whom_they_concern(copy: Landed, visit: Visitor) -> None:
    config = copy.folder / "config" / "pipelines" / "late.yaml"
    config.write_text("pipeline: late\nviews:\n  few: {kind: topk}\n")
    folder = report_folder(copy.project)
    folder.mkdir(parents=True)
    for name in ("index", "shop.events", "shop.gone", "late.few"):
        (folder / f"{name}.html").write_text(f"report of {name}")
    client = visit(TOKENS[0], f"{'c' * 20} shop", TOKENS[1], of=copy)
    for token, files in {"a": {"index", "shop.events"}, "c": {"shop.events"}, "b": set()}.items():
        who = ("ann", token * 20)
        names = ("index", "shop.events", "shop.gone", "late.few")
        found = {n for n in names if client.get(f"/report/{n}.html", auth=who).status_code == 200}
        assert found == files
        front = client.get("/", auth=who).text
        assert ("late.yaml:1: `schedule` is missing" in front) is (token == "a")
        assert str(copy.folder) not in front
        assert ("/report/index.html" in front) is (token == "a")
    page = client.get("/tables/events", auth=("ann", "c" * 20)).text
    assert "/report/shop.events.html" in page


@pytest.mark.parametrize("path", ["/", "/plan", "/tables/best", "/tables/best/why?key=1"])
def test_pages_are_of_the_pipelines_of_a_token(visit: Visitor, path: str) -> None:
    client = visit(*TOKENS)
    assert client.get(path).status_code == 401
    hidden = client.get(path, auth=("ann", "b" * 20))
    assert hidden.status_code in (200, 404)
    assert "shop.best" not in hidden.text.replace("unknown table", "")
    assert client.get(path, auth=("ann", "a" * 20)).status_code == 200


@pytest.mark.parametrize(("width", "scheme"), [(380, "dark"), (1280, "light")])
def test_a_browser_goes_from_the_graph_to_a_row_by_keyboard(
    shop: Landed, browser: "Browser", width: int, scheme: str
) -> None:
    with serving(shop.folder) as url:
        page = browser.new_page(
            viewport={"width": width, "height": 700},
            color_scheme=scheme,  # type: ignore[arg-type]
        )
        elsewhere = list[str]()
        page.on("request", lambda request: elsewhere.append(request.url))
        errors = list[str]()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(url)
        graph = page.locator(".graph")
        graph.focus()
        before = page.locator(".graph svg").bounding_box()
        page.keyboard.press("+")
        after = page.locator(".graph svg").bounding_box()
        assert before is not None
        assert after is not None
        assert after["width"] > before["width"]
        page.locator('.graph a[href="/tables/shop.best"]').focus()
        marked = page.locator(".graph .marked[data-id]")
        ids = marked.evaluate_all("all => all.map(one => one.dataset.id)")
        assert set(ids) == {"shop.events", "shop.sums", "shop.best"}
        page.keyboard.press("Enter")
        page.wait_for_url("**/tables/shop.best")
        column = page.locator('.column[data-id="shop.events.price"]')
        column.focus()
        page.keyboard.press("Enter")
        assert column.get_attribute("aria-pressed") == "true"
        ids = page.locator(".column.marked").evaluate_all("all => all.map(one => one.dataset.id)")
        made = {f"shop.{name}" for name in ("sums.paid", "best.paid", "best.rank")}
        assert set(ids) == {"shop.events.price"} | made
        page.keyboard.press("Escape")
        assert column.get_attribute("aria-pressed") == "false"
        assert page.locator(".graph.marking, .column.marked").count() == 0
        page.get_by_label("limit").fill("1")
        page.keyboard.press("Enter")
        page.wait_for_url("**limit=1*")
        assert page.get_by_text("Next page").is_visible()
        wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert wide <= 0
        assert errors == []
        assert all(address.startswith(url) for address in elsewhere)
        page.close()


def test_a_graph_of_a_hundred_tables_is_moved_and_enlarged(
    tmp_path: Path, local_spark: "SparkSession", browser: "Browser"
) -> None:
    views = [
        f"  v{n}: {{kind: select, from: {f'v{n // 3}' if n else 'events'}, select: {{id: id}}}}\n"
        for n in range(99)
    ]
    source = DECLARED[: DECLARED.index("dimensions:")]
    lake = Landed(tmp_path, f"{source}views:\n{''.join(views)}", local_spark)
    with serving(lake.folder) as url:
        page = browser.new_page(viewport={"width": 1000, "height": 700})
        page.goto(url)
        graph = page.locator(".graph")
        assert page.locator(".graph a").count() == 100

        def place() -> tuple[float, float, float]:
            found: tuple[float, float, float] = graph.evaluate(
                "one => [one.scrollLeft, one.scrollTop, one.firstElementChild.clientWidth]"
            )
            return found

        graph.scroll_into_view_if_needed()
        box = graph.bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + 500, box["y"] + 300)
        page.mouse.down()
        page.mouse.move(box["x"] + 440, box["y"] + 200, steps=4)
        page.mouse.up()
        moved = place()
        assert moved[:2] == [60, 100]
        assert page.url.rstrip("/") == url
        page.keyboard.down("Control")
        page.mouse.wheel(0, -100)
        page.keyboard.up("Control")
        page.wait_for_function(f"document.querySelector('.graph svg').clientWidth > {moved[2]}")
        page.locator('.graph a[href="/tables/shop.v98"]').focus()
        page.mouse.move(box["x"] + 300, box["y"] + 310)
        page.mouse.move(box["x"] + 2, box["y"] + 2)
        marked = page.locator(".graph .marked[data-id]")
        ids = marked.evaluate_all("all => all.map(one => one.dataset.id)")
        assert set(ids) == {
            f"shop.{name}" for name in ("events", "v0", "v1", "v3", "v10", "v32", "v98")
        }
        page.keyboard.press("Enter")
        page.wait_for_url("**/tables/shop.v98")
        page.close()
