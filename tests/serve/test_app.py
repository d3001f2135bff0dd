"""The server's answers: formats, pages that stay exact while batches commit, and refusals."""

import asyncio
import csv
import inspect
import json
import shutil
import socket
import sys
import time
from collections import Counter
from html import unescape
from http.client import HTTPConnection
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable, write_deltalake
from starlette.requests import ClientDisconnect
from starlette.testclient import TestClient
from tests.serve.conftest import SCHEMA, Visitor, deliver, event, server_of, serving
from tests.support.landed import Landed, folder_of

from sluice.cli.main import main
from sluice.declare.project import load
from sluice.delta.places.lake_layout import layout
from sluice.operate.definitions.tables import drop
from sluice.read.lake import Lake as Reader
from sluice.report.publish import publish
from sluice.serve import app, reads
from sluice.serve.access import EVERYTHING
from sluice.serve.answers import Answer, Format, Refused
from sluice.serve.app import Listener, Served
from sluice.serve.questions import Limits, Question

EVENTS = "/v1/tables/events/rows"


def test_json_keeps_every_value(visit: Visitor) -> None:
    said = visit().get(EVENTS, params={"key": 1}).json()
    assert said["rows"] == [
        {
            "id": 1,
            "user": 2,
            "what": "é&=?/",
            "at": "2024-01-01T01:00:00.000001Z",
            "price": "1234567.8901",
            "weight": 39.4,
            "size": "NaN",
            "blob": "Af8=",
            "on": "2024-01-02",
            "tags": ["a"],
        }
    ]
    assert visit().get(EVENTS, params={"key": 2}).json()["rows"][0]["size"] == "Infinity"


def test_lines_and_csv_have_the_rows_of_json(visit: Visitor) -> None:
    query = {"columns": "id,price,what,tags,size", "limit": 4}
    rows = visit().get(EVENTS, params=query).json()["rows"]
    lines = visit().get(EVENTS, params=query, headers={"Accept": "application/x-ndjson"})
    assert [json.loads(line) for line in lines.text.splitlines()] == rows
    found = list(
        csv.DictReader(StringIO(visit().get(EVENTS, params=query | {"format": "csv"}).text))
    )
    assert [row["price"] for row in found] == [row["price"] for row in rows]
    assert [row["size"] for row in found[1:]] == ["NaN", "Infinity", ""]
    assert [row["size"] for row in rows[1:]] == ["NaN", "Infinity", None]
    assert lines.headers["Sluice-Version"] == "3"
    assert lines.headers["Sluice-Cursor"]


@pytest.mark.parametrize(
    ("accept", "media"),
    [
        ("", "application/json"),
        ("text/html, */*;q=0.1", "application/json"),
        ("text/*", "text/csv"),
        ("application/json;q=0.2, text/csv;q=0.9", "text/csv"),
        ("image/png", None),
        ("text/csv;q=0", None),
    ],
)
def test_the_preferred_format_is_answered(visit: Visitor, accept: str, media: str | None) -> None:
    found = visit().get(EVENTS, headers={"Accept": accept})
    assert found.headers["content-type"].partition(";")[0] == (media or "application/json")
    assert found.status_code == (200 if media else 406)


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


def test_a_port_that_can_not_be_had_is_said(shop: Landed) -> None:
    config = ["--config", str(shop.folder / "config")]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = CliRunner().invoke(main, ["serve", "--port", str(port), *config])
    assert done.exit_code == 2
    said, hint = done.output.splitlines()
    assert f"can't listen on 127.0.0.1, port {port}: Address already in use" in said
    assert "give another --host or --port" in hint
    done = CliRunner().invoke(main, ["serve", "--port", "99999", *config])
    assert done.exit_code == 2
    assert "0<=x<=65535" in done.output


def test_an_address_of_any_length_is_refused_in_words(shop: Landed) -> None:
    with serving(shop.folder) as url:
        for length, said in ((9_000, "more than 8000 bytes"), (70_000, "longer than 64 KB")):
            connection = HTTPConnection(url.removeprefix("http://"))
            connection.request("GET", f"{EVENTS}?where={'x' * length}")
            response = connection.getresponse()
            assert response.status in (400, 414)
            assert said in response.read().decode()
            connection.close()


def test_texts_are_read_as_utf_8(visit: Visitor) -> None:
    address = "/v1/tables/sums/rows?key=2&key="
    encoded = visit().get(f"{address}%C3%A9%26%3D%3F%2F").json()["rows"]
    assert [row["what"] for row in encoded] == ["é&=?/"]


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


def test_a_changed_configuration_is_served(
    copy: Landed, visit: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "LOOK", 0.0)
    client = visit(of=copy)
    file = copy.folder / "config" / "pipelines" / "shop.yaml"
    text = file.read_text()
    file.write_text(text[: text.index("  unranked:")])
    assert client.get("/v1/tables/unranked/count").status_code == 404
    file.write_text("pipeline: [")
    assert client.get("/v1/tables/best/count").status_code == 200


def test_limits_are_refusals(visit: Visitor) -> None:
    small = visit(rows=10)
    assert "a page has 10 rows at most" in small.get(EVENTS, params={"limit": 11}).text
    assert len(small.get(EVENTS).json()["rows"]) == 10
    best = "/v1/tables/best/top"
    assert visit(rows=3).get(best).status_code == 413
    whole = pa.ipc.open_stream(visit().get(best, params={"format": "arrow"}).content).read_all()
    for format_, least in (("arrow", whole.nbytes), ("json", 4 * whole.nbytes)):
        query = {"format": format_}
        assert visit(bytes=least + 200).get(best, params=query).status_code == 200
        found = visit(bytes=least // 2).get(best, params=query)
        assert found.status_code == 413
        assert "bytes" in found.json()["error"]["message"]
    narrow = visit(bytes=100)
    assert narrow.get(EVENTS, params={"order": "none"}).status_code in (200, 413)
    late = visit(seconds=1e-9)
    found = late.get(EVENTS)
    assert found.status_code == 408
    assert "took longer" in found.json()["error"]["message"]
    assert visit().get(EVENTS, params={"where": "id = 1 or " * 250 + "id = 1"}).status_code == 400
    assert visit().get(f"{EVENTS}?key={'1' * 9000}").status_code == 414


def test_a_read_ends_before_its_request_does(shop: Landed) -> None:
    lake = Served(shop.folder / "config").lake
    begun = time.monotonic() - 0.9 * Limits.seconds
    for where, order in (("id < 0", "none"), ("price < 0", "key")):
        values = {"where": where, "order": order}
        late = Question(lake, EVERYTHING, Limits(), values, Format.JSON, "events", begun)
        with pytest.raises(Refused, match="took longer than 30 s") as refused:
            reads.read_rows(late)
        assert refused.value.status == 408
        soon = Question(lake, EVERYTHING, Limits(), values, Format.JSON, "events")
        assert list(reads.read_rows(soon).rows()) == []


def test_a_page_of_many_bytes_ends_early_and_goes_on(visit: Visitor) -> None:
    whole = visit().get("/v1/tables/sums/rows").json()["rows"]
    assert read_pages(visit(bytes=1), "/v1/tables/sums/rows", lambda: None) == whole


def test_too_many_requests_are_refused(shop: Landed, monkeypatch: pytest.MonkeyPatch) -> None:
    server = server_of(shop.folder)
    client = TestClient(server.app(), base_url="http://localhost")
    server._waiting = 4 * server.threads
    found = client.get(EVENTS)
    assert found.status_code == 429
    assert found.headers["Retry-After"] == "1"


def test_answers_over_kept_connections_do_not_wait_for_an_acknowledgement(shop: Landed) -> None:
    listener = Listener(server_of(shop.folder), port=0)
    with socket.create_connection(("127.0.0.1", listener.bind())), listener._listening as listening:
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_an_answer_lets_its_rows_go_when_its_client_has_gone() -> None:
    parts = (b"part" for _ in range(9))

    async def wait() -> dict[str, Any]:
        await asyncio.sleep(60)
        return {}

    async def send(message: Any) -> None:
        if message.get("body"):
            raise OSError

    answer = app.Parts(parts, Answer(parts, Format.CSV), {})
    with pytest.raises(ClientDisconnect):
        asyncio.run(answer({"type": "http", "asgi": {"spec_version": "2.4"}}, wait, send))
    assert inspect.getgeneratorstate(parts) == inspect.GEN_CLOSED


def test_arrow_says_its_length(visit: Visitor) -> None:
    for query in ({}, {"key": "1"}, {"limit": "0"}, {"order": "none"}):
        found = visit().get(EVENTS, params={"format": "arrow", **query})
        assert int(found.headers["Content-Length"]) == len(found.content)
        assert found.headers.get("Transfer-Encoding") is None


@pytest.mark.parametrize("has_checkpoint", [False, True])
def test_a_table_whose_log_is_damaged_hides_no_other(
    visit: Visitor, copy: Landed, has_checkpoint: bool
) -> None:
    client, log = visit(of=copy), Path(copy.uri("sums"), "_delta_log")
    before = client.get("/v1/tables/visits").json()
    if has_checkpoint:
        rows = client.get("/v1/tables/sums/rows").json()
        DeltaTable(copy.uri("sums")).create_checkpoint()
    for commit in log.glob("*.json" if has_checkpoint else "*"):
        commit.write_text('{"commitInfo":{"times')
    said = "the log of shop.sums can't be read: "
    for path in ("/v1/tables", "/v1/status"):
        found = {one["table"]: one for one in client.get(path).json()["tables"]}
        assert found["shop.sums"]["state"] == "stopped"
        assert found["shop.sums"]["problem"].startswith(said)
        assert found["shop.visits"]["state"] == before["state"] == "up to date"
        assert found["shop.visits"]["rows"] == before["rows"]
    assert 'sluice_table_failed{table="shop.sums"} 1' in client.get("/metrics").text
    for path in ("/", "/pipelines/shop", "/tables/sums"):
        page = client.get(path, headers={"Accept": "text/html"})
        assert page.status_code == 200
        assert said in unescape(page.text)
    assert client.get("/plan", headers={"Accept": "text/html"}).status_code == 200
    if has_checkpoint:
        assert client.get("/v1/tables/sums/rows").json() == rows
        return
    for what in ("rows", "count", "at", "changes", "why?key=1&key=x"):
        refused = client.get(f"/v1/tables/sums/{what}")
        assert refused.status_code == 500
        assert refused.json()["error"]["type"] == "DamagedLog"
        assert refused.json()["error"]["message"].startswith(said)
        assert str(copy.folder) not in refused.text


def test_the_status_is_that_of_the_command(visit: Visitor, copy: Landed) -> None:
    for name in ("shop.gusts", "news.clicks", "shop.best__9"):
        write_deltalake(layout(copy.project).uri(name), pa.table({"a": [1]}))
    command = ["status", "--json", "--config", str(copy.folder / "config")]
    printed = [json.loads(line) for line in CliRunner().invoke(main, command).stdout.splitlines()]
    said = visit(of=copy).get("/v1/status").json()["tables"]
    shown = [{n: one[n] for n in ("table", "kind", "rows", "state")} for one in said]
    assert shown == [{n: one[n] for n in ("table", "kind", "rows", "state")} for one in printed]
    undeclared = [one["table"] for one in said if one["state"] == "undeclared"]
    assert undeclared == ["news.clicks", "shop.gusts"]
    assert [one["table"] for one in said if one["state"] == "left behind"] == ["shop.best__9"]
    limited = visit(f"{'t' * 16} news", of=copy)
    headers = {"Authorization": f"Bearer {'t' * 16}"}
    said = limited.get("/v1/status", headers=headers).json()["tables"]
    assert [one["table"] for one in said] == ["news.clicks"]


class Panic(BaseException):
    """What a library in Rust raises if it gives up."""


@pytest.mark.parametrize("failure", [KeyError, Panic])
def test_an_unforeseen_failure_shows_nothing(
    shop: Landed, monkeypatch: pytest.MonkeyPatch, failure: type[BaseException]
) -> None:
    def fail(_: Any) -> None:
        raise failure("/secret/place")

    server = server_of(shop.folder)
    client = TestClient(server.app(), base_url="http://localhost")
    with monkeypatch.context() as patched:
        patched.setattr(reads, "uris_of", fail)
        for _ in range(2 * server.threads):
            found = client.get(EVENTS)
            assert found.status_code == 500
            assert "secret" not in found.text
            assert "unforeseen failure" in found.json()["error"]["message"]
    assert client.get(EVENTS).status_code == 200


@pytest.mark.parametrize(("format_", "size"), [(Format.ARROW, 400), (Format.JSON, 100)])
def test_a_page_of_text_ends_earlier(here: Reader, format_: Format, size: int) -> None:
    assert Question(here, EVERYTHING, Limits(bytes=400), {}, format_, "events").bytes == size


def test_every_state_is_answered(visit: Visitor) -> None:
    client = visit()
    tables = {one["table"]: one for one in client.get("/v1/tables").json()["tables"]}
    assert tables["shop.visits"]["state"] == "up to date"
    assert tables["shop.catalogue"]["version"] is None
    one = client.get("/v1/tables/best").json()
    assert one["definition"]["limit"] == 2
    assert "paid" in str(one["definition"]["order_by"])
    assert one["inputs"] == ["shop.sums"]
    steps = client.get("/v1/plan", params={"table": "best"}).json()["steps"]
    assert {step["next"] for step in steps} <= {"nothing", "wait"}
    assert len(client.get("/v1/status").json()["tables"]) == 8
    metrics = client.get("/metrics").text
    assert 'sluice_table_rows{table="shop.products"} ' in metrics
    assert 'sluice_table_pending_inputs{table="shop.best"} 0' in metrics
    assert 'sluice_table_last_batch_seconds{table="shop.best"} ' in metrics
    assert 'sluice_requests_total{route="/v1/plan",code="200"} 1' in metrics
    assert client.get("/healthz").json() == {"status": "ok"}


def test_declarations_that_cannot_be_read_are_reported(
    copy: Landed, visit: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "LOOK", 0)
    every, one = "a" * 20, "b" * 20
    open_to_all, guarded = visit(of=copy), visit(every, f"{one} shop", of=copy)
    file = copy.folder / "config" / "pipelines" / "shop.yaml"
    sound = file.read_text()
    file.write_text(sound + "views: [}\n")
    where = f"pipelines/shop.yaml:{len(sound.splitlines()) + 1}: "

    def told(client: TestClient, path: str, token: str = "") -> tuple[int, bool]:
        """Return the status of an answer, and whether it names the line."""
        named = {"Authorization": f"Bearer {token}"} if token else {}
        found = client.get(path, headers=named)
        assert str(copy.folder) not in found.text
        if token or client is open_to_all:
            assert "can't be read" in unescape(found.text) or "healthz" in path
        return found.status_code, where in unescape(found.text)

    assert told(open_to_all, "/healthz") == told(guarded, "/healthz", every) == (503, True)
    assert told(guarded, "/healthz", one) == told(guarded, "/healthz") == (503, False)
    for path in ("/v1/status", "/"):
        assert told(open_to_all, path) == told(guarded, path, every) == (200, True)
        assert told(guarded, path, one) == (200, False)
    publish(copy.project)
    for path in ("/tables/events", "/plan", "/v1/docs", "/report/shop.events.html"):
        assert told(guarded, path, one) == (200, False)
    assert "\nsluice_unread 1\n" in open_to_all.get("/metrics").text
    assert open_to_all.get("/v1/tables/events/rows?key=7").json()["rows"]
    file.write_text(sound)
    assert open_to_all.get("/healthz").json() == {"status": "ok"}
    assert open_to_all.get("/v1/status").json()["unread"] == []
    shutil.rmtree(file.parent.parent)
    gone = open_to_all.get("/healthz")
    assert (gone.status_code, str(copy.folder) in gone.text) == (503, False)


def test_answers_are_described(visit: Visitor, here: Reader) -> None:
    client = visit()
    spec = client.get("/v1/openapi.json").json()
    assert spec["openapi"] == "3.1.0"
    rows = spec["paths"]["/v1/tables/{table}/rows"]["get"]
    assert {"where", "cursor", "as_of"} <= {one["name"] for one in rows["parameters"]}
    assert "/metrics, /healthz and, for people, the pages" in spec["info"]["description"]
    ids = [one["get"]["operationId"] for one in spec["paths"].values()]
    assert len({*ids}) == len(ids)
    assert {"rows", "top", "count", "at", "changes", "metrics", "healthz"} <= {*ids}
    assert {*rows["responses"]["200"]["headers"]} == {"Sluice-Version", "Sluice-Cursor"}
    changes = spec["paths"]["/v1/tables/{table}/changes"]["get"]["parameters"]
    assert ("Last-Event-ID", "header") in {(one["name"], one["in"]) for one in changes}
    error = spec["components"]["schemas"]["Error"]["properties"]
    assert {*error} == {*client.get("/v1/tables/nope").json()["error"]}
    assert {*spec["paths"]["/healthz"]["get"]["responses"]} == {"200", "503"}
    assert client.get("/v1/tables/best/top").headers["Sluice-Version"]
    for path in ("/metrics", "/healthz"):
        media = client.get(path).headers["content-type"].partition(";")[0]
        assert [*spec["paths"][path]["get"]["responses"]["200"]["content"]] == [media]
    page = client.get("/v1/docs")
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert "<script" not in page.text
    assert all(path in page.text for path in spec["paths"])


def test_freshness_is_that_of_the_oldest_change(copy: Landed, visit: Visitor) -> None:
    deliver(copy, 9, event(24 * 9))
    copy.land(folder_of(10), a_parquet=pa.Table.from_pylist([event(24 * 10)], SCHEMA))
    copy.deliver(10)
    tables = {one["table"]: one for one in visit(of=copy).get("/v1/tables").json()["tables"]}
    found = tables["shop.visits"]
    assert found["state"] == "behind"
    assert found["freshness"]["pending"] == {"shop.events": 1}
    assert found["freshness"]["behind_since"] > found["freshness"]["last_batch_at"]


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


def test_why_shows_no_rows_of_other_pipelines(copy: Landed, visit: Visitor) -> None:
    news = copy.folder / "config" / "pipelines" / "news.yaml"
    news.write_text(
        "pipeline: news\nschedule: assets\nviews:\n  few:\n    kind: topk\n    from: shop.sums\n"
        '    partition_by: [user]\n    order_by: ["n desc"]\n    limit: 1\n'
    )
    copy.project = copy.loaded()
    copy.advance("few")
    client = visit("a" * 20, f"{'b' * 20} news", of=copy)
    path = "/v1/tables/few/why?partition=user=1&rank=1"
    every = client.get(path, headers={"Authorization": f"Bearer {'a' * 20}"}).json()
    own = client.get(path, headers={"Authorization": f"Bearer {'b' * 20}"}).json()
    assert {part["table"] for part in every["from"]} == {part["table"] for part in own["from"]}
    assert any(part["rows"] for part in every["from"])
    assert not any(part["rows"] for part in own["from"] if part["table"].startswith("shop."))
    assert not any(part.get("deliveries") for part in own["from"])
    assert own["reads"] == []
    assert own["after"] == every["after"]


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
