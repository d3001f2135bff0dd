"""The rows that a row comes from are those that plain Python finds in what was delivered."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.cli.previewed import PIPELINE, World
from tests.cli.trips import Here
from tests.operate.lineage.truth import MORE, Repeating, Row, Sources, Truth, place, stored
from tests.support.games import seeds

from sluice.declare.registry import kinds
from sluice.delta.log.files import active_files
from sluice.delta.log.opened import open_version as opened_at
from sluice.delta.reading.local import read_where
from sluice.delta.reading.searching import SearchedVersion
from sluice.errors import UsageError
from sluice.operate.lineage import TracedRows, lineage
from sluice.read.commits import back_from
from sluice.read.lake import Lake, open_lake


def walked(lake: Lake, name: str, nth: int, **limits: int) -> list[TracedRows]:
    table, project = lake.project.graph.table(name), lake.project
    version = lake.stored(table).version
    rows = read_where(lake.uri(table), version).slice(nth, 1)
    limited = project.model_copy(update={"limits": replace(project.limits, **limits)})
    return lineage(limited, table, version, rows)


def rows_of(parts: list[TracedRows], name: str) -> list[Row]:
    return [row for part in parts if part.table == f"trips.{name}" for row in part.rows.to_pylist()]


def found(parts: list[TracedRows]) -> Sources:
    flights = {row["flight"] for row in rows_of(parts, "flights")}
    weather = {place(row) for row in rows_of(parts, "weather")}
    return flights, weather, {row["code"] for row in rows_of(parts, "carriers")}


@pytest.fixture(scope="module", params=seeds(1, deep=20))
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> World:
    """Several runs of random deliveries, through a table of every kind."""
    folder = tmp_path_factory.mktemp("lineage")
    return Repeating.of_runs(6, folder, request.param, PIPELINE + MORE)


@cache
def opened(world: World) -> Lake:
    return open_lake(world.project.folder / "config")


VIEWS = ("named", "worst", "pairs", "frozen", "late", "calm", "first", "delays", "chained", "known")
OTHERS = ("query", "steps", "latest", "trips", "hops", "windy", "maybe", "places")


@pytest.mark.parametrize("view", [*VIEWS, *OTHERS])
def test_a_row_comes_from_exactly_the_rows_that_plain_python_finds(world: World, view: str) -> None:
    lake = opened(world)
    truth, rows = Truth(lake), stored(lake, view)
    assert rows or view == "calm"
    for nth, row in enumerate(rows):
        parts = walked(lake, view, nth)
        expected = truth.sources(view, row)
        assert found(parts) == expected if view != "frozen" else found(parts)[0] == expected[0]
        counts = [part.rows.num_rows for part in parts if part.table == "trips.flights"]
        assert sum(counts) == len(expected[0]), (view, row)


LARGE = ("named", "worst", "pairs", "late", "calm", "first", "delays", "chained", "latest", "both")


@pytest.mark.parametrize("view", LARGE)
def test_large_tables_are_searched_for_the_same_rows(
    world: World, view: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, searched, pages = opened(world), set[str](), SearchedVersion.find_by_file

    def noted(self: SearchedVersion, *given: Any) -> Any:
        searched.add(self.uri)
        return pages(self, *given)

    monkeypatch.setattr(SearchedVersion, "find_by_file", noted)
    for nth in range(len(stored(lake, view))):
        whole, few = walked(lake, view, nth), walked(lake, view, nth, collected_bytes=800)
        assert [part.table for part in few] == [part.table for part in whole]
        for one, other in zip(few, whole, strict=True):
            assert sorted(map(repr, one.rows.to_pylist())) == sorted(
                map(repr, other.rows.to_pylist())
            )
    assert searched or view == "calm"


def test_every_kind_of_view_is_among_those_that_plain_python_checks(world: World) -> None:
    declared = opened(world).project.pipelines["trips"].views
    checked = {declared[view].KIND for view in (*VIEWS, *OTHERS, "both")}
    assert checked == {kind.name for kind in kinds("views")}


def test_a_lookup_that_keeps_its_dimension_rows_names_those_of_its_batch(world: World) -> None:
    lake, now = opened(world), set[Any]()
    for nth, row in enumerate(stored(lake, "frozen")):
        joined = rows_of(walked(lake, "frozen", nth), "carriers")
        assert [r["name"] for r in joined] == [n for n in [row["name"]] if n]
        now |= {row["name"] in Truth(lake).names.values() for r in joined}
    assert now == {True, False}


def test_each_row_of_a_union_comes_from_one_row_of_one_input(world: World) -> None:
    lake, met = opened(world), list[Any]()
    for nth, row in enumerate(stored(lake, "both")):
        parts = walked(lake, "both", nth)
        rows = rows_of(parts, row["which"])
        other = {"flights": "weather", "weather": "flights"}[row["which"]]
        assert not rows_of(parts, other)
        assert [r["delay" if row["which"] == "flights" else "wind"] for r in rows] == [row["n"]]
        met += [r["flight"] if row["which"] == "flights" else place(r) for r in rows]
    assert len(met) == len({*met}) == len(Truth(lake).flights) + len(Truth(lake).weather)


def test_a_source_row_comes_from_its_last_delivery(world: World) -> None:
    assert isinstance(world, Repeating)
    lake = opened(world)
    for nth, row in enumerate(stored(lake, "flights")):
        (delivered,) = rows_of(walked(lake, "flights", nth), "flights__deliveries")
        assert {name: delivered[name] for name in row} == row
        assert delivered["_sluice_interval"].day == world.day_of(row["flight"])
    assert not walked(lake, "weather", 0)


def files(uri: str, version: int | None = None) -> set[str]:
    return {*active_files(opened_at(uri, version))["path"].to_pylist()}


def test_versions_that_are_gone_and_tables_for_spark_are_named(world: World) -> None:
    lake = opened(world)
    table, project = lake.project.graph.table("late"), lake.project
    version = lake.stored(table).version
    small = project.model_copy(update={"limits": replace(project.limits, collected_bytes=1)})
    pairs = project.graph.table("pairs")
    row = read_where(lake.uri(pairs), lake.stored(pairs).version).slice(0, 1)
    said = r"a row of trips\.pairs comes from .* without Spark: trips\.carriers has 722 bytes"
    with pytest.raises(UsageError, match=said):
        lineage(small, pairs, lake.stored(pairs).version, row)
    flights = lake.uri(project.graph.table("flights"))
    kept = files(flights)
    made = {c.version: c.position for c in back_from(lake.uri(table), version) if c.changes_data}
    pins = {v: p.inputs["trips.flights"].version for v, p in made.items() if p}
    old, pinned = min((v, pin) for v, pin in pins.items() if files(flights, pin) - kept)
    gone = Path(flights, min(files(flights, pinned) - kept))
    gone.rename(f"{gone}.gone")
    flight = read_where(lake.uri(table), old).to_pylist()[0]["flight"]
    told = world.project.sluice("why", "late", str(flight), "--version", str(old))
    Path(f"{gone}.gone").rename(gone)
    assert told.code == 5
    assert f"version {pinned} of trips.flights can't be read any more" in told.err


def test_a_window_is_named_by_its_key_and_a_time_within(world: World) -> None:
    lake = opened(world)
    for row in stored(lake, "trips"):
        time = (row["window_start"] + (row["window_end"] - row["window_start"]) / 2).isoformat()
        named = ("--key", f"carrier={row['carrier']}", "--time", time)
        told = world.project.sluice("why", "trips", *named, "--rows", "0", "--json")
        assert told.records[0]["after"]["n"] == row["n"]
        end = (row["carrier"], "--time", row["window_end"].isoformat())
        assert world.project.sluice("why", "trips", *end).code == 1
    flight = stored(lake, "flights")[0]
    named = (flight["carrier"], "--time", flight["at"].isoformat())
    told = world.project.sluice("why", "hops", *named)
    assert (told.code, "3 rows of 'hops' match" in told.err) == (2, True), told.err


ODD = """
pipeline: trips
schedule: "@daily"
start_date: 2024-01-01
end_date: 2024-01-05
sources:
  weather:
    path: "landing/weather/{interval_start:%Y-%m-%d}/"
    format: json
    schema: station INT, wind INT
  moves:
    path: "landing/moves/{interval_start:%Y-%m-%d}/"
    format: json
    schema: "station INT, op STRING"
    change: {column: op, insert: [I], delete: [D]}
dimensions:
  places: {path: landing/places/, format: json, schema: "id INT, land STRING", key: [id]}
  lands: {path: landing/lands/, format: json, schema: "code STRING, name STRING", key: [code]}
  known: {join: [{dimension: places}, {dimension: lands, on: places.land = lands.code}],
    select: {id: places.id, name: lands.name}}
views:
  placed: {kind: lookup, from: weather, join: [{dimension: known, on: station = known.id}],
    select: {wind: wind, name: known.name}}
  counted: {kind: cogroup, key: [station], streams: {m: {from: moves, aggregates: {n: count(*)}}}}
  windy: {kind: select, from: weather, where: wind > 1}
"""


def land(project: Here, name: str, rows: list[Row]) -> None:
    folder = project.folder / "landing" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "a.json").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Here:
    """Changes without a key, and a view over dimensions."""
    project = Here(tmp_path_factory.mktemp("odd"))
    project.declare(ODD)
    land(project, "places", [{"id": n, "land": "AB"[n % 2]} for n in range(4)])
    land(project, "lands", [{"code": "A", "name": "Aa"}, {"code": "B", "name": "Bb"}])
    project.land("weather", 1, [{"station": n, "wind": n} for n in range(4)])
    project.land("moves", 1, [{"station": 1, "op": "I"}, {"station": 2, "op": "I"}])
    project.land("moves", 2, [{"station": 2, "op": "I"}, {"station": 2, "op": "D"}])
    project.complete("run", "trips")
    return project


def test_a_dimension_view_gives_its_rows(odd: Here) -> None:
    lake = open_lake(odd.folder / "config")
    rows = stored(lake, "placed")
    assert len(rows) == 4
    for nth, row in enumerate(rows):
        parts = walked(lake, "placed", nth)
        (known,) = rows_of(parts, "known")
        (weather,) = rows_of(parts, "weather")
        assert (weather["wind"], weather["station"]) == (row["wind"], known["id"])
        assert known["name"] == row["name"] == ("Aa", "Bb")[known["id"] % 2]
        assert [part.version for part in parts if part.table == "trips.known"] == [None]


def test_a_counted_row_comes_from_all_deliveries_that_equal_it(odd: Here) -> None:
    lake = open_lake(odd.folder / "config")
    for nth, row in enumerate(stored(lake, "counted")):
        parts = walked(lake, "counted", nth)
        delivered = rows_of(parts, "moves__deliveries")
        assert {r["station"] for r in delivered} == {row["station"]}
        assert len(delivered) == {1: 1, 2: 3}[row["station"]]


def test_a_changed_definition_is_named_and_a_renamed_input_is_followed(odd: Here) -> None:
    lake = open_lake(odd.folder / "config")
    views = ("windy", "placed", "counted")
    before = [walked(lake, view, 0) for view in views]
    odd.declare(ODD.replace("wind > 1", "wind > 2"))
    with pytest.raises(UsageError, match=r"trips\.windy was made by another definition"):
        walked(open_lake(odd.folder / "config"), "windy", 0)
    text = ODD
    for old, new in (("weather", "climate"), ("moves", "steps")):
        text = text.replace(f"{old}:", f"{new}:").replace(f"from: {old}", f"from: {new}")
        odd.declare(text)
        odd.complete("rename", old, new)
    after = open_lake(odd.folder / "config")
    for parts, now in zip(before, [walked(after, view, 0) for view in views], strict=True):
        names = [p.table.replace("weather", "climate").replace("moves", "steps") for p in parts]
        assert [part.table for part in now] == names
        assert [part.rows for part in now] == [part.rows for part in parts]
