"""`sluice forget` of rows of dimensions: no load brings them back, and lookups follow."""

import json
from pathlib import Path

import pytest
from tests.cli.forgetting import ANNA, BOB, EVE, PEOPLE, forgotten, places, rows
from tests.cli.trips import Here, Project

DIMENSIONS = """
pipeline: trips
schedule: "@daily"
start_date: 2024-01-01
dimensions:
  people:
    {path: landing/people/, format: json, schema: "id BIGINT, name STRING", key: [id]}
  dated:
    {path: landing/dated/, format: json, schema: "id BIGINT, name STRING, since TIMESTAMP",
     key: [id], history: true, valid_from: since}
  heard:
    {path: landing/heard/, format: json, schema: "id BIGINT, name STRING, seq INT, op STRING",
     key: [id], delivery: changes, sequence: [seq],
     change: {column: op, insert: [c], update: [u], delete: [d]}}
"""


def of_dimensions(project: Project, day: int, people: dict[int, str]) -> None:
    """Land a state of all dimensions: of a log only a file more."""
    shared = {"people": "a", "dated": "a", "heard": f"{day}"}
    for name, file in shared.items():
        folder = project.folder / "landing" / name
        folder.mkdir(parents=True, exist_ok=True)
        given = [
            {"id": i, "name": who, "since": f"2024-01-{day:02}T00:00:00Z", "seq": day, "op": "u"}
            for i, who in people.items()
        ]
        (folder / f"{file}.json").write_text("".join(f"{json.dumps(row)}\n" for row in given))


@pytest.mark.parametrize("name", ["people", "dated"])
def test_dimension_rows_are_forgotten_for_good(tmp_path: Path, name: str) -> None:
    stays_forgotten(Here(tmp_path), name)


def stays_forgotten(project: Project, name: str) -> None:
    """Load a dimension, forget one of its rows, and load what has it again."""
    project.declare(DIMENSIONS)
    for day in (1, 2):
        of_dimensions(project, day, {**PEOPLE, 5: f"somebody {day}"})
        project.complete("load", name)
    before = rows(project, name)[name]
    receipt = forgotten(project, name, "--key", "471004711")
    assert (receipt["elsewhere"], list(places(project, ANNA))) == ({}, [])
    assert rows(project, name)[name] == [row for row in before if ANNA not in row] != before
    for day in (3, 1):  # a log is then read whole, because a file of it has changed
        of_dimensions(project, day, {**PEOPLE, 5: f"nobody {day}"})
        project.complete("load", name)
        assert list(places(project, ANNA)) == []
    assert list(places(project, "nobody")) != []
    found = project.sluice("read", f"{name}__quarantine", "--json").records
    assert {row["reason"] for row in found} == {"the row's subject was forgotten"}
    assert project.sluice("doctor").out.startswith("nothing is wrong")


LOOKUPS = """
  named: {kind: lookup, from: visits, refresh: true, select: {id: id, name: people.name},
    join: [{dimension: people, on: id = people.id}]}
  called: {kind: lookup, from: visits, refresh: true, select: {id: id, name: callers.name},
    join: [{dimension: callers, on: id = callers.id}]}
"""
VISITS = """
  callers: {join: [{dimension: people}], select: {id: people.id, name: people.name}}
sources:
  visits:
    path: "landing/visits/{interval_start:%Y-%m-%d}/"
    format: json
    schema: id BIGINT, shop INT
views:
"""


def visited(project: Project, lookups: str) -> None:
    """Run a day of visits by people, whose names are looked up."""
    project.declare(DIMENSIONS.partition("  dated:")[0] + VISITS + lookups)
    of_dimensions(project, 1, PEOPLE)
    project.land("visits", 1, [{"id": i, "shop": 1} for i in PEOPLE])
    ran = project.sluice("run", "trips", "--start", "2024-01-01", "--end", "2024-01-02")
    assert (ran.code, len(list(places(project, ANNA)))) == (0, 6), ran.err


def test_lookups_follow_a_row_of_a_dimension_that_is_forgotten(tmp_path: Path) -> None:
    project = Here(tmp_path)
    visited(project, LOOKUPS)
    receipt = forgotten(project, "people", "--key", "471004711")
    assert receipt["elsewhere"] == {"trips.visits": 2}
    assert list(places(project, ANNA)) == []
    names = [row["name"] for row in project.sluice("read", "called", "--json").records]
    assert sorted(names) == [BOB, EVE]
    for key, why in ((471004711, "forgotten"), (471004714, "never delivered")):
        assert f"trips.people: {why}, " in project.sluice("why-not", "people", str(key)).out


def test_lookups_that_do_not_follow_are_rebuilt(tmp_path: Path, remote: str) -> None:
    project = Project(tmp_path / "lookups", remote)
    visited(project, LOOKUPS.replace("refresh: true, ", ""))
    forgotten(project, "people", "--key", "471004711")
    assert list(places(project, ANNA)) == []
    names = [row["name"] for row in project.sluice("read", "called", "--json").records]
    assert sorted(names) == [BOB, EVE]
    stays_forgotten(Project(tmp_path / "log", remote), "heard")


@pytest.mark.parametrize("place", ["noted:people", "committed:people", "redacted:people"])
def test_a_killed_forget_of_a_dimension_is_finished(tmp_path: Path, place: str) -> None:
    project = Here(tmp_path)
    visited(project, LOOKUPS)
    assert project.killed(place, "forget", "people", "--key", "471004711") == -9
    forgotten(project, "people", "--key", "471004711")
    assert list(places(project, ANNA)) == []
    assert sorted(json.loads(row)["name"] for row in rows(project, "people")["people"]) == [
        BOB,
        EVE,
    ]
