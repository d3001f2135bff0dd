"""Upkeep of whole pipelines: sealing and vacuuming change nothing that anybody reads."""

import json
import os
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql.types import StructType
from tests.kinds.window_store.traces import DECLARED, LENGTHS, NOON, check, trace
from tests.support.lake import Lake, NewLake, Row, counted

from sluice.delta.log.position import CREATE, Position
from sluice.delta.writing import filing
from sluice.delta.writing.commit import create
from sluice.delta.writing.filing import Slice, slices_of
from sluice.kinds.window_store.operator import StoreKept
from sluice.language.interval import Schedule
from sluice.operate import run as running
from sluice.operate.maintain import Upkeep, maintain, oldest_named
from sluice.operate.run import _is_upkeep_due, rounds_of
from sluice.read.lake import Lake as Reads


@pytest.fixture
def lake(new_lake: NewLake) -> Lake:
    return new_lake(DECLARED + LENGTHS)


def upkeep(lake: Lake, *names: str) -> list[Upkeep]:
    return maintain(lake.spark, lake.project, [lake.table(n) for n in names or ("recent",)])


def ids(lake: Lake) -> list[int]:
    return sorted(row["id"] for row in lake.rows("recent"))


def test_a_rebuild_does_not_bring_back_what_has_expired(lake: Lake) -> None:
    from sluice.engine.advance import Run
    from sluice.operate.rebuild import rebuild

    lake.put("traces", *(trace(n, n) for n in range(5)), trace(30, 30))
    lake.advance()
    rebuild(lake.spark, lake.project, lake.table("recent"), Run("again"))
    assert ids(lake) == [30]
    check(lake)


@pytest.mark.parametrize(("rows", "is_there"), [(5_000, True), (0, True), (0, False)])
def test_closed_slices_are_sealed_with_and_without_spark(
    lake: Lake, rows: int, is_there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Slice, "unordered_rows", rows)
    monkeypatch.setattr("sluice.spark.session.Spark.is_there", is_there)
    for n in range(6):
        lake.put("traces", trace(n, n % 2, "abc"[n % 3]), trace(n + 10, 2))
        lake.advance("recent")
    before = lake.stored("recent")
    assert upkeep(lake) == [Upkeep("shop.recent", "seal", 6)]
    assert counted(lake.stored("recent")) == counted(before)
    slices = slices_of(DeltaTable(lake.uri("recent")))
    assert [len(s.paths) for s in slices] == [1, 1, 6]
    assert lake.head("recent").position.kind == "seal"
    lake.put("traces", trace(50, 1), gone=[trace(0, 0, "a")])
    lake.advance()
    check(lake)


def test_a_slice_that_grows_is_compacted_by_its_batches(lake: Lake) -> None:
    for n in range(2 * StoreKept.slice_files + 1):
        lake.put("traces", trace(n, n / 100))
        lake.advance("recent")
    assert most_files(lake.uri("recent")) == StoreKept.slice_files
    kinds = [json.loads(h["userMetadata"])["sluice"]["kind"] for h in history(lake)]
    assert kinds.count("compact") == 2
    assert lake.advance("recent")[0].outcome == "unchanged"
    lake.advance()
    check(lake)


def test_a_keyed_table_whose_rows_lie_in_one_lump_is_filed_by_its_key_again(lake: Lake) -> None:
    lake.put("traces", *(trace(n, service=f"s{n * 7919 % 6000:04}") for n in range(6_000)))
    lake.advance()
    lake.limit(file_rows=1_000)
    done = upkeep(lake, "lengths")
    assert done == [Upkeep(f"shop.lengths{part}", "compact", 1) for part in ("", "__state")]
    (whole,) = slices_of(DeltaTable(lake.uri("lengths")))
    assert len(whole.paths) == 6
    assert filing.is_in_order(lake.uri("lengths"), whole.paths, "service")
    assert upkeep(lake, "lengths") == []


def test_files_of_a_table_that_has_grown_are_joined_to_larger_ones(lake: Lake) -> None:
    """Upkeep then leaves them alone, until half of the rows are gone."""
    traces = [trace(n, service=f"s{n * 7919 % 14_000:05}") for n in range(14_000)]
    lake.limit(file_rows=400, large_file_rows=1_000)
    lake.put("traces", *traces)
    lake.advance()
    upkeep(lake, "lengths")
    assert file_sizes(lake) == [1_000] * 14
    lake.put("traces", gone=traces[2_000:6_000])
    lake.advance()
    upkeep(lake, "lengths")
    assert 10 <= len(file_sizes(lake)) <= 20
    assert upkeep(lake, "lengths") == []
    lake.put("traces", gone=traces[6_000:10_000])
    lake.advance()
    assert upkeep(lake, "lengths")
    assert max(file_sizes(lake)) <= 800
    assert upkeep(lake, "lengths") == []


def test_rows_of_a_table_of_middle_size_that_lie_in_lumps_are_sorted(lake: Lake) -> None:
    """Its files are as large as those of a table that was larger, whose rows are sorted."""
    lake.limit(file_rows=400, large_file_rows=6_000)
    for start in (0, 100_000):
        names = (f"s{n * 7919 % 12_000:05}" for n in range(12_000))
        lake.put("traces", *(trace(start + n, service=name) for n, name in enumerate(names)))
        lake.advance()
    assert file_sizes(lake) == [12_000]
    assert upkeep(lake, "lengths")
    (whole,) = slices_of(DeltaTable(lake.uri("lengths")))
    assert filing.is_in_order(lake.uri("lengths"), whole.paths, "service")
    assert upkeep(lake, "lengths") == []


def file_sizes(lake: Lake) -> list[int]:
    (whole,) = slices_of(DeltaTable(lake.uri("lengths")))
    return [*whole.rows]


def history(lake: Lake) -> list[Row]:
    return DeltaTable(lake.uri("recent")).history()


def most_files(uri: str) -> int:
    files: Counter[str] = Counter()
    most = 0
    for commit in sorted(Path(uri, "_delta_log").glob("*.json")):
        for action in map(json.loads, commit.read_text().splitlines()):
            for kind, sign in (("add", 1), ("remove", -1)):
                if kind in action:
                    files[action[kind]["path"].partition("/")[0]] += sign
        most = max(most, *files.values(), 0)
    return most


def test_the_guard_is_the_slowest_consumer(lake: Lake) -> None:
    lake.put("traces", trace(1))
    lake.advance()
    read = lake.head("recent").version
    lake.put("traces", trace(2))
    lake.advance("recent")
    recent, lengths = lake.head("recent"), lake.head("lengths")
    assert oldest_named(lake.project, "shop.recent", recent) == read < recent.version
    assert oldest_named(lake.project, "shop.lengths", lengths) == lengths.version
    lake.advance()
    assert oldest_named(lake.project, "shop.recent", recent) == recent.version


def test_a_table_whose_build_was_cut_is_left_alone_until_it_is_filled(lake: Lake) -> None:
    """What the build had written is a file that nobody names; deleting it would be a commit."""
    empty = Position(0, "cut", CREATE)
    create(lake.uri("recent"), StructType.fromDDL("id INT"), empty)
    file = Path(lake.uri("recent"), "part-0.parquet")
    file.write_bytes(b"")
    os.utime(file, (0, 0))
    assert upkeep(lake) == []
    assert not lake.head("recent").is_filled


def test_the_trace_store_answers_by_id_and_by_time_from_one_table(new_lake: NewLake) -> None:
    """The proposal keeps two key-value stores for this: traces by id, and ids by time."""
    declared = DECLARED.partition("views:")[0] + (
        "views:\n  by_id: {kind: window_store, from: traces, key: [id], time: at}\n"
    )
    lake = new_lake(declared)
    lake.put("traces", *(trace(n, n % 4, "web" if n % 3 else "db") for n in range(40)))
    lake.advance()
    store = Reads(lake.project).window("by_id")
    assert [row["duration"] for row in store.fetch(key=17)] == [170]
    found = store.fetch_all(
        time_from=NOON,
        time_to=NOON + timedelta(days=2, hours=1),
        where="service = 'db' and duration > 50",
        reverse=True,
        limit=10,
    )
    rows = [row for row in lake.rows("by_id") if row["service"] == "db" and row["duration"] > 50]
    inside = [row for row in rows if row["window_start"] <= NOON + timedelta(days=2)]
    inside.sort(key=lambda row: (row["window_start"], row["id"]), reverse=True)
    assert [row["id"] for row in found] == [row["id"] for row in inside][:10]


@pytest.mark.parametrize(("most", "due"), [(16, [1, 3]), (1, [31, 63]), (24, [1, 2]), (100, [0])])
def test_upkeep_is_done_every_32_intervals(
    monkeypatch: pytest.MonkeyPatch, most: int, due: list[int]
) -> None:
    monkeypatch.setattr(running, "ROUND_INTERVALS", most)
    days = Schedule(expression="@daily").intervals(
        NOON.replace(hour=0), NOON.replace(2024, 3, 17, 0)
    )
    rounds = rounds_of(days[:66])
    assert [nth for nth in range(len(rounds)) if _is_upkeep_due(nth, rounds)] == due
