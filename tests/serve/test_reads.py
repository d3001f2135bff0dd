"""Reads of rows: pages that stay exact while batches commit, and parameters that are refused."""

import sys
from collections import Counter
from typing import Any

import pytest
from click.testing import CliRunner
from deltalake import DeltaTable
from starlette.testclient import TestClient
from tests.serve.conftest import Visitor, deliver, event
from tests.support.landed import Landed

from sluice.cli.main import main
from sluice.declare.project import load
from sluice.operate.tables import drop
from sluice.read.lake import Lake as Reader
from sluice.serve import reads
from sluice.serve.access import EVERYTHING
from sluice.serve.answers import Format
from sluice.serve.questions import Limits, Question

EVENTS = "/v1/tables/events/rows"


def read_pages(client: TestClient, path: str, between: Any, **query: Any) -> list[dict[str, Any]]:
    """All rows, page by page, with something done between the pages."""
    rows, cursor = [], None
    while True:
        said = client.get(path, params=query | ({"cursor": cursor} if cursor else {})).json()
        rows += said["rows"]
        if not (cursor := said["cursor"]):
            return rows
        between()


@pytest.mark.parametrize(
    ("path", "query"),
    [
        (EVENTS, {}),
        (EVENTS, {"reverse": "true", "where": "price > 10"}),
        (EVENTS, {"order": "none", "where": "price > 10"}),
        ("/v1/tables/visits/rows", {}),
        ("/v1/tables/visits/rows", {"key_from": "1", "key_to": "2", "reverse": "true"}),
        ("/v1/tables/catalogue/rows", {"reverse": "true"}),
    ],
)
def test_pages_are_of_one_version_while_batches_commit(
    shop: Landed, visit: Visitor, path: str, query: dict[str, str]
) -> None:
    client, size = visit(), 4 if "catalogue" in path else 20
    expected = client.get(path, params=query).json()["rows"]
    days = iter(range(50))

    def commit() -> None:  # rows before, on and behind the page; and one that goes
        nth = next(days)
        numbers = range(24 * 5 + nth, 24 * 5 + 30, 3)
        name = f"{path}{query}{nth}"
        deliver(shop, 5, *(event(n, at=event(24 * 5)["at"], what=name) for n in numbers))
        shop.land("p", a_parquet=[{"product_id": n, "name": name, "brand_id": 0} for n in range(9)])
        shop.load("products")

    assert read_pages(client, path, commit, limit=size, **query) == expected
    again = client.get(path, params=query).json()["rows"]
    assert again != expected


@pytest.mark.parametrize("said", ["true", "false"])
def test_a_store_that_reads_backward_says_so_in_its_declaration(visit: Visitor, said: str) -> None:
    query = {"key": "1", "from": "2024-02-01", "to": "2024-01-01", "backward_iteration": said}
    found = visit().get("/v1/tables/visits/rows", params=query)
    assert found.status_code == 400
    assert "backward_iteration goes with order=key" in found.json()["error"]["message"]


@pytest.mark.parametrize(
    ("table", "query"),
    [
        ("visits", {"from": "2024-01-03", "to": "2024-01-02"}),
        ("events", {"from": "9", "to": "5", "backward_iteration": "true"}),
    ],
)
def test_reverse_false_is_never_ignored(visit: Visitor, table: str, query: dict[str, str]) -> None:
    address, client = f"/v1/tables/{table}/rows", visit()
    rows = client.get(address, params=query).json()["rows"]
    assert rows
    ordered = query | {"from": query["to"], "to": query["from"]}
    assert client.get(address, params={**ordered, "reverse": "false"}).json()["rows"] == rows[::-1]
    assert client.get(address, params={**query, "reverse": "true"}).json()["rows"] == rows
    refused = client.get(address, params={**query, "reverse": "false"})
    assert refused.status_code == 400
    assert "reverse=false" in refused.json()["error"]["message"]
    forward = client.get(address, params={**query, "backward_iteration": "false"})
    assert forward.status_code == 400 if table == "visits" else forward.json()["rows"] == []


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ("rows?key=%ff", "UTF-8"),
        ("rows?limit=-1", "'limit' is a whole number from 0 on"),
        ("changes?from_version=-1", "'from_version' is a whole number from 0 on"),
        ("rows?key=%ed%a0%80", "UTF-8"),
        ("rows?cursor=", "the cursor is not one of this read"),
        ("rows?order=none&cursor=", "the cursor is not one of this read"),
        ("changes?run=%ff", "UTF-8"),
        ("changes?cursor=", "this is no place in a changelog"),
        ("changes?format=events&cursor=", "this is no place in a changelog"),
    ],
)
def test_what_is_no_text_or_no_cursor_is_refused(visit: Visitor, asked: str, why: str) -> None:
    found = visit().get(f"/v1/tables/sums/{asked}")
    assert found.status_code == 400
    assert why in found.json()["error"]["message"]


def test_an_internal_name_alone_is_an_unknown_table(visit: Visitor) -> None:
    found = visit().get("/v1/tables/__quality/rows")
    assert found.status_code == 404
    assert "unknown table '__quality'" in found.json()["error"]["message"]


def test_a_new_version_is_seen_at_once(shop: Landed, visit: Visitor) -> None:
    client = visit()
    before = client.get("/v1/tables/events/count").json()
    deliver(shop, 6, event(24 * 6))
    after = client.get("/v1/tables/events/count").json()
    assert after["version"] == before["version"] + 1
    assert client.get("/v1/tables/events/at", params={"version": 1}).json()["rows"] == 20


def test_a_vacuumed_version_is_gone(copy: Landed, visit: Visitor) -> None:
    client = visit(of=copy)
    query = {"limit": 5, "columns": "id"}
    cursor = client.get(EVENTS, params=query).json()["cursor"]
    old = client.get("/v1/tables/events/at").json()["version"]
    deliver(copy, 0)
    table = DeltaTable(copy.uri("events"))
    table.optimize.compact()
    table.vacuum(0, enforce_retention_duration=False, dry_run=False)
    for asked in ({"cursor": cursor}, {"version": old}):
        found = client.get(EVENTS, params=query | asked)
        assert found.status_code == 410
        assert "begin again without cursor, version" in found.json()["error"]["hint"]
    assert client.get(EVENTS, params=query).status_code == 200


def test_a_dropped_table_is_gone_at_once(copy: Landed, visit: Visitor) -> None:
    client = visit(of=copy)
    path = "/v1/tables/best/rows"
    cursor = client.get(path, params={"limit": 1}).json()["cursor"]
    drop(load(copy.folder / "config"), "shop.best", event(1)["at"], at_once=True)
    assert client.get(path).status_code == 404
    assert "not been built" in client.get("/v1/tables/best/top").json()["error"]["message"]
    copy.advance("best")
    assert client.get(path).status_code == 200
    again = client.get(path, params={"limit": 1, "cursor": cursor})
    assert again.status_code == 410
    assert "created again" in again.json()["error"]["message"]


def test_a_page_of_many_bytes_ends_early_and_goes_on(visit: Visitor) -> None:
    whole = visit().get("/v1/tables/sums/rows").json()["rows"]
    assert read_pages(visit(bytes=1), "/v1/tables/sums/rows", lambda: None) == whole


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("events/rows?order=none&reverse=true", "order=none reads rows as they are stored"),
        ("events/rows?order=none&key=1", "leave out key"),
        ("events/rows?key=1&reverse=true", "a whole key needs nothing else: leave out reverse"),
        ("events/rows?from=1&key_from=2", "from bounds the keys: leave out key_from"),
        ("events/rows?to=1&key_to=2", "to bounds the keys: leave out key_to"),
        ("events/rows?overlapping=true", "leave out overlapping"),
        ("visits/rows?order=key&overlapping=true", "leave out overlapping"),
        ("events/rows?order=none&backward_iteration=true", "leave out backward_iteration"),
        ("best/top?partition=user=1&partition=user=2", "a column is given twice"),
        ("events/rows?key=1_0", "'1_0' is not a value of column 'id'"),
        ("events/rows?key=%D9%A3", "is not a value of column 'id'"),
    ],
)
def test_parameters_that_would_change_nothing_are_refused(
    visit: Visitor, path: str, told: str
) -> None:
    found = visit().get(f"/v1/tables/{path}")
    assert found.status_code == 400
    assert told in found.json()["error"]["message"]


def test_a_row_that_was_read_is_read_again_in_few_steps(here: Reader) -> None:
    """Calls are counted, since they are what such a request costs."""
    question = Question(here, EVERYTHING, Limits(), {"key": ["1", "a b"]}, Format.JSON, "sums")
    calls = Counter[str]()

    def count(_: Any, event: str, __: Any) -> None:
        calls[event] += 1

    reads.rows(question)
    sys.setprofile(count)
    try:
        reads.rows(question)
    finally:
        sys.setprofile(None)
    assert calls["call"] < 470


def test_a_forgotten_subject_is_not_found_by_the_next_request(copy: Landed, visit: Visitor) -> None:
    client, cursors = visit(of=copy), {}
    found = {"/v1/tables/sums/rows": {"from": "3", "limit": 1}, EVENTS: {"limit": 1}}
    for path, query in found.items():
        cursors[path] = client.get(path, params=query).json()["cursor"]
    config = ["--config", str(copy.folder / "config"), "--json"]
    done = CliRunner().invoke(main, ["forget", "events", "--where", "user = 3", *config])
    assert done.exit_code == 0, done.output
    assert client.get("/v1/tables/sums/rows", params={"from": "3"}).json()["rows"] == []
    assert client.get(EVENTS, params={"where": "user = 3"}).json()["rows"] == []
    for path, query in found.items():  # the past, which has the subject, is gone
        assert client.get(path, params=query | {"cursor": cursors[path]}).status_code == 410
