"""A preview counts what the run that follows does, shows rows that differ, and leaves nothing."""

import hashlib
import json
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cli.trips import Ended, Here, Project
from tests.support.games import in_depth, seeds

from sluice.delta.log.opened import exists
from sluice.read.lake import open_lake
from sluice.terminal.output import to_json

COUNTS = ("rows_in", "inserted", "updated", "deleted", "quarantined", "expired")
DONE = ("committed", "position")
PIPELINE = """
pipeline: trips
schedule: "@daily"
start_date: 2024-01-01
end_date: 2024-01-05
sources:
  flights:
    path: "landing/flights/{interval_start:%Y-%m-%d}/"
    format: json
    schema: "flight INT, carrier STRING, delay INT, at TIMESTAMP"
    key: [flight]
    expect: [{type: expect_column_values_to_be_between, column: delay, min_value: 0,
      on_failure: quarantine}]
  weather:
    path: "landing/weather/{interval_start:%Y-%m-%d}/"
    format: json
    schema: station INT, wind INT
dimensions:
  carriers: {path: landing/carriers/, format: json, schema: "code STRING, name STRING", key: [code]}
views:
  named:
    kind: lookup
    from: flights
    join: [{dimension: carriers, on: carrier = carriers.code, type: left}]
    select: {flight: flight, name: carriers.name, delay: delay, at: at}
    refresh: true
  delays: {kind: cogroup, key: [name], streams: {f: {from: named, aggregates:
    {n: count(*), worst: max(delay), s: sum(delay)}}}}
  worst: {kind: topk, from: named, partition_by: [name], order_by: [delay desc], limit: 2}
  late: {kind: select, from: flights, where: delay > 5, select: {flight: flight, delay: delay}}
  steps: {kind: over, from: flights, partition_by: [carrier], order_by: [at],
    select: {flight: flight, was: lag(delay) OVER w}}
  both: {kind: union, from: [{table: flights, select: {n: delay}}, {table: weather,
    select: {n: wind}}], tag: which}
  pairs: {kind: join, left: late, right: {table: named, as: x}, on: late.flight = x.flight,
    select: {flight: late.flight, name: x.name}}
  latest: {kind: window_store, from: flights, key: [carrier], time: at, retention: 2 days}
  query: {kind: sql, sql: "SELECT carrier, count(*) AS n FROM flights GROUP BY carrier"}
"""


class World:
    """What was landed, and how it changes by chance."""

    def __init__(self, project: Here, chance: random.Random):
        self.project, self.chance = project, chance
        self.flights: dict[int, list[dict[str, Any]]] = {day: [] for day in range(1, 5)}
        self.next = 0

    def land(self) -> None:
        """Change one day of each source, and now and then the dimension."""
        day = self.chance.randint(1, 4)
        rows = self.flights[day]
        self.flights[day] = [self._changed(row) for row in rows if self.chance.random() > 0.2]
        self.flights[day] += [self._flight(day) for _ in range(self.chance.randint(1, 4))]
        self.project.land("flights", day, self.flights[day])
        winds = [{"station": n % 3, "wind": self.chance.randint(0, 9)} for n in range(4)]
        self.project.land("weather", day, winds[: self.chance.randint(1, 4)])
        self.carriers()

    def carriers(self) -> None:
        names = {code: f"{code} {self.chance.randint(0, 1)}" for code in "ABC"}
        folder = self.project.folder / "landing" / "carriers"
        folder.mkdir(parents=True, exist_ok=True)
        lines = (json.dumps({"code": code, "name": name}) for code, name in names.items())
        (folder / "a.json").write_text("\n".join(lines))

    def _flight(self, day: int) -> dict[str, Any]:
        self.next += 1
        at = f"2024-01-0{day}T{self.next % 24:02}:00:00Z"
        delay = self.chance.randint(-2, 12)
        return {"flight": self.next, "carrier": self.chance.choice("ABD"), "delay": delay, "at": at}

    def _changed(self, row: dict[str, Any]) -> dict[str, Any]:
        return row if self.chance.random() < 0.5 else {**row, "delay": self.chance.randint(-2, 12)}


@pytest.fixture
def project(tmp_path: Path) -> Here:
    project = Here(tmp_path)
    project.declare(PIPELINE)
    return project


def digest(project: Here) -> dict[str, str]:
    """Every file of the lake, by its content."""
    lake = project.folder / "lake"
    files = (path for path in lake.rglob("*") if path.is_file())
    return {str(f.relative_to(lake)): hashlib.sha256(f.read_bytes()).hexdigest() for f in files}


def done(ended: Ended) -> dict[str, tuple[int, ...]]:
    """What a run did to each table, as its summary counts it."""
    by_table: dict[str, list[dict[str, Any]]] = {}
    for record in ended.records:
        if record["outcome"] in DONE:
            by_table.setdefault(record["table"].partition("__")[0], []).append(record)
    return {table: counted(table, records) for table, records in by_table.items()}


def counted(table: str, records: list[dict[str, Any]]) -> tuple[int, ...]:
    visible = [r for r in records if r["table"] == table]
    read = [r["rows_in"] for r in records if r["table"] == records[0]["table"]]
    changed = (sum(r[name] for r in visible) for name in COUNTS[1:4])
    return sum(n or 0 for n in read), *changed, *(sum(r[n] for r in records) for n in COUNTS[4:])


def foreseen(ended: Ended) -> dict[str, tuple[int, ...]]:
    rows = [r for r in ended.records if r["outcome"] != "unchanged"]
    return {r["table"]: tuple(r[name] or 0 for name in COUNTS) for r in rows}


def stored(project: Here) -> dict[str, Counter[str]]:
    """The rows of every table, as they are stored."""
    lake = open_lake(project.folder / "config")
    tables = [t for t in lake.project.graph.tables.values() if exists(lake.uri(t))]
    return {t.id: Counter(to_json(dict(row)) for row in lake.stored(t).read()) for t in tables}


def sampled(ended: Ended, side: str) -> dict[str, Counter[str]]:
    """The rows before or after of each table's samples."""
    return {
        record["table"]: Counter(
            to_json(sample[side]) for sample in record["samples"] if sample[side]
        )
        for record in ended.records
    }


@pytest.mark.parametrize("seed", seeds(1, deep=20))
def test_a_preview_counts_and_shows_what_the_run_that_follows_does(
    project: Here, seed: int
) -> None:
    world = World(project, random.Random(seed))
    for _ in range(4 if in_depth() else 2):
        world.land()
        arguments = ("run", "trips", "--changed")
        before, was = digest(project), stored(project)
        told = project.sluice(*arguments, "--preview", "--sample", "1000", "--json")
        assert told.code == 0, told.err
        assert digest(project) == before
        ran = project.sluice(*arguments, "--json")
        assert ran.code == 0, ran.err
        assert foreseen(told) == done(ran)
        now = stored(project)
        gone, came = sampled(told, "before"), sampled(told, "after")
        for table, rows in now.items():
            earlier = was.get(table, Counter())
            assert gone.get(table, Counter()) == earlier - rows, table
            assert came.get(table, Counter()) == rows - earlier, table


def landed(project: Here) -> World:
    """A project after one run, and other files since."""
    world = World(project, random.Random(7))
    for _ in range(3):
        world.land()
    assert project.sluice("run", "trips").code == 0
    for _ in range(3):
        world.land()
    return world


FOLLOWED = ("named", "delays", "worst", "late", "steps", "both", "pairs", "latest", "query")
WAYS = [
    (("ingest", "flights", "--start", "2024-01-01", "--end", "2024-01-05"), FOLLOWED),
    (("load", "carriers"), ("named", "delays", "worst", "pairs")),
    (("rebuild", "late"), ("pairs",)),
]


@pytest.mark.parametrize(("command", "views"), WAYS, ids=lambda way: way[0])
def test_a_preview_of_one_step_goes_on_through_all_views_above(
    project: Here, remote: str, command: tuple[str, ...], views: tuple[str, ...]
) -> None:
    project = replace(project, remote=remote)
    landed(project)
    if command[0] == "rebuild":
        project.declare(PIPELINE.replace("delay > 5", "delay > 3"))
    before = digest(project)
    told = project.sluice(*command, "--preview", "--json")
    assert (told.code, digest(project)) == (0, before), told.err
    ended = [project.sluice(*command, "--json"), project.sluice("advance", *views, "--json")]
    assert [one.code for one in ended] == [0, 0], ended[1].err
    together = Ended(0, "".join(one.out for one in ended), "")
    assert foreseen(told) == done(together)
    assert all(len(record["samples"]) <= 3 for record in told.records)


def test_a_preview_of_advance_takes_only_what_is_new_below(project: Here) -> None:
    landed(project)
    interval = ("--start", "2024-01-01", "--end", "2024-01-05")
    assert project.sluice("ingest", "flights", *interval).code == 0
    told = project.sluice("advance", "named", "--preview", "--json")
    views = ("named", "delays", "worst", "pairs")
    assert {r["table"].partition(".")[2] for r in told.records} == {*views}
    assert foreseen(told).keys() < {f"trips.{view}" for view in (*views, "late")}


def test_people_see_counts_and_changed_rows_and_a_page_has_them_too(project: Here) -> None:
    landed(project)
    page = project.folder / "preview.html"
    told = project.sluice("run", "trips", "--changed", "--preview", "--html", str(page))
    assert told.code == 0, told.err
    assert told.out.startswith("preview: nothing was committed\n")
    assert "trips.worst" in told.out
    assert "│ + │" in told.out
    html = page.read_text()
    assert "Nothing of this was committed." in html
    assert "trips.worst" in html
    assert "<script" not in html


def test_a_preview_fails_as_the_run_would_and_keeps_no_failure(project: Here) -> None:
    landed(project)
    interval = ("--start", "2024-01-01", "--end", "2024-01-02")
    one = {"flight": 99, "carrier": "A", "delay": 1, "at": "2024-01-01T00:00:00Z"}
    folder = project.land("flights", 1, [one])
    assert project.sluice("run", "trips", *interval).code == 0
    shutil.rmtree(folder)
    before = digest(project)
    told = project.sluice("run", "trips", *interval, "--preview", "--json")
    assert digest(project) == before
    ran = project.sluice("run", "trips", *interval, "--json")
    assert (told.code, told.lines) == (ran.code, ran.lines)
    assert told.code == 4
    failed = {r["table"]: r["error"] for r in told.records if r["outcome"] == "failed"}
    assert list(failed) == ["trips.flights"]
    assert "__preview" not in told.out + told.err


def test_what_a_killed_preview_left_is_removed_by_the_next_and_by_maintenance(
    project: Here,
) -> None:
    landed(project)
    beside = project.folder / "lake" / "__preview"
    before = digest(project)
    for command in (("run", "trips", "--preview"), ("maintain", "carriers")):
        assert project.killed("committed:named", "run", "trips", "--changed", "--preview") == -9
        assert len(list(beside.iterdir())) == 1
        assert project.sluice(*command).code == 0
        assert not list(beside.iterdir())
    assert digest(project) == before


def test_options_of_a_preview_without_one_are_refused(project: Here) -> None:
    assert "go with --preview" in project.sluice("run", "trips", "--sample", "3").err


@pytest.fixture(autouse=True)
def _leaves_nothing(project: Here) -> Iterator[None]:
    yield
    beside = Path(project.folder, "lake", "__preview")
    assert not beside.exists() or not list(beside.iterdir())


def test_a_preview_by_spark_counts_the_same(project: Here, remote: str) -> None:
    """Of a lake that has some of the tables: they are brought up to date, the others built."""
    world = World(project, random.Random(11))
    world.land()
    interval = ("--start", "2024-01-01", "--end", "2024-01-05")
    views = ("named", "worst", "late")
    for words in (("ingest", "flights", *interval), ("load", "carriers"), ("advance", *views)):
        assert project.sluice(*words).code == 0
    by_spark = Project(project.folder, remote)
    settings = project.folder / "config" / "sluice.yaml"
    text = settings.read_text()
    settings.write_text(text.replace("spark: {", "spark: {small_batches: spark, commit: spark, "))
    world.land()
    before = digest(project)
    told = by_spark.sluice("run", "trips", "--changed", "--preview", "--json")
    assert (told.code, digest(project)) == (0, before), told.err
    ran = by_spark.sluice("run", "trips", "--changed", "--json")
    assert foreseen(told) == done(ran)
    assert len(done(ran)) == 12
