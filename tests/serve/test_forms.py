"""Form of a table's page: its fields, what they ask for, and what is said of mistakes in them."""

import re
import uuid
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import CommitProperties, write_deltalake
from starlette.testclient import TestClient
from tests.serve.conftest import server_of, serving

from sluice.declare.project import load
from sluice.delta.failures import Failure
from sluice.delta.log.position import Position
from sluice.delta.places.lake_layout import layout
from sluice.errors import HistoryLost
from sluice.read.changelog import Changelog
from sluice.serve import pages, states

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PIPELINE = """\
pipeline: shop
schedule: "@daily"
start_date: 2017-03-01
sources:
  sales:
    path: "landing/{interval_start:%Y-%m-%d}/"
    schema: item STRING, at TIMESTAMP, price DECIMAL(12,2)
    key: [item, at]
"""
SCHEMA = pa.schema(
    {"item": pa.string(), "at": pa.timestamp("us", "UTC"), "price": pa.decimal128(12, 2)}
)
DAYS = {"": (1, 4), "a": (2, 5), "b": (3, 6)}  # of each item's sales
BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of six sales."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "config" / "pipelines").mkdir(parents=True)
    (folder / "config" / "pipelines" / "shop.yaml").write_text(PIPELINE, "utf-8")
    sold = [
        {"item": item, "at": datetime(2024, 1, day, tzinfo=UTC), "price": day}
        for item, days in DAYS.items()
        for day in days
    ]
    uri = layout(load(folder / "config")).uri("shop.sales")
    position = Position(1, uuid.uuid4().hex, "batch", frontier={})
    properties = CommitProperties(custom_metadata={"userMetadata": position.to_json()})
    rows = pa.Table.from_pylist(sold, SCHEMA)
    write_deltalake(uri, rows, commit_properties=properties)
    return folder


@pytest.fixture(scope="module")
def client(folder: Path) -> TestClient:
    """A browser at a server of them."""
    app = server_of(folder).app()
    return TestClient(
        app, base_url="http://localhost", headers=BROWSER, raise_server_exceptions=False
    )


def ask(client: TestClient, query: str) -> str:
    """The part of the page with the form and its rows."""
    found = client.get(f"/tables/sales?{query}")
    assert found.status_code == 200
    return unescape(found.text.partition("<h2>Rows</h2>")[2].partition("</section>")[0])


def days(shown: str) -> list[int]:
    """Days of the sales that are shown."""
    return [int(day) for day in re.findall(r'data-name="at">2024-01-(\d\d) ', shown)]


def fields(shown: str, name: str) -> list[tuple[str, str]]:
    """Labels and values of the fields of that name."""
    found = re.findall(r'<label title="[^"]*">([^<]*) <input name="(.*?)" value="(.*?)">', shown)
    return [(label, value) for label, of, value in found if of == name]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("limit=x", "limit=x: 'limit' is a whole number"),
        ("limit=1&limit=2", "parameter 'limit' is given 2 times"),
        ("reverse=yes", "reverse=yes: 'reverse' is true or false"),
        ("order=foo", "order=foo: an order is"),
        (
            "where=price > 1e99999999999999999999",
            "1e99999999999999999999 does not compare with column 'price'",
        ),
        ("where=price > '/etc/x'", "'/etc/x' does not compare with column 'price'"),
        ("where=price > 1.2.3", "where does not support '1.2.3'"),
        ("key=a&key=noon", "noon"),
        ("cursor=W10", "the cursor is not one of this read"),
        ("key=&key=2024-01-04", "'at' is asked for without item: fill in the columns before it"),
        ("from=&from=2024-01-02", "'from at' is asked for without from item: fill in"),
        ("to=&to=2024-01-02&limit=1", "'to at' is asked for without to item: fill in"),
    ],
)
def test_a_mistake_is_shown_beside_the_form(client: TestClient, query: str, message: str) -> None:
    shown = ask(client, query)
    assert shown.index("<form") < shown.index(message)
    assert days(shown) == []


def test_no_message_of_a_page_shows_a_path_of_the_machine(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise HistoryLost("/srv/lake/shop is gone")

    monkeypatch.setattr(pages, "read_rows", fail)
    monkeypatch.setattr(Changelog, "open", fail)
    monkeypatch.setattr(states, "why", fail)
    failed = Failure("shop.sales", datetime(2024, 1, 1, tzinfo=UTC), "/srv/in has no file", "/srv")
    monkeypatch.setattr("sluice.read.status.stored_failures", lambda _: {"shop.sales": failed})
    for path in ("/", "/tables/sales?limit=1", "/tables/sales/why?key=a&key=2024-01-01"):
        shown = unescape(client.get(path).text)
        assert "<path>" in shown
        assert "/srv" not in shown


def test_a_key_and_bounds_have_a_field_for_each_column(client: TestClient) -> None:
    shown = ask(client, "from=a&from=2024-01-03&to=b&to=2024-01-03")
    assert fields(shown, "key") == [("item", ""), ("at", "")]
    assert fields(shown, "from") == [("from item", "a"), ("from at", "2024-01-03")]
    assert fields(shown, "to") == [("to item", "b"), ("to at", "2024-01-03")]
    assert days(shown) == [5, 3]


def test_order_and_direction_are_chosen(client: TestClient) -> None:
    shown = ask(client, "order=key&reverse=1&limit=2")
    values = re.findall(r'<option value="(.*?)"( selected)?>', shown)
    assert values == [
        *(("", ""), ("key", " selected"), ("none", "")),
        *(("", ""), ("true", " selected")),
    ]
    assert days(shown) == [6, 3]


def test_a_form_that_is_not_filled_in_asks_for_a_first_page(client: TestClient) -> None:
    assert fields(ask(client, ""), "limit") == [("limit", "50")]
    empty = ask(client, "key=&key=&from=&from=&to=&to=&where=&order=&reverse=&limit=")
    assert days(empty) == []
    assert "wrong" not in empty
    every = ask(client, "key=&key=&from=&from=&to=&to=&where=&order=&reverse=&limit=50")
    assert days(every) == [1, 4, 2, 5, 3, 6]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (r"key=\&key=2024-01-04", [4]),
        (r"from=\&to=\&", [1, 4]),
        (r"from=&from=&to=a&to=", [1, 4, 2, 5]),
        (r"from=\&from=2024-01-02&to=&to=", [4, 2, 5, 3, 6]),
    ],
)
def test_an_empty_text_of_a_key_is_asked_for(
    client: TestClient, query: str, found: list[int]
) -> None:
    assert days(ask(client, query)) == found


def test_the_next_page_is_of_the_same_question(client: TestClient) -> None:
    shown = ask(client, r"from=\&from=2024-01-02&columns=at&limit=2")
    assert days(shown) == [4, 2]
    form = shown[shown.rindex("<form") :]
    hidden = re.findall(r'<input type="hidden" name="(.*?)" value="(.*?)">', form)
    again = client.get("/tables/sales", params=hidden).text
    assert days(again) == [5, 3]


def test_a_browser_never_sees_json(client: TestClient) -> None:
    for path, status in {
        "/tables/sales?nope=1": 400,
        "/tables/nope": 404,
        "/nope": 404,
        "/plan?x=1": 400,
    }.items():
        found = client.get(path)
        assert found.status_code == status
        assert found.headers["Content-Type"].startswith("text/html")
        assert "It can&#39;t be shown" in found.text
        assert client.get(path, headers={"Accept": "*/*"}).json()["error"]["message"]


def test_a_browser_shows_which_field_is_empty_before_a_filled_one(
    folder: Path, browser: "Browser"
) -> None:
    with serving(folder) as url:
        page = browser.new_page()
        page.goto(f"{url}/tables/sales")
        page.get_by_label("to at").fill("2024-01-01")
        page.get_by_label("reverse").select_option("true")
        page.get_by_role("button", name="Show rows").click()
        page.wait_for_url("**/tables/shop.sales?to=&to=2024-01-01&reverse=true&limit=50")
        assert "'to at' is asked for without to item" in page.content()
        assert days(page.content()) == []
        page.get_by_label("to item").fill("\\")
        page.get_by_role("button", name="Show rows").click()
        page.wait_for_url("**/tables/shop.sales?to=%5C&to=2024-01-01&reverse=true&limit=50")
        assert days(page.content()) == [1]
        page.close()
