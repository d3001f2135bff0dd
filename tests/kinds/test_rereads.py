"""Rows that a batch reads besides its feeds: a plan counts them for each kind, or bounds them.

A batch that this process computes with a limit as low as the count reads no more rows than that.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from tests.support.lake import Lake, NewLake, Row

from sluice.engine.engine_choice import Bound, RowsRead
from sluice.engine.next_batch import NextBatch
from sluice.operate.explain import explain

DECLARED = """
sources:
  sales: {path: "s/{interval_start:%Y}/", schema: "id INT, g INT, v INT, at TIMESTAMP", key: [id]}
  notes: {path: "n/{interval_start:%Y}/", schema: "note INT, g INT", key: [note]}
dimensions:
  names: {path: d/, schema: "g INT, name STRING", key: [g]}
views:
"""
MANY, OTHERS, NAMES = 30, 10, 8
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
JOIN = "left: {table: sales, as: s}, right: {table: notes, as: n}, on: s.g = n.g"
OF_JOIN = "select: {id: s.id, v: s.v, note: n.note}"
LOOKUP = "kind: lookup, from: sales, join: [{dimension: names, on: g = names.g, type: left}]"
OF_LOOKUP = "select: {id: id, v: v, name: names.name}"
SUMMED = "kind: cogroup, key: [g], streams: {s: {from: sales, aggregates:"
IF_NEEDED = "if needed, up to"

Reads = Mapping[str, tuple[int | None, str]]


def sale(id_: int, g: int, v: int) -> Row:
    return {"id": id_, "g": g, "v": v, "at": NOON + timedelta(minutes=id_)}


@dataclass(frozen=True)
class Step:
    """A view, a change of a source, and what the view's first batch reads for it.

    `enough`: the rows that this process must take for the batch; None if that is never in doubt.
    """

    view: str
    reads: Reads
    rows: tuple[Row, ...] = (sale(1, 1, 50),)
    source: str = "sales"
    enough: int | None = None
    limits: Mapping[str, float] = field(default_factory=dict)


RANKED = "kind: topk, from: sales, partition_by: [g], order_by: [v desc], limit: 20, headroom: 5"
STEPS = {
    "a ranking, of which rows are added": Step(
        RANKED, {"seen__state": (25, "exact")}, (sale(200, 1, 50),), enough=25
    ),
    "a ranking, of which rows change": Step(
        RANKED,
        {"seen__state": (25, "exact"), "sales": (MANY, IF_NEEDED)},
        enough=25,
    ),
    "a ranking, with a row that is too low": Step(
        RANKED, {"seen__state": (0, "exact")}, (sale(200, 1, -1),)
    ),
    "a ranking of all rows": Step(
        RANKED.replace("partition_by: [g], ", ""),
        {"seen__state": (25, "exact")},
        (sale(200, 1, 50),),
        enough=25,
    ),
    "a ranking, compared whole": Step(
        f"{RANKED}, strategy: full",
        {"sales": (MANY + OTHERS, "exact"), "seen__state": (25 + OTHERS, "exact")},
        enough=MANY + OTHERS,
    ),
    "sums": Step(f"{SUMMED} {{total: sum(v)}}}}}}", {"seen__state": (1, "up to")}),
    "sums of two groups": Step(
        f"{SUMMED} {{total: sum(v)}}}}}}",
        {"seen__state": (2, "up to")},
        (sale(1, 1, 50), sale(101, 2, 9)),
    ),
    "extremes, of which rows are added": Step(
        f"{SUMMED} {{most: max(v)}}}}}}", {"seen__state": (1, "up to")}, (sale(200, 1, 5),)
    ),
    "extremes, of which rows change": Step(
        f"{SUMMED} {{most: max(v)}}}}}}",
        {"seen__state": (1, "up to"), "sales": (MANY, IF_NEEDED)},
    ),
    "sessions": Step(
        f"{SUMMED} {{total: sum(v)}}}}}}, window: {{type: session, time: at, gap: 1 hour}}",
        {"sales": (MANY, "exact"), "seen__state": (1, "exact")},
        enough=MANY,
    ),
    "one side of a join": Step(
        f"kind: join, {JOIN}, {OF_JOIN}",
        {"notes": (NAMES, "exact")},
        enough=NAMES,
    ),
    "the other side of a join": Step(
        f"kind: join, {JOIN}, {OF_JOIN}",
        {"sales": (MANY, "exact")},
        ({"note": 50, "g": 1},),
        source="notes",
        enough=MANY,
    ),
    "both sides of a join": Step(
        f"kind: join, type: full, {JOIN}, {OF_JOIN}",
        {
            "sales": (MANY, "exact"),
            "notes": (NAMES, "exact"),
            "seen": (MANY * NAMES, "exact"),
        },
        enough=MANY * NAMES,
    ),
    "looked-up rows of new facts": Step(
        f"{LOOKUP}, {OF_LOOKUP}", {"names": (1, "up to")}, (sale(200, 1, 5),)
    ),
    "looked-up rows of changed facts": Step(
        f"{LOOKUP}, {OF_LOOKUP}", {"names": (1, "up to"), "seen": (1, "up to")}
    ),
    "facts of a changed dimension": Step(
        f"{LOOKUP}, {OF_LOOKUP}, refresh: true",
        {
            "names": (NAMES, "up to"),
            "seen": (MANY + OTHERS, "up to"),
            "sales": (MANY, "exact"),
        },
        ({"g": 1, "name": "new"},),
        source="names",
        enough=MANY,
    ),
    "facts of a dimension of which a fifth has changed": Step(
        f"{LOOKUP}, {OF_LOOKUP}, refresh: true",
        {
            "names": (NAMES, "up to"),
            "seen": (MANY + OTHERS, "up to"),
            "sales": (MANY, "exact"),
        },
        tuple({"g": g, "name": "new"} for g in (1, *range(3, 2 + NAMES // 5))),
        source="names",
        enough=MANY,
    ),
    "facts of a dimension that has mostly changed": Step(
        f"{LOOKUP}, {OF_LOOKUP}, refresh: true",
        {
            "names": (NAMES, "up to"),
            "seen": (MANY + OTHERS, "up to"),
            "sales": (MANY + OTHERS, "up to"),
        },
        tuple({"g": g, "name": "new"} for g in range(NAMES)),
        source="names",
    ),
    "the last row of each time": Step(
        "kind: window_store, from: sales, key: [g], time: at",
        {"sales": (1, "exact"), "seen": (1, "exact")},
    ),
    "the last row of each time, which may expire": Step(
        "kind: window_store, from: sales, key: [g], time: at, retention: 1 day",
        {"sales": (MANY + OTHERS, "up to"), "seen": (MANY + OTHERS, "up to")},
    ),
    "rows that may expire": Step(
        "kind: window_store, from: sales, key: [g], time: at, duplicates: true, retention: 1 day",
        {"seen": (MANY + OTHERS, IF_NEEDED)},
    ),
}


def filled(new_lake: NewLake, step: Step) -> Lake:
    """The step's view of two groups, before the change; all tables are large."""
    lake = new_lake(f"{DECLARED}  seen: {{{step.view}}}\n")
    lake.put("sales", *(sale(i, 1, i) for i in range(MANY)))
    lake.put("sales", *(sale(100 + i, 2, i) for i in range(OTHERS)))
    lake.put("notes", *({"note": i, "g": 1} for i in range(NAMES)))
    lake.put("names", *({"g": g, "name": str(g)} for g in range(NAMES)))
    lake.advance("seen")
    lake.limit(read_here_bytes=0)
    lake.put(step.source, *step.rows)
    return lake


def planned(lake: Lake) -> NextBatch:
    return explain(lake.project, lake.table("seen"))[0]


@pytest.mark.parametrize("step", [pytest.param(s, id=name) for name, s in STEPS.items()])
def test_a_plan_counts_what_the_batch_reads_again(new_lake: NewLake, step: Step) -> None:
    plan = planned(filled(new_lake, step))
    reads = {n.removeprefix("shop."): (r.rows, str(r.bound)) for n, r in plan.touched.items()}
    assert reads == step.reads
    assert plan.is_most is ("up to" in {bound for _, bound in reads.values()})


def test_a_plan_says_at_most_if_any_of_its_tables_is_bounded() -> None:
    exact, most = RowsRead(1, 1, 1), RowsRead(1, 1, 1, Bound.UP_TO)
    found = [
        NextBatch("t", "", touched={str(n): one for n, one in enumerate(some)})
        for some in ([], [exact], [exact, most], [most, most])
    ]
    assert [one.is_most for one in found] == [False, False, True, True]


IN_DOUBT = {name: step for name, step in STEPS.items() if step.enough}


@pytest.mark.parametrize("step", [pytest.param(s, id=name) for name, s in IN_DOUBT.items()])
def test_a_small_change_that_needs_many_rows_goes_to_spark(new_lake: NewLake, step: Step) -> None:
    assert step.enough
    lake = filled(new_lake, step).limit(reread_rows=step.enough - 1)
    plan, report = planned(lake), lake.advance("seen")[0]
    said = f"more than {step.enough - 1} rows of touched groups are read at once"
    assert (plan.engine, report.engine) == (f"spark: {said}", f"spark: {said}")
    assert report.outcome == "committed"
    assert said in plan.reason


@pytest.mark.parametrize("step", [pytest.param(s, id=name) for name, s in STEPS.items()])
def test_few_rows_of_large_tables_stay_in_the_process(new_lake: NewLake, step: Step) -> None:
    """A million further rows would change nothing: none of them is read."""
    lake = filled(new_lake, step)
    plan, report = planned(lake), lake.advance("seen")[0]
    assert (plan.engine, report.engine) == ("process", "process")
