"""Joins of tables step by step, as Kafka Streams and Flink SQL document them.

Kafka's pages on joining tables go through both sides' inserts, updates and deletes one record at a
time; Flink's describe regular and interval joins of changelogs. A record without a value deletes
its key.

A history is played by many copies of its tables at once: the nth copy has seen all records before
the nth when the first batch comes, and gets the nth before the second.
"""

from collections import defaultdict
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.lake import Lake, NewLake, Row, counted, repeated
from tests.support.rows import HOUR, NOON

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = """
sources:
  this:
    path: "this/{interval_start:%Y-%m-%d}/"
    key: [id]
    schema: "id STRING, fk INT, v STRING, at TIMESTAMP"
  other:
    path: "other/{interval_start:%Y-%m-%d}/"
    key: [no]
    schema: "no INT, v STRING, at TIMESTAMP"
views:
"""
SHOWN = "select: {id: this.id, left: this.v, no: other.no, right: other.v}"


Step = tuple[str, str, Row | None, str, str, str]  # side, key, value; rows by type
TYPES = ("inner", "left", "full")


def lake_of(folder: Path, spark: "SparkSession") -> Lake:
    join = "kind: join, left: this, right: other, on: this.fk = other.no"
    views = "".join(f"  {how}_: {{{join}, type: {how}, {SHOWN}}}\n" for how in TYPES)
    lake = Lake(folder, TABLES + views, spark)
    lake.put("this")
    lake.put("other")
    return lake


def this(fk: int | None, v: str) -> Row:
    return {"fk": fk, "v": v}


def deliver(lake: Lake, records: Iterable[tuple[int, Step]]) -> None:
    """Put records of several copies; the last one of a key counts, and none deletes the key."""
    last: dict[str, dict[str, tuple[Row, Row | None]]] = {"this": {}, "other": {}}
    for copy, (side, key, value, *_) in records:
        own = {"id": f"{copy}.{key}"} if side == "this" else {"no": copy * 100 + int(key)}
        moved = {"fk": copy * 100 + value["fk"]} if value and value.get("fk") else {}
        last[side][f"{copy}.{key}"] = own, value and {**value, **moved}
    for side, known in last.items():
        come = [{**value, **own} for own, value in known.values() if value]
        lake.put(side, *come, gone=[own for own, value in known.values() if not value])


def play(lake: Lake, history: list[Step]) -> None:
    """Play each step of a history in a copy of its own, and compare the rows around it."""
    copies = range(1, len(history) + 1)
    deliver(lake, ((copy, step) for copy in copies for step in history[: copy - 1]))
    lake.advance()
    before = {how: shown(lake, how) for how in TYPES}
    deliver(lake, enumerate(history, 1))
    lake.advance()
    after = {how: shown(lake, how) for how in TYPES}
    for copy, (_, _, _, *expected) in enumerate(history, 1):
        earlier = history[copy - 2][3:] if copy > 1 else ("", "", "")
        for nth, how in enumerate(TYPES, 1):
            stood, stands = (sorted(" ".join(r[:nth]).split()) for r in (earlier, expected))
            assert before[how].get(copy, []) == stood, f"before step {copy}, {how}"
            assert after[how].get(copy, []) == stands, f"step {copy}, {how}"


def shown(lake: Lake, how: str) -> dict[int, list[str]]:
    """Each copy's rows: key, left value, right value."""
    assert not repeated(lake.feed(f"{how}_")), "a row that stayed the same was written"
    found: dict[int, list[str]] = defaultdict(list)
    for row in lake.rows(f"{how}_"):
        copy, _, key = (row["id"] or "").partition(".")
        number = int(copy) if copy else row["no"] // 100
        found[number].append(f"{key}{row['left'] or '-'}{row['right'] or '-'}")
    return {copy: sorted(rows) for copy, rows in found.items()}


X, Y, Z, W = ({"v": v} for v in "xyzw")


FOREIGN: list[Step] = [  # the rows of an inner join; those that a left one adds, and a full one
    ("this", "k", this(1, "A"), "", "kA-", ""),
    ("other", "1", X, "kAx", "", ""),
    ("this", "k", this(2, "A"), "", "kA-", "-x"),
    ("this", "k", this(3, "A"), "", "kA-", "-x"),
    ("other", "3", Y, "kAy", "", "-x"),
    ("this", "k", None, "", "", "-x -y"),
    ("this", "k", this(1, "B"), "kBx", "", "-y"),
    ("this", "k", this(1, "C"), "kCx", "", "-y"),
    ("this", "q", this(10, "Q"), "kCx", "qQ-", "-y"),
    ("this", "r", this(10, "R"), "kCx", "qQ- rR-", "-y"),
    ("other", "10", Z, "kCx qQz rRz", "", "-y"),
    ("other", "10", W, "kCx qQw rRw", "", "-y"),
    ("this", "q", this(None, "Q"), "kCx rRw", "qQ-", "-y"),
    ("other", "10", None, "kCx", "qQ- rR-", "-y"),
    ("other", "1", None, "", "kC- qQ- rR-", "-y"),
    ("other", "3", None, "", "kC- qQ- rR-", ""),
    ("other", "3", None, "", "kC- qQ- rR-", ""),
]


def test_kafkas_foreign_keys_move_from_row_to_row(tmp_path: Path, spark: "SparkSession") -> None:
    """The key of a table joined to another's column: many rows follow one."""
    play(lake_of(tmp_path, spark), FOREIGN)


def test_flinks_outer_join_takes_back_the_row_without_a_match(new_lake: NewLake) -> None:
    """A row padded with nulls leaves with the first match, and returns when the last one leaves."""
    lake = new_lake(TWO_MATCHES)
    lake.put("this", {"id": "k", "v": "A"})
    lake.put("other")
    states = [
        ([{"no": 1, "v": "k"}], [], ["k1"]),
        ([{"no": 2, "v": "k"}], [], ["k1", "k2"]),
        ([], [{"no": 1}], ["k2"]),
        ([], [{"no": 2}], ["k-"]),
        ([{"no": 3, "v": "k"}, {"no": 4, "v": "k"}], [], ["k3", "k4"]),
        ([{"no": 3, "v": "j"}, {"no": 4, "v": None}], [], ["k-"]),
    ]
    lake.advance()
    assert lake.rows("padded") == [{"id": "k", "no": None}]
    for come, gone, expected in states:
        lake.put("other", *come, gone=gone)
        lake.advance()
        assert sorted(f"{r['id']}{r['no'] or '-'}" for r in lake.rows("padded")) == expected
    assert not repeated(lake.feed("padded"))


TWO_MATCHES = TABLES + (
    "  padded: {kind: join, left: this, right: other, type: left, on: this.id = other.v, "
    "select: {id: this.id, no: other.no}}\n"
)
INTERVAL = TABLES + (
    "  near: {kind: join, left: {table: this, time: at}, right: {table: other, time: at}, "
    "on: this.fk = other.no, within: 4 hours, select: {id: this.id, no: other.no}}\n"
)
INSTANT = timedelta(microseconds=1)


@pytest.mark.parametrize(("apart", "meet"), [(4 * HOUR, True), (4 * HOUR + INSTANT, False)])
def test_flinks_interval_join_has_bounds_that_belong_to_it(
    new_lake: NewLake, apart: timedelta, *, meet: bool
) -> None:
    lake = new_lake(INTERVAL)
    times = {"a": NOON + apart, "b": NOON - apart}
    lake.put("this", *({"id": id_, "fk": 1, "at": at} for id_, at in times.items()))
    lake.put("other", {"no": 1, "at": NOON})
    lake.advance()
    expected = [{"id": id_, "no": 1} for id_ in ("a", "b")] if meet else []
    assert counted(lake.rows("near")) == counted(expected)


BOTH = "kind: join, left: this, right: other, on: this.fk = other.no"
REGULAR = TABLES + "".join(
    f"  {how}_: {{{BOTH}, type: {how}, select: {{id: this.id, left: this.v{more}}}}}\n"
    for how, more in {
        "right": ", right: other.v",
        "full": ", right: other.v",
        "semi": "",
        "anti": "",
    }.items()
)
Side = dict[int | str, Row | None]  # key -> its new row; none deletes it
AT_ONCE: list[tuple[Side, Side, dict[str, list[str]]]] = [
    ({"k": this(1, "A")}, {1: X}, {"right": ["kAx"], "full": ["kAx"], "semi": ["kA"]}),
    ({"k": this(1, "B")}, {1: Y}, {"right": ["kBy"], "full": ["kBy"], "semi": ["kB"]}),
    ({"k": None}, {1: None}, {}),
    (
        {"k": this(1, "C")},
        {2: Z},
        {"right": ["--z"], "full": ["--z", "kC-"], "anti": ["kC"]},
    ),
    (
        {"k": this(2, "C")},
        {2: None, 3: W},
        {"right": ["--w"], "full": ["--w", "kC-"], "anti": ["kC"]},
    ),
    ({"k": this(3, "C")}, {3: X}, {"right": ["kCx"], "full": ["kCx"], "semi": ["kC"]}),
    (
        {"k": None, "q": this(3, "D"), "r": this(3, "E")},
        {3: Y, 4: Z},
        {"right": ["--z", "qDy", "rEy"], "full": ["--z", "qDy", "rEy"], "semi": ["qD", "rE"]},
    ),
    (
        {"q": this(4, "D")},
        {3: None},
        {"right": ["qDz"], "full": ["qDz", "rE-"], "semi": ["qD"], "anti": ["rE"]},
    ),
    (
        {"q": None, "r": this(None, "E")},
        {3: X},
        {"right": ["--x", "--z"], "full": ["--x", "--z", "rE-"], "anti": ["rE"]},
    ),
]


def test_flinks_regular_joins_follow_both_sides_that_change_at_once(new_lake: NewLake) -> None:
    """Right and full outer joins, `EXISTS` and `NOT EXISTS`, each step one batch of both sides."""
    lake = new_lake(REGULAR)
    for number, (left, right, expected) in enumerate(AT_ONCE, 1):
        change(lake, "this", "id", left)
        change(lake, "other", "no", right)
        lake.advance()
        for how in ("right", "full", "semi", "anti"):
            found = sorted("".join(v or "-" for v in row.values()) for row in lake.rows(f"{how}_"))
            assert found == expected.get(how, []), f"step {number}, {how}"
    assert not any(repeated(lake.feed(f"{how}_")) for how in ("right", "full", "semi", "anti"))


def change(lake: Lake, side: str, key: str, rows: Side) -> None:
    come = [{**row, key: own} for own, row in rows.items() if row]
    lake.put(side, *come, gone=[{key: own} for own, row in rows.items() if not row])
