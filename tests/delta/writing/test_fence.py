"""One writer wins. The others get an error and leave nothing behind."""

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql.types import StructType
from tests.delta.tables import (
    ID_AND_V,
    Change,
    Commit,
    Small,
    a_position,
    by_delta_rs,
    by_marking,
    by_spark,
)

from sluice.changes import CHANGE
from sluice.delta.log.continuity import lost_race_of
from sluice.delta.log.position import Head, head_as_found, positions
from sluice.delta.writing.commit import (
    commit_arrow,
    commit_position,
    create,
)
from sluice.delta.writing.merge import SparkCommit
from sluice.errors import HistoryLost, LostRace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

INSERT: Change = ("insert", {"id": 5, "v": "e"})
UPDATE: Change = ("update", {"id": 1, "v": "A"})
COMMITTERS = {"delta-rs": by_delta_rs, "marking": by_marking, "spark": by_spark}


@pytest.fixture(params=COMMITTERS)
def write(request: pytest.FixtureRequest, session: "SparkSession") -> Commit:
    return COMMITTERS[request.param](session)


@pytest.fixture
def table(tmp_path: Path, write: Commit) -> Small:
    small = Small.create(tmp_path, ID_AND_V, ["id"], write)
    small.commit(("insert", {"id": 1, "v": "a"}))
    return small


@pytest.mark.usefixtures("real_spark")
@pytest.mark.parametrize("change", [INSERT, UPDATE], ids=["append", "merge"])
@pytest.mark.parametrize("other", ["delta-rs", "spark"])  # to insert, marking is delta-rs
def test_the_second_of_two_batches_on_one_head_loses(
    table: Small, session: "SparkSession", change: Change, other: str
) -> None:
    before = table.head
    rival = Small(table.uri, table.key, COMMITTERS[other](session))
    rival.commit(("insert", {"id": 2, "v": "b"}), before=before)
    rows = table.rows()
    with pytest.raises(LostRace, match="after version 1"):
        table.commit(change, before=before)
    assert (table.rows(), table.head.version) == (rows, 2)
    table.commit(change)
    assert table.head.version == 3


@pytest.mark.usefixtures("real_spark")
@pytest.mark.parametrize("change", [INSERT, UPDATE], ids=["append", "merge"])
def test_a_batch_loses_to_a_commit_of_the_position_alone(table: Small, change: Change) -> None:
    before = table.head
    table.position_only()
    with pytest.raises(LostRace):
        table.commit(change, before=before)
    with pytest.raises(LostRace):
        table.position_only(before=before)
    assert [v for v, _ in positions(table.uri)] == [2, 1, 0]


@pytest.mark.usefixtures("real_spark")
def test_a_number_that_delta_has_seen_is_noticed(table: Small) -> None:
    """As after a RESTORE, when the position went back and Delta's number did not."""
    table.commit(UPDATE)
    DeltaTable(table.uri).restore(1)
    for batch in (1, 2):
        stale = table.changelog([INSERT])
        before = head_after_restore(table)
        if getattr(table.write, "func", table.write) is commit_arrow:
            continue  # delta-rs goes by the version alone: it commits, on exactly that one
        with pytest.raises(LostRace):
            table.write(before, stale, table.key, a_position(batch))
    with pytest.raises(HistoryLost):
        table.commit(INSERT)
    repaired = head_after_restore(table)
    assert repaired.next_batch == 3
    table.commit(INSERT, before=repaired, kind="rebuild")
    assert [row["id"] for row in table.rows()] == [1, 5]


def head_after_restore(table: Small) -> Head:
    found = head_as_found(table.uri)
    assert found is not None
    return found


@pytest.mark.usefixtures("real_spark")
@pytest.mark.parametrize("change", [INSERT, UPDATE], ids=["append", "merge"])
def test_rows_of_others_between_plan_and_commit_are_never_overlooked(
    table: Small, change: Change
) -> None:
    before = table.head
    foreign = pa.table({"id": pa.array([9], pa.int32()), "v": ["z"]})
    write_deltalake(table.uri, foreign, mode="append")
    with contextlib.suppress(LostRace):
        table.commit(change, before=before)
    with pytest.raises(HistoryLost, match="version 2"):
        table.head  # noqa: B018


@pytest.mark.usefixtures("real_spark")
@pytest.mark.parametrize("change", [INSERT, UPDATE], ids=["append", "merge"])
def test_compaction_between_plan_and_commit_costs_at_most_a_retry(
    table: Small, session: "SparkSession", change: Change
) -> None:
    table.commit(("insert", {"id": 2, "v": "b"}))
    before = table.head
    session.sql(f"OPTIMIZE delta.`{table.uri}`")
    try:
        table.commit(change, before=before)
    except LostRace:
        table.commit(change)
    assert len(table.rows()) == 2 + (change is INSERT)
    assert table.head.position is not None
    assert table.head.data_version == 4


@pytest.mark.usefixtures("real_spark")
def test_a_commit_that_others_have_followed_still_counts_as_ours(
    table: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sluice.delta.writing import merge as by_spark
    from sluice.delta.writing import own_commits as fence

    def overtaken(place: str, uri: str) -> None:
        if place == "committed":
            monkeypatch.undo()
            table.commit(("insert", {"id": 7, "v": "g"}))

    for module in (by_spark, fence):
        monkeypatch.setattr(module, "passing", overtaken)
    assert table.commit(INSERT).version == 2
    assert table.head.version == 3


def test_a_table_is_made_once(tmp_path: Path) -> None:
    uri = str(tmp_path / "table")
    create(uri, ID_AND_V, a_position(0))
    with pytest.raises(LostRace):
        create(uri, ID_AND_V, a_position(0))


def test_many_makers_of_one_table_leave_one(tmp_path: Path) -> None:
    uri, won = str(tmp_path / "table"), []

    def make(number: int) -> None:
        try:
            create(uri, StructType().add(f"c{number}", "integer"), a_position(0))
            won.append(number)
        except LostRace:
            pass

    at_once([lambda n=n: make(n) for n in range(8)])  # type: ignore[misc]
    assert len(won) == 1
    assert [f.name for f in DeltaTable(uri).schema().fields] == [f"c{won[0]}"]


def test_many_writers_of_one_head_have_one_winner(tmp_path: Path) -> None:
    table = Small.create(tmp_path, ID_AND_V, ["id"], commit_arrow)
    before, outcomes = table.head, []

    def commit(number: int) -> None:
        try:
            position = a_position(before.next_batch)
            if number % 3:
                rows = table.changelog([("insert", {"id": number, "v": ""})])
                commit_arrow(before, rows, ["id"], position)
            else:
                commit_position(before, position)
            outcomes.append(number)
        except LostRace:
            outcomes.append(None)

    at_once([lambda n=n: commit(n) for n in range(8)])  # type: ignore[misc]
    assert len([o for o in outcomes if o is not None]) == 1
    assert (len(outcomes), table.head.version) == (8, 1)


@pytest.mark.usefixtures("real_spark")
@pytest.mark.parametrize("kind", ["append", "merge", "replace", "overwrite"])
@pytest.mark.parametrize("rival", ["batch", "foreign", "metadata"])
def test_spark_caught_in_the_middle_of_its_write_loses(
    tmp_path: Path, session: "SparkSession", kind: str, rival: str
) -> None:
    """The other commit lands while Spark computes the rows, after it has chosen its snapshot."""
    table = Small.create(tmp_path, ID_AND_V, ["id"], by_spark(session))
    table.commit(("insert", {"id": 1, "v": "a"}))
    before = table.head
    changelog = meanwhile(session, table, kind, rival)
    counts = {"insert": 1} if kind == "append" else {"insert": 1, "update": 1}
    made = SparkCommit(session, before, a_position(before.next_batch), ["id"])

    def write() -> None:
        if kind == "overwrite":
            made.overwrite(changelog.drop(CHANGE))
        elif kind == "replace":
            made.replace(changelog, counts)
        else:
            made.changelog(changelog, counts)

    if rival == "batch":
        with pytest.raises(LostRace):
            write()
    else:
        with contextlib.suppress(LostRace):
            write()
    if rival == "foreign":
        with pytest.raises(HistoryLost, match="version 2"):
            table.head  # noqa: B018
    else:
        assert table.head.version in (2, 3)


def meanwhile(session: "SparkSession", table: Small, kind: str, rival: str) -> "DataFrame":
    uri, key = table.uri, table.key
    position = a_position(table.head.next_batch)

    def rows_and_a_rival(batches):  # type: ignore[no-untyped-def]
        if DeltaTable(uri).version() == 1:
            if rival == "batch":
                rows = Small(uri, key, commit_arrow).changelog([("update", {"id": 1, "v": "r"})])
                commit_arrow(Small(uri, key, commit_arrow).head, rows, key, position)
            elif rival == "foreign":
                DeltaTable(uri).update({"v": "'f'"}, predicate="id = 1")
            else:
                DeltaTable(uri).alter.set_table_properties({"delta.checkpointInterval": "7"})
        yield from batches

    changes = [(5, "e", "insert")] if kind == "append" else [(1, "A", "update"), (5, "e", "insert")]
    shape = "id int, v string, _sluice_change string"
    rows = session.createDataFrame(changes, shape).coalesce(1)
    return rows.mapInPandas(rows_and_a_rival, shape)


def test_a_fault_that_is_no_conflict_keeps_its_name(tmp_path: Path) -> None:
    from deltalake.exceptions import CommitFailedError

    table = Small.create(tmp_path, ID_AND_V, ["id"], commit_arrow)
    with pytest.raises(CommitFailedError), lost_race_of(table.uri, table.head.version):
        raise CommitFailedError("the disk is full")


def at_once(calls: list[Callable[[], None]]) -> None:
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[], None]) -> None:
        barrier.wait()
        call()

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
