"""Changes over HTTP: pages and events that miss and repeat nothing, whenever the reader leaves."""

import asyncio
import gc
import json
import math
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, cycle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from tests.serve.conftest import Visitor, deliver, event, server_of, serving
from tests.support.landed import Landed

import sluice
from sluice.errors import HistoryLost
from sluice.operate.tables import drop
from sluice.read import changelog
from sluice.read.changelog import Changelog
from sluice.serve import changes
from sluice.serve.access import EVERYTHING
from sluice.serve.answers import Format, Refused
from sluice.serve.app import Served
from sluice.serve.questions import Limits, Question

PATH = "/v1/tables/best/changes"
PLACE = ("_commit_version", "_change_type", "user", "what")


def whole(shop: Landed, name: str = "best") -> list[dict[str, Any]]:
    """The changelog as it is read in Python."""
    return list(Changelog.open(sluice.open(shop.folder / "config"), name).rows())


def places(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in PLACE) for row in rows]


def stream_of(shop: Landed, name: str, after: str | None = None, **values: Any) -> Iterator[bytes]:
    lake = Served(shop.folder / "config").lake
    question = Question(lake, EVERYTHING, Limits(), values, Format.EVENTS, name)
    return changes.events(question, after)


def read_events(text: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    """The id and the change of each event; a place without a change is {}."""
    for block in text.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if line[0] != ":")
        if "id" in fields:
            yield fields["id"], json.loads(fields.get("data", "{}"))


def drain(stream: Iterator[bytes]) -> Iterator[tuple[str, dict[str, Any]]]:
    while text := next(stream):
        yield from read_events(text)


def test_changes_are_those_of_the_changelog(shop: Landed, visit: Visitor) -> None:
    said = visit().get(PATH).json()
    assert places(said["rows"]) == places(whole(shop))
    arrow = visit().get(PATH, params={"format": "arrow"})
    assert pa.ipc.open_stream(arrow.content).read_all().to_pylist() == whole(shop)
    later = visit().get(PATH, params={"from_version": 2, "columns": "user"}).json()["rows"]
    assert later == [{"user": r["user"]} for r in whole(shop) if r["_commit_version"] >= 2]
    run = visit().get("/v1/tables/best/changes?run=test").json()
    assert places(run["rows"]) == places(whole(shop))


@pytest.mark.parametrize("size", [1, 3, 100])
def test_pages_of_changes_go_on_with_new_commits(shop: Landed, visit: Visitor, size: int) -> None:
    client, cursor, rows = visit(), None, list[dict[str, Any]]()
    for nth in range(200):
        query = {"limit": size} | ({"cursor": cursor} if cursor else {})
        said = client.get(PATH, params=query).json()
        rows += said["rows"]
        cursor = said["cursor"]
        if nth == 1:
            deliver(shop, 7, *(event(24 * 7 + n) for n in range(size % 5 + 1)))
        if not said["rows"] and nth > 1:
            break
    assert places(rows) == places(whole(shop))


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every version is read like one that does not fit into the memory."""
    monkeypatch.setattr(changes, "LARGE", 0)
    monkeypatch.setattr(changes, "PART", 300)
    monkeypatch.setattr(changes, "PAGE", 300)


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("columns", ["user,what", "_change_type,_commit_version,user,what"])
def test_large_versions_are_read_in_parts(shop: Landed, visit: Visitor, columns: str) -> None:
    names, cursor, pages = columns.split(","), None, list[list[dict[str, Any]]]()
    expected = [{name: row[name] for name in names} for row in whole(shop)]
    while not pages or pages[-1]:
        query = {"columns": columns} | ({"cursor": cursor} if cursor else {})
        said = visit().get(PATH, params=query).json()
        cursor = said["cursor"]
        pages.append(said["rows"])
    assert list(chain(*pages)) == expected
    assert max(map(len, pages)) < 20 < len(expected)
    asked = columns.split(",")
    assert [row for _, row in drain(stream_of(shop, "best", columns=asked)) if row] == expected


@pytest.mark.usefixtures("large")
def test_a_place_behind_a_versions_last_change_reads_none(shop: Landed, visit: Visitor) -> None:
    feed = Changelog.open(sluice.open(shop.folder / "config"), "best").ordered(1, 0)
    first, *others = feed.read()
    parts = iter([first, *others])
    assert replace(feed, read=lambda: parts).rows(feed.count + 9, 5).num_rows == first.num_rows == 0
    assert list(parts) == others
    end = visit().get(PATH, params={"from_version": 2, "limit": 0}).json()["cursor"]
    pages = [visit().get(PATH, params={"cursor": c}).json() for c in (end, f"{end}.9999")]
    assert pages[0] == pages[1]
    assert pages[0]["rows"]


@pytest.mark.usefixtures("large")
def test_a_stream_waits_for_another_read_of_a_large_version_without_a_thread(shop: Landed) -> None:
    stream = stream_of(shop, "best")
    with changes._large:
        assert [next(stream) for _ in range(3)] == [b""] * 3
    assert places([row for _, row in drain(stream) if row]) == places(whole(shop))


@pytest.mark.usefixtures("large")
def test_a_page_that_can_not_be_read_in_time_is_refused(shop: Landed) -> None:
    lake, begun = Served(shop.folder / "config").lake, time.monotonic() - 0.9 * Limits.seconds
    late = Question(lake, EVERYTHING, Limits(), {}, Format.JSON, "best", begun)
    with changes._large, pytest.raises(Refused, match="another version") as busy:
        changes.changes(late)
    assert (busy.value.status, busy.value.hint) == (429, "ask again in a second")
    with pytest.raises(Refused, match="took longer") as refused:
        changes.changes(late)
    assert refused.value.status == 408
    assert refused.value.hint.startswith("ask for fewer rows or columns")


@pytest.mark.usefixtures("large")
def test_a_version_that_can_not_be_put_in_order_names_the_next_step(
    visit: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changelog, "KEYS", 9)
    refused = visit().get("/v1/tables/sums/changes")
    assert refused.status_code == 413
    hint = refused.json()["error"]["hint"]
    version = visit().get("/v1/tables/sums/at?version=0").json()["version"] + 1
    assert f"`/v1/tables/sums/rows?version={version}`" in hint
    assert f"from_version={version + 1}" in hint


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize(
    ("status", "name", "value"),
    [
        (413, "KEYS", 9),
        (408, "time", SimpleNamespace(monotonic=cycle([0, math.inf]).__next__)),
    ],
)
def test_a_refused_read_of_a_large_version_keeps_no_changes(
    visit: Visitor, monkeypatch: pytest.MonkeyPatch, status: int, name: str, value: Any
) -> None:
    monkeypatch.setattr(changelog, name, value)
    client, kept = visit(), set[int]()
    gc.disable()
    try:
        for _ in range(12):
            assert client.get("/v1/tables/sums/changes").status_code == status
            kept.add(pa.total_allocated_bytes())
    finally:
        gc.enable()
    assert len(kept) <= 4  # a thread may still be about to let its last read go


def test_a_page_without_rows_skips_none(visit: Visitor) -> None:
    for query in ({"limit": 0}, {"limit": 0, "from_version": 0}):
        assert visit().get(PATH, params=query).json()["cursor"] is None
    begun = visit().get(PATH, params={"limit": 2}).json()["cursor"]
    assert visit().get(PATH, params={"limit": 0, "cursor": begun}).json()["cursor"] == begun


@pytest.mark.parametrize("at_once", [1, 2, 1_000])
def test_events_miss_and_repeat_nothing_wherever_a_client_left(
    shop: Landed, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(changes, "AT_ONCE", at_once)
    events = list(drain(stream_of(shop, "best")))
    rows = [row for _, row in events if row]
    assert places(rows) == places(whole(shop))
    assert len({id_ for id_, _ in events}) == len(events)
    for n in range(0, len(events), 7):
        after = list(drain(stream_of(shop, "best", events[n][0])))
        assert [row for _, row in after if row] == [row for _, row in events[n + 1 :] if row]


def test_new_commits_follow_and_upkeep_moves_the_place(shop: Landed) -> None:
    stream = stream_of(shop, "best")
    before = list(drain(stream))
    deliver(shop, 8, event(24 * 8))
    kept = {"delta.logRetentionDuration": "interval 29 days"}
    DeltaTable(shop.uri("best")).alter.set_table_properties(kept)
    more = list(drain(stream))
    version = DeltaTable(shop.uri("best")).version()
    assert more[-1] == (f"{before[0][0].partition('.')[0]}.{version}", {})
    rows = [row for _, row in (*before, *more) if row]
    assert places(rows) == places(whole(shop))
    assert list(drain(stream_of(shop, "best", more[-1][0]))) == []


def test_a_dropped_table_ends_its_streams(shop: Landed) -> None:
    streams = [stream_of(shop, "tied") for _ in range(2)]
    (last, _), *_ = [event for stream in streams for event in drain(stream)][::-1]
    drop(shop.project, "shop.tied", event(1)["at"], at_once=True)
    with pytest.raises(Refused, match="was dropped") as refused:
        next(streams[0])
    assert refused.value.hint == "once it is created again, begin without a place"
    shop.advance("tied")
    with pytest.raises(Refused, match="was dropped"):
        next(streams[1])
    with pytest.raises(Refused, match="created again"):
        next(stream_of(shop, "tied", last))


def test_a_table_that_is_dropped_while_its_changes_are_read_ends_the_stream(
    copy: Landed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "AT_ONCE", 1)
    stream, expected = stream_of(copy, "best"), whole(copy)
    seen = [row for _, row in read_events(next(stream))]
    drop(copy.project, "shop.best", event(1)["at"], at_once=True)
    with pytest.raises(Refused, match="was dropped"):
        seen += [row for text in stream for _, row in read_events(text)]
    assert places(seen) == places(expected)[: len(seen)]


@pytest.mark.parametrize(
    "after", ["7", "x.1", "0123456789ab.1.2.3", "0123456789ab.-1", "0123456789ab.1", "é"]
)
def test_a_place_of_another_table_is_refused(shop: Landed, after: str) -> None:
    with pytest.raises(Refused):
        next(stream_of(shop, "best", after))


@pytest.mark.parametrize("number", ["", ".5"])
def test_a_place_behind_the_last_wanted_version_is_refused(visit: Visitor, number: str) -> None:
    end = visit().get(PATH, params={"from_version": 3, "limit": 0}).json()["cursor"]
    assert end.endswith(".2")
    refused = visit().get(PATH, params={"cursor": f"{end}{number}", "to_version": 1})
    assert refused.status_code == 400
    assert refused.json()["error"]["message"] == "the cursor is behind version 1"
    assert visit().get(PATH, params={"cursor": f"{end}{number}", "to_version": 2}).json()["cursor"]


def test_a_lost_past_is_gone(shop: Landed, visit: Visitor) -> None:
    log = Path(shop.uri("unranked"), "_delta_log")
    log.joinpath(f"{0:020}.json").unlink()
    DeltaTable(shop.uri("sums"))
    found = visit().get("/v1/tables/unranked/changes", params={"from_version": 0})
    assert found.status_code in (404, 410)
    assert found.json()["error"]["message"]


def test_events_over_http(shop: Landed) -> None:
    with serving(shop.folder) as url:
        follow = sluice.connect(url).follow("best", columns=["user", "what"])
        seen = [next(follow) for _ in range(len(whole(shop)))]
        deliver(shop, 11, event(24 * 11))
        more = next(follow)
        assert more["_sluice_cursor"] not in {one["_sluice_cursor"] for one in seen}
        again = sluice.connect(url).follow(
            "best", columns="user,what", after=seen[-1]["_sluice_cursor"]
        )
        assert next(again) == more
        follow.close()
        again.close()


def test_streams_are_limited_and_end_with_their_client(shop: Landed) -> None:
    async def visit() -> list[int]:
        server, found = server_of(shop.folder, streams=1), []
        app = server.app()
        for is_held in (True, False, True):
            gone = asyncio.Event()
            status: list[int] = []

            async def receive(gone: asyncio.Event = gone) -> dict[str, Any]:
                await gone.wait()
                return {"type": "http.disconnect"}

            async def send(message: dict[str, Any], status: list[int] = status) -> None:
                if message["type"] == "http.response.start":
                    status.append(message["status"])

            headers = [(b"host", b"localhost"), (b"accept", b"text/event-stream")]
            scope = {"type": "http", "method": "GET", "path": PATH, "headers": headers}
            scope |= {"query_string": b"", "asgi": {"spec_version": "2.3"}}
            task = asyncio.create_task(app(scope, receive, send))
            while not status:
                await asyncio.sleep(0.01)
            found += status
            if is_held and len(found) == 1:
                held = gone, task
                continue
            held[0].set()
            gone.set()
            await asyncio.gather(held[1], task)
        return found

    assert asyncio.run(visit()) == [200, 429, 200]


def test_a_burst_of_streams_opens_as_many_as_are_allowed(shop: Landed) -> None:
    async def visit() -> list[Any]:
        server, found, refused = server_of(shop.folder), list[int](), list[bytes]()
        waiting = list[int]()  # requests that are counted before others are refused
        app, gone = server.app(), asyncio.Event()

        async def receive() -> dict[str, Any]:
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            found.extend([message["status"]] if "status" in message else [])
            waiting.append(server._waiting)
            refused.extend([message["body"]] if b"error" in message.get("body", b"") else [])

        headers = [(b"host", b"localhost"), (b"accept", b"text/event-stream")]
        scope = {"type": "http", "method": "GET", "path": PATH, "headers": headers}
        scope |= {"query_string": b"columns=user", "asgi": {"spec_version": "2.3"}}
        tasks = [asyncio.create_task(app(dict(scope), receive, send)) for _ in range(115)]
        while len(found) < 115:
            await asyncio.sleep(0.01)
        gone.set()
        await asyncio.gather(*tasks)
        return [found.count(200), found.count(429), server._streams, max(waiting), refused[0]]

    *counts, refused = asyncio.run(visit())
    assert counts == [100, 15, 0, 0]
    assert json.loads(refused)["error"]["hint"] == "close one, or ask page by page"


def test_the_head_of_a_stream_ends(visit: Visitor) -> None:
    headers = {"Accept": "text/event-stream"}
    found = visit(streams=1).head(PATH, headers=headers)
    assert (found.status_code, found.text) == (200, "")
    assert found.headers["content-type"].startswith("text/event-stream")
    assert visit().head("/v1/tables/nope/changes", headers=headers).status_code == 404


def test_a_client_that_goes_before_the_first_event_leaves_no_stream_behind(shop: Landed) -> None:
    async def visit() -> list[int]:
        server, found = server_of(shop.folder, streams=1), []

        async def receive() -> dict[str, Any]:
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            found.append(message.get("status", 0))

        for _ in range(3):
            headers = [(b"host", b"localhost"), (b"accept", b"text/event-stream")]
            scope = {"type": "http", "method": "GET", "path": PATH, "headers": headers}
            await server.app()(scope | {"query_string": b""}, receive, send)
        return found

    assert 429 not in asyncio.run(visit())


def test_a_server_ends_its_streams_and_leaves_no_trace(
    shop: Landed, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    begun, newest = threading.Event(), changes.newest_version

    def look(uri: str) -> int:
        begun.set()
        time.sleep(1.5)  # longer than the server waits for its last answers
        return newest(uri)

    with serving(shop.folder) as url:
        busy, idle = (sluice.connect(url).follow("best") for _ in range(2))
        next(idle)
        monkeypatch.setattr(changes, "newest_version", look)
        next(busy)
        begun.wait()
    busy.close()
    idle.close()
    assert "Traceback" not in capfd.readouterr().err


def test_a_failure_in_a_stream_is_its_last_event(shop: Landed) -> None:
    async def follow() -> list[bytes]:
        found = server_of(shop.folder)._follow(map(int, ["x"]), b"first")  # type: ignore[arg-type]
        return [text async for text in found]

    first, last = asyncio.run(follow())
    assert first == b"first"
    assert json.loads(last.partition(b"data: ")[2])["status"] == 500
    assert b"unforeseen failure" in last


def test_what_events_can_not_take_is_refused(visit: Visitor) -> None:
    headers = {"Accept": "text/event-stream"}
    for query in ({"limit": 3}, {"run": "r"}, {"columns": "nope"}, {"from_version": 999}):
        found = visit().get(PATH, params=query, headers=headers)
        assert found.status_code == 400, query


def test_follow_ends_with_the_servers_error(shop: Landed) -> None:
    with serving(shop.folder) as url, pytest.raises(HistoryLost):
        next(sluice.connect(url).follow("best", after="0123456789ab.1"))
