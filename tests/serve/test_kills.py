"""Kills: of the server, of a batch under an open cursor, of a client in the middle of a stream."""

import asyncio
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from starlette.testclient import TestClient
from tests.serve.conftest import SCHEMA, deliver, event, server_of, serving
from tests.support.landed import Landed, folder_of

import sluice
from sluice.read.changelog import Changelog
from sluice.serve.app import Ending
from sluice.serve.client import PLACE, Remote

PATH = "/v1/tables/events/rows?limit=7&columns=id"
SLOW = """
import runpy, sys, time
from sluice.serve import changes, reads

def wait(asked):
    print("reading", file=sys.stderr, flush=True)
    time.sleep(60)

reads.uris_of = wait
runpy.run_module("sluice.cli.main", run_name="__main__")
"""


@contextmanager
def process(
    folder: Path, *options: str, port: int = 0, program: Sequence[str] = ("-m", "sluice.cli.main")
) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """While the command serves the folder's lake: its port, and itself."""
    command = [sys.executable, *program, "serve", "--port", str(port), *options]
    command += ["--config", str(folder / "config")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr
            line = server.stderr.readline()
            address = urlsplit(line.strip())
            assert address.port, line + server.stderr.read()
            yield address.port, server
        finally:
            server.kill()


def ask(port: int, path: str) -> dict[str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", path)
    found: dict[str, Any] = json.loads(connection.getresponse().read())
    connection.close()
    return found


def ids(shop: Landed) -> list[int]:
    table = sluice.open(shop.folder / "config").table("events")
    return [row["id"] for row in table.all()]


def test_a_killed_server_loses_no_page(shop: Landed) -> None:
    expected, found, cursor = ids(shop), [], ""
    for is_last in (False, True):
        with process(shop.folder) as (port, server):
            for nth in range(100):
                said = ask(port, PATH + cursor)
                found += [row["id"] for row in said["rows"]]
                if not said["cursor"]:
                    break
                cursor = f"&cursor={said['cursor']}"
                if nth == 2 and not is_last:
                    server.send_signal(signal.SIGKILL)
                    deliver(shop, 3, event(24 * 3), event(24 * 3 + 1))
                    break
    assert found == expected != ids(shop)


@pytest.mark.parametrize("place", ["committing:events", "committed:visits"])
def test_a_killed_batch_under_an_open_cursor_changes_no_page(shop: Landed, place: str) -> None:
    expected = ids(shop)
    with serving(shop.folder) as url:
        port = int(url.rpartition(":")[2])
        said = ask(port, PATH)
        found, before = [row["id"] for row in said["rows"]], DeltaTable(shop.uri("visits"))
        shop.land(folder_of(4), a_parquet=pa.Table.from_pylist([event(24 * 4, id=9)], SCHEMA))
        command = [sys.executable, "-m", "sluice.cli.main", "run", "shop", "--start", "2024-01-05"]
        command += ["--end", "2024-01-06", "--config", str(shop.folder / "config")]
        killed = {**os.environ, "SLUICE_FAILPOINT": place}
        done = subprocess.run(command, env=killed, capture_output=True, text=True, check=False)
        assert f"SLUICE_FAILPOINT: {place}" in done.stderr
        while said["cursor"]:
            said = ask(port, f"{PATH}&cursor={said['cursor']}")
            found += [row["id"] for row in said["rows"]]
        assert found == expected
        after = DeltaTable(shop.uri("visits")).version()
        assert (after > before.version()) == (place == "committed:visits")
        assert ask(port, "/v1/tables/events/count")["count"] == len(ids(shop))


def test_clients_that_go_in_the_middle_of_a_stream_miss_nothing(shop: Landed) -> None:
    lake = sluice.open(shop.folder / "config")
    with serving(shop.folder) as url:
        seen = list[dict[str, Any]]()
        writer = threading.Thread(
            target=lambda: [deliver(shop, 5, event(24 * 5 + n)) for n in range(3)]
        )
        writer.start()
        wanted = 40
        while len(seen) < wanted:
            follow = sluice.connect(url).follow("best", after=seen[-1][PLACE] if seen else None)
            for _ in range(5):
                seen.append(next(follow))
            follow.close()
        writer.join()
        every = list(Changelog.open(lake, "best").rows())
        columns = ("_commit_version", "_change_type", "user", "what")
        assert [[r[c] for c in columns] for r in seen] == [
            [r[c] for c in columns] for r in every[: len(seen)]
        ]


def test_a_stream_goes_on_with_another_server(shop: Landed) -> None:
    with process(shop.folder) as (port, server):
        follow = Remote(f"http://127.0.0.1:{port}").follow("best")
        seen = [next(follow) for _ in range(9)]
        server.kill()
        server.wait()
        with process(shop.folder, port=port):
            seen += [next(follow) for _ in range(9)]
    every = list(Changelog.open(sluice.open(shop.folder / "config"), "best").rows())
    assert [r["what"] for r in seen] == [r["what"] for r in every[:18]]
    assert len({r[PLACE] for r in seen}) == 18


def test_requests_that_a_server_cannot_finish_any_more_may_be_sent_again(shop: Landed) -> None:
    server = server_of(shop.folder)
    server.is_ending = True

    async def wait(*given: Any) -> None:
        raise asyncio.CancelledError

    answer = TestClient(Ending(wait, server), base_url="http://localhost").get(PATH)
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "1"
    assert "ends" in answer.json()["error"]["message"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, -15), (signal.SIGINT, 130)])
def test_a_signal_ends_the_server_during_a_slow_read_and_under_a_stream(
    shop: Landed, number: signal.Signals, code: int
) -> None:
    with process(shop.folder, program=["-c", SLOW]) as (port, server):
        following, reading = (
            http.client.HTTPConnection("127.0.0.1", port, timeout=20) for _ in range(2)
        )
        following.request("GET", "/v1/tables/best/changes?format=events")
        stream = following.getresponse()
        assert stream.readline().startswith(b"id: ")
        reading.request("GET", PATH)
        assert server.stderr
        assert server.stderr.readline() == "reading\n"
        server.send_signal(number)
        answer = reading.getresponse()
        said = json.loads(answer.read())["error"]
        assert (answer.status, said["type"]) == (503, "Retryable")
        assert stream.read().endswith(b"\n\n")
        assert server.wait(timeout=20) == code
        assert "Traceback" not in server.stderr.read()


def test_a_second_signal_leaves_no_trace(shop: Landed) -> None:
    with process(shop.folder) as (port, server):
        following = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        following.request("GET", "/v1/tables/best/changes?format=events")
        assert following.getresponse().readline().startswith(b"id: ")
        server.send_signal(signal.SIGINT)
        time.sleep(0.1)  # or the kernel makes one of both
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=20) == 130
        assert server.stderr
        assert server.stderr.read().strip() in ("", "stopped")


def test_the_address_of_a_server_can_be_opened(shop: Landed) -> None:
    with process(shop.folder, "--host", "::1") as (port, _):
        connection = http.client.HTTPConnection("::1", port, timeout=20)
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200


def test_the_command_refuses_other_machines_without_a_token(shop: Landed) -> None:
    refused = pytest.raises(AssertionError, match=r"without a token(.|\n)*SLUICE_SERVE_TOKENS")
    with refused, process(shop.folder, "--host", "0.0.0.0"):
        pass
