"""Clients that send slowly or take nothing: they keep no thread, no memory and no other client."""

import http.client
import socket
from collections.abc import Callable
from typing import Any

import pytest
import uvicorn
from starlette.testclient import TestClient
from tests.serve.conftest import server_of, serving
from tests.support.landed import Landed
from uvicorn.server import ServerState

from sluice.serve import answers, app

EVENTS = "/v1/tables/events/rows"
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Timer:
    """A call that is due later, unless it is cancelled."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call, self._is_due = call, True

    def cancel(self) -> None:
        self._is_due = False

    def end(self) -> None:
        if self._is_due:
            self._call()


class Connection:
    """A connection of the server, its transport and the loop, whose time is ended at will."""

    def __init__(self) -> None:
        self.timers, self.written, self.is_left = list[Timer](), b"", False
        config = uvicorn.Config(lambda *_: None, log_level="critical")
        settings = {"config": config, "server_state": ServerState(), "app_state": {}, "_loop": self}
        self.requests = app.Requests(30, **settings)
        self.requests.connection_made(self)  # type: ignore[arg-type]

    def call_later(self, _: float, call: Callable[[], None]) -> Timer:
        self.timers.append(Timer(call))
        return self.timers[-1]

    def create_task(self, work: Any) -> Any:
        work.close()
        return self

    def add_done_callback(self, _: Any) -> None:
        pass

    def get_extra_info(self, _: str) -> None:
        return None

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        self.is_left = True

    abort = close

    def end_time(self) -> None:
        for timer in self.timers:
            timer.end()


def test_a_client_that_sends_no_whole_request_in_time_is_left() -> None:
    for sent in (b"", *(REQUEST[:n] for n in (1, 20, 30))):
        connection = Connection()
        for byte in sent:
            connection.requests.data_received(bytes([byte]))
        assert not connection.is_left
        connection.end_time()
        assert connection.is_left


def test_a_second_request_has_the_same_time() -> None:
    connection = Connection()
    connection.requests.data_received(REQUEST)
    connection.end_time()
    assert not connection.is_left
    connection.requests.cycle.response_complete = True
    connection.requests.data_received(REQUEST[:9])
    connection.end_time()
    assert connection.is_left


def test_a_client_that_takes_nothing_of_an_answer_is_left() -> None:
    connection = Connection()
    connection.requests.data_received(REQUEST)
    for is_left in (False, True):
        connection.requests.pause_writing()
        if not is_left:
            connection.requests.resume_writing()
        connection.end_time()
        assert connection.is_left == is_left


def test_headers_without_an_end_are_refused() -> None:
    connection = Connection()
    connection.requests.data_received(REQUEST[:20])
    for _ in range(app.LARGEST // 60_000 + 1):
        connection.requests.data_received(b"x" * 60_000)
    assert connection.is_left
    assert connection.written.startswith(b"HTTP/1.1 400 ")


def test_a_hundred_clients_that_send_half_a_request_hold_up_no_other(
    shop: Landed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "HEADERS", 2.0)
    with serving(shop.folder) as url:
        port = int(url.rpartition(":")[2])
        slow = [socket.create_connection(("127.0.0.1", port), timeout=20) for _ in range(100)]
        for one in slow:
            one.sendall(REQUEST[:20])
        other = http.client.HTTPConnection("127.0.0.1", port)
        other.request("GET", f"{EVENTS}?key=1")
        assert other.getresponse().status == 200
        other.close()
        for one in slow:
            assert one.recv(1) == b""
            one.close()


@pytest.mark.parametrize("format_", ["json", "csv", "arrow"])
def test_large_answers_that_nobody_takes_are_limited(
    shop: Landed, monkeypatch: pytest.MonkeyPatch, format_: str
) -> None:
    monkeypatch.setattr(answers, "AT_ONCE", 5)
    server = server_of(shop.folder, bytes=20_000)
    client = TestClient(server.app(), base_url="http://localhost")
    assert client.get(EVENTS, params={"format": format_}).status_code == 200
    assert server._held == 0
    server._held = 40_000
    refused = client.get(EVENTS, params={"format": format_})
    assert refused.status_code == 429
    assert refused.json()["error"]["hint"] == "ask again in a second"
    assert client.get(EVENTS, params={"key": 1}).status_code == 200


def test_an_answer_is_sent_in_slices(shop: Landed, monkeypatch: pytest.MonkeyPatch) -> None:
    client = TestClient(server_of(shop.folder).app(), base_url="http://localhost")
    paths = ("/v1/openapi.json", f"{EVENTS}?format=arrow", EVENTS, "/")
    whole = [client.get(path).content for path in paths]
    monkeypatch.setattr(app, "SLICE", 100)
    for path, content in zip(paths[:3], whole[:3], strict=True):
        found = client.get(path)
        assert found.content == content
        assert int(found.headers["Content-Length"]) == len(content)
    assert max(map(len, app._slice([whole[0], memoryview(whole[1])]))) == 100
