"""A dimension of changes reads each file once, and is what all of its files come to."""

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.contract import PROFILES, SETTINGS
from tests.support.lake import Row, counted, folded
from tests.support.landed import Landed, NewLanded, lines
from tests.support.rows import maybe, row

from sluice.delta.writing.own_commits import Committed
from sluice.dimensions import load as loading
from sluice.errors import QualityStop
from sluice.interpreter import UnsupportedLocally
from sluice.operate.explain import explain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

IS_DEEP = SETTINGS is PROFILES["deep"]
CONFIG = settings(SETTINGS, max_examples=40 if IS_DEEP else 3)
CHANGES = "delivery: changes, change: {column: op, insert: [c, u], delete: [d]}"
SCHEMA = "id INT, v INT, s INT, op STRING"
Files = dict[str, list[Row]]
Steps = list[dict[str, list[Row] | None]]


def declared(more: str = "sequence: [s]", schema: str = SCHEMA) -> str:
    return (
        "dimensions:\n  things: {path: landing/things/, format: json, key: [id], "
        f"schema: '{schema}', {CHANGES}, {more}}}\n"
    )


def put(lake: Landed, name: str, *rows: Row) -> Path:
    """One file, beside those that are there."""
    path = lake.landing / "things" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(lines(rows))
    return path


def change(id_: int, v: int | None = None, op: str = "u", **more: Any) -> Row:
    return {"id": id_, "v": v, "op": op, **more}


def values(lake: Landed) -> dict[int, int]:
    return {r["id"]: r["v"] for r in lake.rows("things")}


@pytest.fixture
def lake(new_landed: NewLanded) -> Landed:
    """One file was loaded: 1 and 2 stand, 3 is gone."""
    lake = new_landed(declared("sequence: []", SCHEMA.replace("s INT, ", "")))
    put(lake, "a", change(1, 1), change(2, 2), change(3, 3), change(3, op="d"), change(9, op="?"))
    report = lake.load()
    assert (report.rows_in, report.engine) == (5, "process")
    return lake


def test_only_the_files_that_came_since_are_read(lake: Landed) -> None:
    old = lake.landing / "things" / "a.json"
    known = old.stat()
    old.write_text("x" * known.st_size)
    os.utime(old, ns=(known.st_atime_ns, known.st_mtime_ns))
    put(lake, "b", change(2, 20), change(4, 4), change(8, op="?"))
    (step,) = explain(lake.project, lake.table("things"))
    assert (step.next, step.files) == ("load", 1)
    report = lake.load()
    assert (step.engine, report.engine) == ("process", "process")
    assert (report.rows_in, report.inserted, report.updated, report.deleted) == (3, 1, 1, 0)
    assert values(lake) == {1: 1, 2: 20, 4: 4}
    assert [q["raw"][:7] for q in lake.quarantine("things")] == ['{"id":8', '{"id":9']
    assert [sum(counts) for counts in zip(*lake.noted("things").values(), strict=True)] == [8, 6, 2]
    put(lake, "c", change(1, 1))
    assert lake.load().outcome == "position", "it was read, and alters no row"
    assert lake.load().outcome == "unchanged"


def test_an_older_file_that_comes_late_stands_behind_the_newer(lake: Landed) -> None:
    put(lake, "0", change(1, 10), change(3, 30), change(5, 50))
    assert lake.load().rows_in == 3
    assert values(lake) == {1: 1, 2: 2, 5: 50}, "3 was deleted after that"


@pytest.mark.parametrize("is_gone", [True, False], ids=["gone", "corrected"])
def test_all_files_are_read_again_where_one_is_not_what_it_was(lake: Landed, is_gone: bool) -> None:
    put(lake, "b", change(1, op="d"))
    lake.load()
    assert values(lake) == {2: 2}
    if is_gone:
        (lake.landing / "things" / "b.json").unlink()
    else:
        put(lake, "b", change(2, 3))
    report = lake.load()
    assert ["has changed or disappeared" in w for w in report.warnings] == [True]
    assert values(lake) == {1: 1, 2: 2 if is_gone else 3}
    assert len(lake.quarantine("things")) == 1


def test_without_its_state_all_files_are_read_again(lake: Landed) -> None:
    shutil.rmtree(lake.uri("things__state"))
    put(lake, "b", change(2, 20))
    report = lake.load()
    assert ["everything is read again" in w for w in report.warnings] == [True]
    assert (report.rows_in, values(lake)) == (6, {1: 1, 2: 20})


def test_a_crash_between_its_two_commits_is_mended(
    lake: Landed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object, **__: object) -> None:
        raise RuntimeError("power cut")

    put(lake, "b", change(1, op="d"), change(4, 4))
    with monkeypatch.context() as patched:
        patched.setattr(loading, "_put", crash)
        with pytest.raises(RuntimeError, match="power cut"):
            lake.load()
    assert values(lake) == {1: 1, 2: 2}
    (lake.landing / "things" / "b.json").unlink()
    lake.load()
    assert values(lake) == {1: 1, 2: 2}, "what the crash left is not taken for loaded"


def test_what_is_left_to_spark_after_the_state_was_committed_begins_again(
    lake: Landed, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, refusals = loading._put, iter([UnsupportedLocally("a value")])

    def refuse_once(*args: Any) -> Committed:
        for refusal in refusals:
            raise refusal
        return real(*args)

    put(lake, "b", change(1, op="d"), change(2, 20), change(4, 4))
    monkeypatch.setattr(loading, "_put", refuse_once)
    report = lake.load()
    assert report.engine == "spark: a value"
    assert (report.rows_in, report.inserted, report.updated, report.deleted) == (3, 1, 1, 1)
    assert values(lake) == {2: 20, 4: 4}
    assert lake.load().outcome == "unchanged"


def test_each_version_in_a_log_of_a_history_is_kept(new_landed: NewLanded) -> None:
    schema = "id INT, v INT, since DATE, op STRING"
    lake = new_landed(declared("history: true, valid_from: since", schema))
    put(lake, "a", *(change(1, n, since=f"2024-0{n}-01") for n in (3, 1)), change(2, 5))
    lake.load()
    put(lake, "b", change(1, 2, since="2024-02-01"), change(1, 30, since="2024-03-01"))
    lake.load()
    found = sorted(lake.rows("things"), key=lambda r: r["valid_from"])
    ends = [r["valid_to"] and r["valid_to"].month for r in found]
    assert ([r["v"] for r in found], ends) == ([1, 2, 30], [2, 3, None])
    assert [q["reason"][:20] for q in lake.quarantine("things")] == ["column since is null"]


def test_a_history_by_load_follows_the_log(new_landed: NewLanded) -> None:
    lake = new_landed(declared("sequence: [s], history: true"))
    for name, rows in (
        ("a", [change(1, 1, s=1), change(2, 2, s=1)]),
        ("b", [change(1, 9, s=2)]),
        ("c", [change(2, op="d", s=2)]),
    ):
        put(lake, name, *rows)
        lake.load()
    assert {(r["id"], r["v"], r["is_current"]) for r in lake.rows("things")} == {
        (1, 1, False),
        (1, 9, True),
        (2, 2, False),
    }


CHANGE = row(
    id=st.integers(1, 3),
    v=st.integers(0, 2),
    s=maybe(st.integers(1, 3)),
    op=st.sampled_from(["c", "u", "d", "d", "?"]),
)
STEP = st.dictionaries(
    st.sampled_from("abcd"), maybe(st.lists(CHANGE, max_size=4)), min_size=1, max_size=2
)
STEPS = st.lists(STEP, min_size=4, max_size=4)


@CONFIG
@given(steps=STEPS, again=st.booleans())
def test_it_is_what_its_files_come_to_whatever_becomes_of_them(
    spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory, steps: Steps, again: bool
) -> None:
    lake = Landed(tmp_path_factory.mktemp("log"), declared(), spark)
    assert "process" in engines_of(lake, steps, again) <= {"process", ""}


@pytest.mark.usefixtures("real_spark")
@CONFIG
@given(steps=STEPS, again=st.booleans())
def test_by_spark_it_is_the_same(
    spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory, steps: Steps, again: bool
) -> None:
    lake = Landed(tmp_path_factory.mktemp("log"), declared(), spark).limit(computed_here_bytes=-1)
    large = "spark: 0.0 MB are read at once"
    assert large in engines_of(lake, steps, again) <= {large, ""}


def engines_of(lake: Landed, steps: Steps, again: bool) -> set[str]:
    """Load after each step, check the rows, and return what computed them.

    A load of nothing but bad rows is refused, and the dimension stays as it was.
    """
    files, reports, held = Files(), [], list[Row]()
    for step in steps:
        for name, rows in step.items():
            path = put(lake, name, *(rows or []))
            files[name] = rows or []
            if rows is None and len(files) > 1:
                path.unlink()
                del files[name]
        every = [change["op"] for rows in files.values() for change in rows]
        try:
            reports.append(lake.load())
        except QualityStop:
            assert {*every} == {"?"}
        else:
            held = latest(files)
            assert len(lake.quarantine("things")) == every.count("?")
        assert not reports or counted(lake.rows("things")) == counted(held)
    assert folded(lake.feed("things")) == counted(lake.stored("things"))
    if again and {*every} != {"?"}:
        reports += lake.rebuild("things").values()
        assert counted(lake.rows("things")) == counted(latest(files))
    return {report.engine for report in reports}


def latest(files: Files) -> list[Row]:
    """The last row of each key: by its sequence, then by its file, then by its place in that."""
    found: dict[int, Row] = {}
    every = [(n, i, r) for n, rows in files.items() for i, r in enumerate(rows) if r["op"] != "?"]
    for _, _, change in sorted(every, key=lambda e: (e[2]["s"] is not None, e[2]["s"], *e[:2])):
        found[change["id"]] = change
    return [{c: r[c] for c in ("id", "v", "s")} for r in found.values() if r["op"] != "d"]
