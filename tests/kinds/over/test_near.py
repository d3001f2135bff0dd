"""Batches that read only the rows that frames reach, against DuckDB's recompute."""

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from tests.support.games import SEED, seeds
from tests.support.lake import Lake, NewLake, Row, counted

from sluice.delta.reading.searching import SearchedVersion
from sluice.engine.plan import nodes_of
from sluice.kinds.over import operator
from sluice.kinds.over.operator import OverRows
from sluice.operate.explain import explain

SOURCE = """
sources:
  prices:
    path: "p/{interval_start:%Y}/"
    key: [id]
    schema: "id INT, g STRING, n INT, big BIGINT, day DATE, moment TIMESTAMP, price DECIMAL(8,2),
      share DOUBLE, w STRING, up BOOLEAN"
views:
"""
SCHEMA = pa.schema(
    {
        "id": pa.int32(),
        "g": pa.string(),
        "n": pa.int32(),
        "big": pa.int64(),
        "day": pa.date32(),
        "moment": pa.timestamp("us"),
        "price": pa.decimal128(8, 2),
        "share": pa.float64(),
        "w": pa.string(),
        "up": pa.bool_(),
    }
)
STEPS, CHANGES = 4, 4
DISTANCES = {
    "n": ("1", "2"),
    "big": ("3", "40"),
    "day": ("INTERVAL '2' DAY", "INTERVAL '9' DAY"),
    "moment": ("INTERVAL '3' HOUR", "INTERVAL '20' HOUR"),
}
BY_PLACE = [
    "row_number() OVER w",
    "lag(w) OVER w",
    "lag(price, 3) OVER w",
    "lead(id, 2, -9) OVER w",
    "first_value(id) OVER w",
    "last_value(w) OVER w",
    "last_value(w IGNORE NULLS) OVER w",
    "count(w) OVER (w ROWS UNBOUNDED PRECEDING)",
    "count(*) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND 2 FOLLOWING)",
    "sum(n) OVER (w ROWS UNBOUNDED PRECEDING)",
    "sum(price) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)",
    "min(w) OVER (w ROWS UNBOUNDED PRECEDING)",
    "max(price) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING)",
    "min(share) OVER (w ROWS UNBOUNDED PRECEDING)",
    "max(share) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING)",
    "bool_or(up) OVER (w ROWS UNBOUNDED PRECEDING)",
    "bool_and(up) OVER (w ROWS UNBOUNDED PRECEDING)",
    "sum(n) OVER (w ROWS BETWEEN 3 PRECEDING AND CURRENT ROW)",
    "max(share) OVER (w ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING)",
    "sum(share) OVER (w ROWS BETWEEN 5 PRECEDING AND 2 PRECEDING)",
    "count(up) OVER (w ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING)",
    "price - lag(price) OVER w",
]
BY_TIES = [
    "rank() OVER w",
    "dense_rank() OVER w",
    "sum(n) OVER w",
    "max(day) OVER w",
    "count(*) OVER w",
]
BY_RANGE = [
    "count(*) OVER (w RANGE BETWEEN {0} PRECEDING AND CURRENT ROW)",
    "sum(price) OVER (w RANGE BETWEEN {1} PRECEDING AND {0} FOLLOWING)",
    "min(w) OVER (w RANGE BETWEEN {1} PRECEDING AND {0} PRECEDING)",
    "sum(n) OVER (w RANGE BETWEEN UNBOUNDED PRECEDING AND {0} FOLLOWING)",
]
WHOLE = ["percent_rank() OVER w", "sum(n) OVER p", "sum(share) OVER (w ROWS UNBOUNDED PRECEDING)"]


@dataclass(frozen=True)
class View:
    """A declared over, and the same in SQL."""

    order: str
    where: str
    calls: tuple[str, ...]

    @classmethod
    def drawn(cls, chance: Random, nth: int) -> "View":
        """Some windows in some order; eight views in a row have all calls that fit any order."""
        column = chance.choice([*DISTANCES])
        order = (
            f"{column} {chance.choice(['asc', 'desc'])} nulls {chance.choice(['first', 'last'])}"
        )
        calls = [*BY_PLACE, *BY_TIES]
        Random(SEED).shuffle(calls)
        calls = [calls[(4 * nth + i) % len(calls)] for i in range(4)]
        if chance.random() < 0.3:
            order += ", w asc nulls first"
        else:
            calls.append(chance.choice(BY_RANGE).format(*DISTANCES[column]))
        calls += [chance.choice(WHOLE)] if chance.random() < 0.1 else []
        return cls(order, "id % 5 != 0" if chance.random() < 0.3 else "", tuple(calls))

    def declared(self, name: str) -> str:
        keys = ", ".join(f"'{key}'" for key in self.order.split(", "))
        calls = [c.replace(" IGNORE NULLS)", ") IGNORE NULLS") for c in self.calls]
        select = ", ".join(["id: id", "g: g", *(f'c{i}: "{c}"' for i, c in enumerate(calls))])
        where = f"where: '{self.where}', " if self.where else ""
        return (
            f"  {name}: {{kind: over, from: prices, partition_by: [g], order_by: [{keys}], "
            f"{where}select: {{{select}}}}}\n"
        )

    def rows(self, base: duckdb.DuckDBPyConnection) -> list[Row]:
        """The same by DuckDB: the key orders rows that tie, except where ties share a value."""
        shown = []
        for i, call in enumerate(self.calls):
            ties = call in (*BY_TIES, WHOLE[0]) or "RANGE" in call
            named = call.replace("OVER w", "OVER t").replace("(w ", "(t ") if ties else call
            shown.append(f"{named} AS c{i}")
        order = f"PARTITION BY g ORDER BY {self.order}"
        found = base.execute(
            f"SELECT id, g, {', '.join(shown)} FROM prices WHERE {self.where or 'true'} "
            f"WINDOW w AS ({order}, id), t AS ({order}), p AS (PARTITION BY g)"
        )
        columns = [column[0] for column in found.description]
        return [dict(zip(columns, row, strict=True)) for row in found.fetchall()]


def drawn_row(chance: Random, id_: int, latest: int) -> Row:
    """A row, mostly near the latest place; null now and then."""
    place = latest + chance.randint(0, 2) if chance.random() < 0.6 else chance.randint(0, latest)

    def maybe(value: Any, share: float = 0.1) -> Any:
        return None if chance.random() < share else value

    return {
        "id": id_,
        "g": maybe(chance.choice("abc"), 0.05),
        "n": maybe(place // 3),
        "big": maybe(place * chance.choice([1, 1, 1, 2**20])),
        "day": maybe(date(2024, 1, 1) + timedelta(days=place)),
        "moment": maybe(datetime(2024, 1, 1, tzinfo=UTC) + timedelta(hours=place)),
        "price": maybe(Decimal(chance.randint(-500, 500)).scaleb(-2)),
        "share": maybe(chance.choice([*(n / 4 for n in range(-8, 9)), math.nan, math.inf])),
        "w": maybe(chance.choice(["x", "y", "Y", ""]), 0.4),
        "up": maybe(chance.random() < 0.5, 0.4),
    }


def history(lake: Lake, chance: Random) -> Iterator[None]:
    """First rows, then batches of one to three commits: rows come, move, change and go."""
    put = {"id": 0}

    def new(count: int, latest: int) -> list[Row]:
        put["id"] += count
        return [drawn_row(chance, put["id"] - i, latest) for i in range(count)]

    lake.put("prices", *new(60, 40))
    yield
    for step in range(STEPS):
        for _ in range(chance.randint(1, 3)):
            known = list(lake.state["prices"].values())
            some = chance.sample(known, min(len(known), chance.randint(0, CHANGES)))
            gone = [row for row in some if chance.random() < 0.4]
            moved = [
                row | {c: v for c, v in drawn_row(chance, row["id"], 40).items() if c in few}
                for row in some
                if row not in gone
                for few in [{*chance.sample([*SCHEMA.names], 3)} | {"id"}]
            ]
            lake.put("prices", *new(chance.randint(0, CHANGES), 42 + 2 * step), *moved, gone=gone)
        yield


def database(lake: Lake) -> duckdb.DuckDBPyConnection:
    base = duckdb.connect()
    rows = [
        r | {"moment": r["moment"] and r["moment"].replace(tzinfo=None)}
        for r in lake.state["prices"].values()
    ]
    base.register("prices", pa.Table.from_pylist(rows, SCHEMA))
    return base


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of rows that batches have computed because frames reach them."""
    found, go_on = list[int](), OverRows.go_on

    def counted_rows(self: OverRows, rows: Any, current: Any) -> Any:
        found.append(rows.count())
        return go_on(self, rows, current)

    monkeypatch.setattr(OverRows, "go_on", counted_rows)
    return found


@pytest.mark.parametrize("seed", seeds(2, 200))
def test_rows_near_changes_equal_a_recompute(
    new_lake: NewLake, followed: list[int], monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    play(new_lake, followed, monkeypatch, seed)


@pytest.mark.usefixtures("real_spark")
@pytest.mark.parametrize("seed", seeds(1, 5))
def test_rows_near_changes_equal_a_recompute_by_spark(
    new_lake: NewLake, followed: list[int], monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    play(new_lake, followed, monkeypatch, seed, computed_here_bytes=-1)


def play(
    new_lake: NewLake,
    followed: list[int],
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    **limits: float,
) -> None:
    """Keep some views through a history, and compare them after each batch."""
    chance = Random(f"{SEED} {seed}")
    monkeypatch.setattr(operator, "LEAST_ROWS", 0)
    monkeypatch.setattr(operator, "ROOM", chance.choice([0, 0.3, 2]))
    views = {f"v{i}": View.drawn(chance, 4 * seed + i) for i in range(4)}
    lake = new_lake(SOURCE + "".join(view.declared(name) for name, view in views.items()))
    lake.limit(read_here_bytes=-1, **limits)
    for nth, _ in enumerate(history(lake, chance)):
        lake.advance()
        base = database(lake)
        for name, view in views.items():
            assert counted(lake.rows(name)) == counted(view.rows(base)), (nth, view)
    assert followed
    assert not [v for v in lake.verdicts() if not v.is_equal]


LONG = """
sources:
  prices:
    path: "p/{interval_start:%%Y}/"
    key: [g, n]
    schema: "g STRING, n INT, big BIGINT"
views:
  seen: {kind: over, from: prices, partition_by: [g], order_by: [%s], select: {g: g, n: n, %s}}
"""
WINDOWED = "c: sum(big) OVER (w ROWS 6 PRECEDING), d: n - lag(n) OVER w, e: lead(n) OVER w"
RUNNING = "c: sum(big) OVER w, d: row_number() OVER w, e: max(n) OVER w"


def ticks(g: str, *places: int) -> list[Row]:
    return [{"g": g, "n": n, "big": n * n} for n in places]


def filled(new_lake: NewLake, select: str, length: int, order: str = "n") -> Lake:
    """Three partitions of so many rows, in tables that count as large."""
    lake = new_lake(LONG % (order, select)).limit(read_here_bytes=-1)
    lake.put("prices", *(row for g in "abc" for row in ticks(g, *range(0, 2 * length, 2))))
    lake.advance()
    return lake


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of rows that searches have found."""
    counts, few = list[int](), SearchedVersion.find_at_most

    def counted_few(self: SearchedVersion, *given: Any) -> Any:
        rows = few(self, *given)
        counts.append(sys.maxsize if rows is None else rows.num_rows)
        return rows

    monkeypatch.setattr(SearchedVersion, "find_at_most", counted_few)
    return counts


@pytest.mark.parametrize("length", [200, 400])
@pytest.mark.parametrize(
    ("select", "read", "computed"), [(WINDOWED, 150, 45), (RUNNING, 30, 9)], ids=["frames", "runs"]
)
@pytest.mark.parametrize("order", ["n", "n desc"])
def test_a_row_at_the_end_costs_its_frames_whatever_came_before(
    new_lake: NewLake,
    found: list[int],
    followed: list[int],
    select: str,
    read: int,
    computed: int,
    order: str,
    length: int,
) -> None:
    lake = filled(new_lake, select, length, order)
    end = -2 if "desc" in order else 2 * length
    lake.put("prices", *(row for g in "abc" for row in ticks(g, end)))
    (report,) = lake.advance("seen")
    changed = 6 if "lead" in select else 3  # with the row before, whose next one it is
    assert (report.engine, report.rows_out) == ("process", changed)
    assert sum(found) <= read
    assert [n <= computed for n in followed] == [True]


def test_what_is_known_from_long_ago_goes_on(new_lake: NewLake, found: list[int]) -> None:
    calls = "c: last_value(big) IGNORE NULLS OVER w, d: first_value(n) OVER w, e: sum(big) OVER w"
    lake = filled(new_lake, calls, 200)
    lake.put("prices", *({"g": "d", "n": n, "big": None if n else 7} for n in range(200)))
    lake.advance("seen")
    found.clear()
    lake.put("prices", {"g": "d", "n": 300, "big": None})
    lake.advance("seen")
    (row,) = (row for row in lake.rows("seen") if row["n"] == 300 and row["g"] == "d")
    assert (row["c"], row["d"], row["e"]) == (7, 0, 7)
    assert sum(found) <= 500


def test_a_row_in_the_middle_alters_the_rows_that_reach_it(
    new_lake: NewLake, found: list[int]
) -> None:
    lake = filled(new_lake, WINDOWED, 400)
    lake.put("prices", *ticks("b", 401))
    (report,) = lake.advance("seen")
    assert report.rows_out == 8  # itself, one before and six after
    assert sum(found) <= 100


def test_early_rows_of_one_partition_do_not_widen_the_search_for_others(
    new_lake: NewLake, found: list[int]
) -> None:
    lake = filled(new_lake, RUNNING, 400)
    lake.put("prices", *ticks("a", 800), *ticks("b", 401), *ticks("c", 800))
    lake.advance("seen")
    *of_input, _ = found  # the last search is the view's, by key
    assert sum(of_input) <= 220


def test_partitions_with_wide_gaps_are_read_whole(
    new_lake: NewLake, found: list[int], followed: list[int]
) -> None:
    lake = filled(new_lake, WINDOWED, 400)
    lake.put("prices", *ticks("d", *range(0, 800, 100)))
    lake.advance("seen")
    found.clear()
    lake.put("prices", *ticks("d", 801))
    (report,) = lake.advance("seen")
    assert report.rows_out == 2
    assert 9 <= sum(found) <= 40


def test_values_at_the_ends_of_bigint_have_places(new_lake: NewLake, followed: list[int]) -> None:
    lake = filled(new_lake, "c: row_number() OVER w, d: lag(n) OVER w", 100, "big desc")
    ends = [{"g": "a", "n": 1_000 + i, "big": big} for i, big in enumerate((2**63 - 1, -(2**63)))]
    for row in ends:
        lake.put("prices", row)
        lake.advance("seen")
    rows = {row["n"]: row for row in lake.rows("seen") if row["g"] == "a"}
    assert (rows[1_000]["c"], rows[1_000]["d"], rows[1_001]["c"]) == (1, None, 102)


def test_changes_that_no_condition_admits_alter_nothing(
    new_lake: NewLake, followed: list[int]
) -> None:
    declared = LONG.replace("order_by", "where: n > 0, order_by") % ("n", RUNNING)
    lake = new_lake(declared).limit(read_here_bytes=-1)
    lake.put("prices", *ticks("a", *range(1, 200)))
    lake.advance("seen")
    lake.put("prices", *ticks("a", 0), *ticks("b", -1))
    (report,) = lake.advance("seen")
    assert (report.rows_out, followed) == (0, [0])


def test_partitions_may_lose_all_rows(new_lake: NewLake) -> None:
    lake = filled(new_lake, WINDOWED, 200)
    for g in "abc":
        lake.put("prices", gone=ticks(g, *range(0, 400, 2)))
        lake.advance("seen")
    assert lake.rows("seen") == []
    lake.put("prices", *ticks("a", 3))
    lake.advance("seen")
    assert [row["n"] for row in lake.rows("seen")] == [3]


REACHES: dict[str, tuple[tuple[int, int], tuple[int, int], bool] | None] = {
    "lag(n, 3) OVER w": ((3, 0), (0, 0), False),
    "lead(n) OVER w": ((0, 1), (0, 0), False),
    "sum(n) OVER (w ROWS BETWEEN 5 PRECEDING AND 2 FOLLOWING)": ((5, 2), (0, 0), False),
    "sum(n) OVER (w ROWS BETWEEN 5 PRECEDING AND 2 PRECEDING)": ((5, 0), (0, 0), False),
    "sum(n) OVER (w RANGE 4 PRECEDING)": ((0, 0), (4, 0), False),
    "row_number() OVER w": ((0, 0), (0, 0), True),
    "count(*) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING)": ((0, 1), (0, 0), True),
    "last_value(n) OVER w": ((0, 0), (0, 0), False),
    "last_value(n) IGNORE NULLS OVER w": ((0, 0), (0, 0), True),
    "n + row_number() OVER w": None,
    "avg(n) OVER w": None,
    "sum(CAST(n AS DOUBLE)) OVER (w ROWS UNBOUNDED PRECEDING)": None,
    "max(CAST(n AS DOUBLE)) OVER w": ((0, 0), (0, 0), True),
    "sum(CAST(n AS DECIMAL(30, 2))) OVER w": None,
    "lag(n) IGNORE NULLS OVER w": None,
    "ntile(4) OVER w": None,
    "cume_dist() OVER w": None,
    "nth_value(n, 2) OVER w": None,
    "last_value(n) OVER (w ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)": None,
    "sum(n) OVER p": None,
}


@pytest.mark.parametrize("call", REACHES)
def test_reach_is_that_of_the_frame(new_lake: NewLake, call: str) -> None:
    lake = new_lake(LONG % ("n", f'c: "{call}"'))
    (node,) = nodes_of(lake.table("seen"), lake.project.graph)
    assert isinstance(node.operator, OverRows)
    reach = node.operator.reach
    assert (reach and (reach.rows, reach.distances, bool(reach.runs))) == REACHES[call]


@pytest.mark.parametrize(
    ("order", "distance", "longest"),
    [
        ("day", "INTERVAL 2 WEEKS", 14),
        ("day", "INTERVAL 2 MONTHS", 62),
        ("day", "3", 3),
        ("moment", "INTERVAL 2 YEARS", 732 * 86_400_000_000),
        ("moment", "INTERVAL 90 SECONDS", 90_000_000),
    ],
)
def test_distances_in_time_are_the_longest_that_they_can_be(
    new_lake: NewLake, order: str, distance: str, longest: int
) -> None:
    view = View(f"{order} asc nulls first", "", (f"count(*) OVER (w RANGE {distance} PRECEDING)",))
    lake = new_lake(SOURCE + view.declared("seen"))
    (node,) = nodes_of(lake.table("seen"), lake.project.graph)
    assert isinstance(node.operator, OverRows)
    assert node.operator.reach
    assert node.operator.reach.distances == (longest, 0)


def test_a_plan_says_that_frames_are_followed(new_lake: NewLake) -> None:
    lake = filled(new_lake, RUNNING, 100)
    lake.put("prices", *ticks("a", 200))
    (plan,) = explain(lake.project, lake.table("seen"))
    assert "rows whose frames reach changed rows are computed" in plan.reason
    assert {str(read.bound) for read in plan.touched.values()} == {"if needed, up to"}
