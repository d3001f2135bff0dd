"""The client reads what `sluice.open` reads: the same values, in the same order."""

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from tests.serve.conftest import deliver, event, serving
from tests.support.lake import frozen
from tests.support.landed import START, Landed

import sluice
from sluice.errors import ConfigError, Retryable, SluiceError, UsageError
from sluice.read.lake import Lake as Reader
from sluice.read.snapshot import SnapshotExpired
from sluice.serve import client
from sluice.serve.client import Remote

READS: dict[str, Callable[[Any], Any]] = {
    "get": lambda lake: lake.table("events").get(7),
    "get by name": lambda lake: lake.table("sums").get(what="a b", user=2),
    "get of a null": lambda lake: lake.table("sums").get(None, None),
    "get of an odd text": lambda lake: lake.table("sums").get((2, "é&=?/")),
    "get of an escaped text": lambda lake: lake.table("sums").get(3, "\\N"),
    "get of nothing": lambda lake: lake.table("events").get(-7),
    "range": lambda lake: list(lake.table("events").range(key_from=5, key_to=9, reverse=True)),
    "range of a prefix": lambda lake: list(lake.table("sums").range(key_from=1, key_to=(2, "b"))),
    "range of null": lambda lake: list(lake.table("sums").range(key_to=(None,))),
    "backward": lambda lake: list(
        lake.table("events", backward_iteration=True).range(key_from=9, key_to=5)
    ),
    "not backward": lambda lake: list(lake.table("events").range(key_from=9, key_to=5)),
    "where": lambda lake: list(lake.table("events").all(where="price > 1 and what like '%b'")),
    "columns": lambda lake: list(lake.table("events").all(columns=["blob", "id"], limit=3)),
    "columns twice": lambda lake: list(lake.table("events").all(columns=["id", "id"], limit=3)),
    "read": lambda lake: sorted(row["id"] for row in lake.table("events").read()),
    "read a few": lambda lake: len(list(lake.table("events").read(limit=4))),
    "arrow": lambda lake: lake.table("events").to_arrow(),
    "schema": lambda lake: lake.table("events").schema,
    "count": lambda lake: (lake.table("sums").count, lake.table("sums").version),
    "a version": lambda lake: list(lake.table("events", version=1).all()),
    "fetch": lambda lake: list(lake.window("visits").fetch(key=2, reverse=True, limit=5)),
    "fetch of null": lambda lake: list(lake.window("visits").fetch(key=(None,))),
    "fetch times": lambda lake: list(
        lake.window("visits").fetch(key_from=1, key_to=2, time_from=START, time_to="2024-01-02")
    ),
    "fetch backward": lambda lake: list(
        lake.window("visits").fetch(time_from="2024-01-03", time_to="2024-01-02", limit=7)
    ),
    "fetch backward, not reversed": lambda lake: list(
        lake.window("visits").fetch(time_from="2024-01-03", time_to="2024-01-02", reverse=False)
    ),
    "fetch_one": lambda lake: lake.window("visits").fetch_one(2, event(1)["at"]),
    "fetch_all": lambda lake: lake.window("visits").fetch_all(time_to="2024-01-01").to_arrow(),
    "store in key order": lambda lake: list(lake.table("visits").all()),
    "top": lambda lake: lake.top("best", partition={"user": 2}),
    "top of null": lambda lake: lake.top("best", {"user": None}),
    "not a partition": lambda lake: lake.top("best", {"user": 99}),
    "every top": lambda lake: lake.top("best"),
    "top with ties": lambda lake: lake.top("tied"),
    "top without ranks": lambda lake: lake.top("unranked", {"user": 1}),
    "ranking": lambda lake: lake.ranking("best", version=2).top({"user": 2}),
    "ranking's columns": lambda lake: lake.ranking("best").partition_columns,
    "keys": lambda lake: [
        lake.table("sums").key,
        lake.table("visits").key,
        lake.window("visits").key,
    ],
    "dimension view": lambda lake: list(lake.table("catalogue").all(reverse=True)),
    "dimension view's count": lambda lake: lake.table("catalogue").count,
}


@pytest.mark.parametrize("read", READS)
def test_a_read_is_that_of_open(here: Reader, remote: Remote, read: str) -> None:
    expected, found = READS[read](here), READS[read](remote)
    assert type(found) is type(expected)
    if isinstance(expected, pa.Table):
        assert found.schema == expected.schema
        found, expected = found.to_pylist(), expected.to_pylist()
    if isinstance(expected, dict):
        found, expected = list(found.items()), list(expected.items())
    assert frozen(found) == frozen(expected)
    assert not isinstance(expected, list) or expected or read.startswith("not ")


MISTAKES: dict[str, Callable[[Any], Any]] = {
    "table": lambda lake: lake.table("evnts"),
    "kind": lambda lake: lake.top("sums"),
    "ranking of a kind": lambda lake: lake.ranking("sums"),
    "window of a kind": lambda lake: lake.window("sums"),
    "not a partition": lambda lake: lake.ranking("best").top({"what": "x"}),
    "a partition's type": lambda lake: lake.top("best", {"user": "2"}),
    "no time": lambda lake: lake.window("visits").fetch_one(1, None),
    "argument": lambda lake: lake.window("visits").fetch(nope=1),
    "future": lambda lake: lake.at("2999-01-01").table("events"),
    "why of a table": lambda lake: lake.why("evnts", 1),
    "why of half a key": lambda lake: lake.why("sums", 1),
    "why of a kind": lambda lake: lake.why("sums", partition={"user": 1}, rank=1),
    "why-not of a column": lambda lake: lake.why_not("best", partition={"no": 1}),
    "key": lambda lake: lake.table("events").get("x"),
    "key with slashes": lambda lake: lake.table("events").get("/a/b"),
    "number for a text": lambda lake: lake.table("sums").get(2, 7),
    "bytes for a text": lambda lake: lake.table("sums").range(key_from=(2, b"a")),
    "text for a number": lambda lake: lake.table("sums").range(key_to=("2", "x")),
    "truth for a number": lambda lake: lake.window("visits").fetch(key=True),
    "no key": lambda lake: lake.table("events").get(()),
    "no bound": lambda lake: lake.table("events").range(key_from=()),
    "no key of a store": lambda lake: lake.window("visits").fetch(key=()),
    "nested bound": lambda lake: lake.table("events").range(key_from=((1,),)),
    "no column": lambda lake: lake.table("events").all(columns=[""]),
    "columns in one text": lambda lake: lake.table("events").all(columns="id,user"),
    "columns of no names": lambda lake: lake.table("events").read(columns=5),
    "no table": lambda lake: lake.table(""),
    "address": lambda lake: lake.table("a/b"),
    "junk": lambda lake: lake.at("junk"),
    "broken text": lambda lake: lake.table("sums").get(2, "\ud800"),
    "broken condition": lambda lake: lake.table("sums").all(where="what = '\ud800'"),
    "broken table": lambda lake: lake.table("\ud800"),
    "version below 0": lambda lake: lake.table("events", version=-1),
    "half a key": lambda lake: lake.table("sums").get(1),
    "column": lambda lake: list(lake.table("events").all(columns=["nope"])),
    "condition": lambda lake: list(lake.table("events").all(where="java_method('a')")),
    "version": lambda lake: lake.table("events", version=77),
    "time": lambda lake: list(lake.window("visits").fetch(time_from="yesterday")),
    "limit": lambda lake: list(lake.table("events").all(limit=-1)),
    "empty cursor": lambda lake: list(lake.table("events").all(after="")),
    "empty cursor of a store": lambda lake: list(lake.window("visits").fetch(key=1, after="")),
    "not built": lambda lake: lake.table("events__quarantine"),
}


@pytest.mark.parametrize("read", MISTAKES)
def test_a_mistake_is_that_of_open(here: Reader, remote: Remote, read: str) -> None:
    with pytest.raises(UsageError) as expected:
        MISTAKES[read](here)
    with pytest.raises(UsageError) as found:
        MISTAKES[read](remote)
    assert type(found.value) is type(expected.value)
    of_request = ("argument", "broken condition", "version below 0", "empty cursor")
    if not read.startswith(of_request):
        assert found.value.message.replace("shop.", "") == expected.value.message
    assert not re.search("`sluice (?!run)| --", str(found.value)), "a command of another machine"


def test_a_mistake_in_a_pipeline_is_that_of_open(copy: Landed) -> None:
    broken = copy.folder / "config" / "pipelines" / "news.yaml"
    broken.write_text("pipeline: news\nviews:\n  few: {kind: topk}\n")
    with serving(copy.folder) as url:
        for lake in (sluice.open(copy.folder / "config"), sluice.connect(url)):
            with pytest.raises(ConfigError, match=r"news\.yaml:\d+: ") as found:
                lake.table("few")
            assert len(found.value.mistakes) > 1
            assert lake.table("events").get(1)


def test_a_version_whose_files_have_gone_is_that_of_open(copy: Landed) -> None:
    with serving(copy.folder) as url:
        lakes = (sluice.open(copy.folder / "config"), sluice.connect(url))
        tables = [lake.table("events") for lake in lakes]
        deliver(copy, 0)
        delta = DeltaTable(copy.uri("events"))
        delta.optimize.compact()
        delta.vacuum(0, enforce_retention_duration=False, dry_run=False)
        for table in tables:
            with pytest.raises(SnapshotExpired, match="vacuumed"):
                table.to_arrow()
            assert table.refresh().count == 40


def test_a_range_is_fetched_page_by_page(
    here: Reader, remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "PAGE", 7)
    rows, expected = remote.table("events").all(), here.table("events").all()
    for _ in range(17):
        assert frozen(next(rows)) == frozen(next(expected))
    again = list(remote.table("events").all(after=rows.cursor))
    assert frozen(again) == frozen(list(expected))
    assert frozen(list(rows)) == frozen(again)
    assert remote.table("events").all(limit=20).to_arrow().num_rows == 20


def test_a_handle_keeps_its_version(shop: Landed, remote: Remote) -> None:
    table = remote.table("events")
    store = remote.window("visits")
    before = table.count
    deliver(shop, 4, event(100))
    assert len(list(table.all())) == before == len(list(store.all()))
    assert table.refresh().count == before + 1 == len(list(store.refresh().all()))


def read_on(lake: Any, between: Callable[[], None]) -> list[Any]:
    """Pages of a store, each at its newest version and after the place of the one before."""
    store, place, read = lake.window("visits"), None, []
    for nth in range(4):
        page = store.fetch(key=2, limit=9, after=place, columns=["id", "window_start"][nth % 2 :])
        read.append([row["window_start"] for row in page])
        place = page.cursor
        between()
        store = store.refresh()
    return [*read, len(list(store.fetch(key=2, after=place)))]


def test_a_place_goes_on_in_a_newer_version(copy: Landed) -> None:
    days = iter(range(20, 60))

    def commit() -> None:
        deliver(copy, (nth := next(days)), *(event(24 * nth + n, user=2) for n in range(3)))

    here = sluice.open(copy.folder / "config")
    with serving(copy.folder) as url:
        remote = sluice.connect(url)
        found = read_on(remote, commit)
        taken = [start for page in found[:-1] for start in page]
        assert len(taken) == len({*taken}) == 15 + 3 * 3
        assert [r["window_start"] for r in here.window("visits").fetch(key=2)][:24] == taken
        assert found[-1] == 3
        assert read_on(remote, lambda: None) == read_on(here, lambda: None)
        stored = remote.table("events").read(limit=5)
        list(stored)
        commit()
        with pytest.raises(UsageError, match="not one of this read"):
            remote.table("events").read(after=stored.cursor)


def test_the_last_page_has_a_place(here: Reader, remote: Remote) -> None:
    for lake in (here, remote):
        rows = lake.table("events").all(where="id < 10")
        read = list(rows)
        assert [row["id"] for row in read] == list(range(10))
        assert rows.cursor is not None
        again = lake.table("events").all(where="id < 10", after=rows.cursor)
        assert list(again) == []
        assert again.cursor == rows.cursor


def test_why_is_that_of_the_command(remote: Remote) -> None:
    found = remote.why("best", partition={"user": 2}, rank=1)
    assert found is not None
    assert found["change"] in ("insert", "update")
    assert {source["table"] for source in found["from"]} >= {"shop.sums", "shop.events"}
    assert remote.why("events", 123456) is None
    assert remote.why("events", id=3)["change"] == "insert"
    missing = remote.why_not("sums", 77, "a b")
    assert missing is not None
    assert missing["reasons"][-1]["table"] == "shop.events"
    assert remote.why_not("sums", 2, "a b") is None


def test_explanations_are_those_of_the_moment(remote: Remote) -> None:
    tables = {one["table"]: one for one in remote.tables()}
    now = remote.why_not("sums", 77, "a b")
    then = remote.at(tables["shop.events"]["freshness"]["last_batch_at"])
    was = then.why_not("sums", 77, "a b")
    assert now
    assert was
    assert was["version"] == then.table("sums").version
    with pytest.raises(UsageError, match="had not been built by 2000-01-01"):
        remote.at("2000-01-01").why("sums", 2, "a b")


def test_several_streams_are_followed_at_a_time(remote: Remote) -> None:
    streams = [remote.follow(name) for name in ("events", "sums", "events")]
    first = [next(stream) for stream in streams]
    assert first[0] == first[2]
    assert first[0]["_sluice_cursor"] != first[1]["_sluice_cursor"]
    assert remote.table("events").get(1)["id"] == 1
    for stream in streams:
        stream.close()  # type: ignore[attr-defined]


def test_a_table_with_a_column_id_is_followed_from_any_place(remote: Remote) -> None:
    stream = remote.follow("events")
    first, second = next(stream), next(stream)
    assert {first["id"], second["id"]} <= {row["id"] for row in remote.table("events").all()}
    again = remote.follow("events", after=first["_sluice_cursor"])
    assert next(again) == second
    for one in (stream, again):
        one.close()  # type: ignore[attr-defined]


def test_as_of_is_that_of_open(here: Reader, remote: Remote) -> None:
    for lake in (here, remote):
        with pytest.raises(UsageError, match="had not been built by 2000-01-01"):
            lake.at("2000-01-01").table("events")
    tables = {one["table"]: one for one in remote.tables()}
    then = tables["shop.visits"]["freshness"]["last_batch_at"]
    assert list(remote.at(then).top("best")) == list(here.at(then).top("best"))
    assert len(list(remote.at(then).table("catalogue").all())) in (0, 9)


def test_nobody_who_answers_is_worth_another_try() -> None:
    with pytest.raises(Retryable, match="does not answer"):
        sluice.connect("http://127.0.0.1:9").tables()
    for url in ("config", "http://localhost:x", "http://localhost:99999", "http://[::1"):
        with pytest.raises(UsageError, match="no address of a server"):
            sluice.connect(url).tables()


def test_what_can_not_be_sent_is_refused(remote: Remote) -> None:
    for token in ("a" * 20 + "\nb", "a" * 20 + "\u20ac"):
        with pytest.raises(UsageError, match="the token can't be sent"):
            sluice.connect(remote.url, token).tables()
    for length in (9_000, 70_000):
        with pytest.raises(UsageError, match="more than"):
            remote.table("sums").all(where=f"what = '{'x' * length}'")


def test_an_unforeseen_failure_is_not_worth_another_try(
    remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sluice.serve.states.status", lambda *_: 1 / 0)
    with pytest.raises(SluiceError, match="unforeseen failure") as found:
        remote.tables()
    assert not isinstance(found.value, Retryable)


def test_a_token_is_sent(shop: Landed) -> None:
    with serving(shop.folder, "a" * 20) as url:
        with pytest.raises(UsageError, match="a valid token is needed"):
            sluice.connect(url, "b" * 20).tables()
        for token in ("a" * 20, "a" * 20 + "\n"):
            assert sluice.connect(url, token).table("events").get(1)["id"] == 1
