"""An absent row is explained by what plain Python finds: a condition, a rank, a source's reason."""

from typing import Any

import pytest
from tests.cli.previewed import PIPELINE
from tests.operate.lineage.truth import MORE, Repeating, Truth, stored

import sluice
from sluice.operate.why_not import AbsenceReason
from sluice.read.lake import Lake

VIEWS = """
  matched: {kind: lookup, from: flights, select: {flight: flight, name: carriers.name},
    join: [{dimension: carriers, on: carrier = carriers.code}]}
  busy: {kind: cogroup, key: [carrier], having: n > 2, streams: {f: {from: flights,
    where: delay > 3, aggregates: {n: count(*)}}}}
  worded: {kind: select, from: flights, where: delay > 5, select: {flight: flight, having: delay,
    where: carrier}}
  brief: {kind: window_store, from: flights, key: [carrier], time: at, retention: 1 hour}
  hours: {kind: cogroup, key: [carrier], window: {type: tumbling, time: at, size: 1 hour},
    retention: 1 hour, streams: {f: {from: flights, aggregates: {n: count(*)}}}}
"""
Found = set[tuple[str, str]]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Repeating:
    """Several runs of random deliveries, through a table of every kind."""
    return Repeating.of_runs(4, tmp_path_factory.mktemp("absent"), 11, PIPELINE + MORE + VIEWS)


@pytest.fixture(scope="module")
def lake(world: Repeating) -> Lake:
    return sluice.open(world.project.folder / "config")


@pytest.fixture(scope="module")
def truth(lake: Lake) -> Truth:
    return Truth(lake)


def asked(lake: Lake, name: str, *key: Any, **named: Any) -> tuple[AbsenceReason, ...]:
    found = lake.why_not(name, *key, **named)
    assert found is not None, (name, key, named)
    return tuple(found.reasons)


def told(reasons: tuple[AbsenceReason, ...]) -> Found:
    return {(one.table.removeprefix("trips."), one.why) for one in reasons}


def versions(lake: Lake, name: str) -> list[list[dict[str, Any]]]:
    table = lake.project.graph.table(name)
    every = range(lake.stored(table).version + 1)
    return [[dict(row) for row in lake.stored(table, v).read()] for v in every]


def undelivered(world: Repeating, lake: Lake, **values: Any) -> Found:
    """Why the source lacks rows with these values."""
    landed = [row for rows in world.flights.values() for row in rows]
    alike = [row for row in landed if values.items() <= row.items()]
    if any(row["delay"] < 0 for row in alike):
        return {("flights", "quarantined")}
    was = any(values.items() <= row.items() for rows in versions(lake, "flights") for row in rows)
    return {("flights", "withdrawn" if was else "never delivered")}


def absent(world: Repeating, lake: Lake, view: str) -> list[int]:
    """Flights of which the view has no row."""
    return sorted({*range(1, world.next + 2)} - {row["flight"] for row in stored(lake, view)})


@pytest.mark.parametrize(
    "view", ["late", "worded", "steps", "pairs", "matched", "windy", "calm", "flights"]
)
def test_reasons_are_those_of_plain_python(
    world: Repeating, lake: Lake, truth: Truth, view: str
) -> None:
    met = set[str]()
    for flight in absent(world, lake, view):
        row = truth.flights.get(flight)
        expected = (
            kept_out(lake, truth, view, row) if row else undelivered(world, lake, flight=flight)
        )
        found = told(asked(lake, view, flight))
        assert found == expected, (flight, row)
        met |= {why for _, why in found}
    assert met & {"quarantined", "withdrawn", "never delivered"}


def kept_out(lake: Lake, truth: Truth, view: str, row: dict[str, Any]) -> Found:
    """Why a delivered flight is not in the view."""
    if row["delay"] <= 5 and view != "matched":
        return {("worded" if view == "worded" else "late", "filtered")}
    if view == "matched":
        return {("matched", "no match"), ("carriers", "never delivered")}
    if view == "calm":
        return {("calm", "excluded")}
    assert view == "windy"
    alike = [w for w in truth.weather if w["wind"] == row["delay"]]
    if alike:
        return {("windy", "filtered")}
    was = any(w["wind"] == row["delay"] for rows in versions(lake, "weather") for w in rows)
    return {("windy", "no match"), ("weather", "withdrawn" if was else "never delivered")}


def test_rows_behind_the_last_rank_are_outranked(lake: Lake, truth: Truth) -> None:
    shown, some = stored(lake, "worst"), 0
    there = {(row["name"], row["flight"]) for row in shown}
    for row in stored(lake, "named"):
        if (row["name"], row["flight"]) in there or row["name"] is None:
            continue
        reasons = asked(lake, "worst", row["name"], row["flight"])
        assert told(reasons) == {("worst", "outranked")}
        ((lost, others),) = [(one.rows, one.others) for one in reasons]
        assert lost.column("flight").to_pylist() == [row["flight"]]
        of_name = {r["rank"]: r["flight"] for r in shown if r["name"] == row["name"]}
        assert others.column("rank").to_pylist() == sorted(of_name), "the first rank first"
        assert others.column("flight").to_pylist() == [of_name[rank] for rank in sorted(of_name)]
        some += 1
    assert some


def test_groups_are_kept_out_by_their_condition(world: Repeating, lake: Lake, truth: Truth) -> None:
    there = {row["carrier"] for row in stored(lake, "busy")}
    for carrier in sorted({*"ABDZ"} - there):
        rows = [row for row in truth.flights.values() if row["carrier"] == carrier]
        expected = undelivered(world, lake, carrier=carrier)
        if rows:
            expected = {("busy", "filtered")}
        reasons = asked(lake, "busy", carrier)
        assert told(reasons) == expected
        if rows:
            met = any(row["delay"] > 3 for row in rows)
            wanted = "having: n > 2" if met else "streams.f.where: delay > 3"
            assert [one.what for one in reasons] == [wanted]
    assert "Z" not in there


def test_expired_and_unknown_rows_are_named(world: Repeating, lake: Lake, truth: Truth) -> None:
    for view in ("brief", "hours"):
        visible = {(r["carrier"], r["window_start"]) for r in lake.table(view).read()}
        expired = {(r["carrier"], r["at"]) for r in truth.flights.values()} - visible
        assert expired
        for carrier, at in expired:
            named = {"partition": {"carrier": carrier, "window_start": at}}
            assert told(asked(lake, view, **named)) == {(view, "expired")}
    at = next(iter(expired))[1]
    assert told(asked(lake, "brief", next(iter(expired))[0], time=at)) == {("brief", "expired")}
    never = "never delivered"
    assert told(asked(lake, "both", partition={"n": 99})) == {
        ("flights", never),
        ("weather", never),
    }
    for view in ("delays", "chained"):
        assert told(asked(lake, view, "Z 9")) == {("carriers", never)}
    assert told(asked(lake, "known", partition={"carrier": "Z"})) == {("flights", never)}


def test_a_query_in_sql_is_explained_by_its_own_parts(lake: Lake, truth: Truth) -> None:
    there = {row["flight"] for row in stored(lake, "first")}
    for flight in truth.flights.keys() - there:
        (one,) = asked(lake, "first", partition={"flight": flight})
        assert (one.table, one.why) in {("trips.first", "outranked"), ("trips.first", "filtered")}


def test_a_rank_behind_the_last_one_and_a_row_that_is_there(world: Repeating, lake: Lake) -> None:
    (row, *_) = (r for r in stored(lake, "worst") if r["name"])
    assert lake.why_not("worst", row["name"], row["flight"]) is None
    (*_, last) = asked(lake, "worst", partition={"name": row["name"]}, rank=9)
    assert last.why == "no such value"
    assert "this partition has" in last.what
    named = ("--key", f"flight={row['flight']}", "--key", f"name={row['name']}")
    for key in ((row["name"], str(row["flight"])), named):
        ended = world.project.sluice("why-not", "worst", *key)
        assert (ended.code, "worst has that row" in ended.err) == (1, True)


def test_a_view_behind_its_source_is_named(world: Repeating) -> None:
    world.project.land("flights", 4, [*world.flights[4], {**world.flights[4][0], "flight": 900}])
    interval = ("--start", "2024-01-04", "--end", "2024-01-05")
    world.project.complete("ingest", "flights", *interval)
    lake = sluice.open(world.project.folder / "config")
    if lake.table("flights").get(900):
        ended = world.project.sluice("why-not", "named", "900", "--json")
        ((reason,),) = [record["reasons"] for record in ended.records]
        assert (reason["table"], reason["why"]) == ("trips.flights", "not reflected yet")


def test_people_and_programs_see_the_reason(world: Repeating, lake: Lake, truth: Truth) -> None:
    flight = next(f for f, row in truth.flights.items() if row["delay"] <= 5)
    shown = world.project.complete("why-not", "pairs", str(flight))
    assert "trips.late: filtered, where: delay > 5" in shown.out
    record = world.project.sluice("why-not", "late", str(flight), "--json").records[0]
    (reason,) = record["reasons"]
    assert reason["rows"] == [{"flight": flight, "delay": truth.flights[flight]["delay"]}]
    for arguments, words in (
        (("late",), "no row is given"),
        (("late", "x"), "'x' is not a value of column 'flight' (INT)"),
        (("late", "--partition", "nothing=1"), "nothing"),
        (("both", "1"), "hint: name them by any of their columns: --partition COLUMN=VALUE"),
        (("hours", "2017-01-31"), "1 value doesn't fit it"),
        (("worst", "--rank", "1"), "is named by its key, or by --partition name=VALUE --rank N"),
    ):
        ended = world.project.sluice("why-not", *arguments)
        assert (ended.code, words in ended.err) == (2, True), (arguments, ended.err)
