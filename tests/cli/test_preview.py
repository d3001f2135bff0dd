"""A preview counts what the run that follows does, shows rows that differ, and leaves nothing."""

import random
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.previewed import PIPELINE, World, digest, done, foreseen
from tests.cli.trips import Ended, Here, Project
from tests.support.games import in_depth, seeds

from sluice.delta.log.opened import exists
from sluice.read.lake import open_lake
from sluice.terminal.output import to_json


@pytest.fixture
def project(tmp_path: Path) -> Here:
    project = Here(tmp_path)
    project.declare(PIPELINE)
    return project


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


@pytest.mark.parametrize("seed", seeds(2, deep=20))
def test_previews_count_and_show_what_the_run_does(project: Here, seed: int) -> None:
    world = World(project, random.Random(seed))
    for _ in range(4 if in_depth() else 1):
        world.land()
        arguments = ("run", "trips", "--changed")
        before, was = digest(project), stored(project)
        told = project.complete(*arguments, "--preview", "--sample", "1000", "--json")
        assert digest(project) == before
        ran = project.complete(*arguments, "--json")
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
    project.complete("run", "trips")
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
    project.complete("ingest", "flights", *interval)
    told = project.sluice("advance", "named", "--preview", "--json")
    views = ("named", "delays", "worst", "pairs")
    assert {r["table"].partition(".")[2] for r in told.records} == {*views}
    assert foreseen(told).keys() < {f"trips.{view}" for view in (*views, "late")}


def test_people_see_counts_and_changed_rows_and_a_page_has_them_too(project: Here) -> None:
    landed(project)
    page = project.folder / "preview.html"
    told = project.complete("run", "trips", "--changed", "--preview", "--html", str(page))
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
    project.complete("run", "trips", *interval)
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


def test_killed_previews_are_removed_by_the_next(project: Here) -> None:
    landed(project)
    beside = project.folder / "lake" / "__preview"
    before = digest(project)
    for command in (("run", "trips", "--preview"), ("maintain", "carriers")):
        assert project.killed("committed:named", "run", "trips", "--changed", "--preview") == -9
        assert len(list(beside.iterdir())) == 1
        project.complete(*command)
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
    few, _, _ = PIPELINE.partition("  steps:")  # kinds that refresh, add up, rank and filter
    project.declare(few)
    world = World(project, random.Random(11))
    world.land()
    interval = ("--start", "2024-01-01", "--end", "2024-01-05")
    views = ("named", "late")
    for words in (("ingest", "flights", *interval), ("load", "carriers"), ("advance", *views)):
        project.complete(*words)
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
    assert len(done(ran)) == 7
