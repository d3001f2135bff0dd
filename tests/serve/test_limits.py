"""Limits of requests and of connections, each a refusal in words."""

import asyncio
import inspect
import socket
import time
from http.client import HTTPConnection
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from starlette.requests import ClientDisconnect
from starlette.testclient import TestClient
from tests.serve.conftest import Visitor, server_of, serving
from tests.support.landed import Landed

from sluice.cli.main import main
from sluice.serve import app, reads
from sluice.serve.access import EVERYTHING
from sluice.serve.answers import Answer, Format, Refused
from sluice.serve.app import Listener, Served
from sluice.serve.questions import Limits, Question

EVENTS = "/v1/tables/events/rows"


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
