"""`plan --against` names what a changed configuration would do to tables made by another one."""

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cli.previewed import digest, done, foreseen
from tests.cli.redefined import CHANGED, FLIGHTS, PIPELINE
from tests.cli.trips import Ended, Here

NEW = "  early: {kind: select, from: flights, where: delay < 3, select: {carrier: carrier}}\n"
ALL = {
    *("flights", "weather__deliveries", "weather", "delays__state", "delays", "late"),
    *("worst__state", "worst", "gusts__state", "gusts"),
}
REBUILT = {"flights", "delays__state", "delays", "worst__state", "worst"}


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(folder), *who, *arguments], capture_output=True, check=True)


@pytest.fixture
def project(tmp_path: Path) -> Here:
    """A repository whose only commit declares PIPELINE, below its root."""
    project = Here(tmp_path / "shop")
    project.declare(PIPELINE)
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    return project


def built(project: Here) -> None:
    for day in (1, 2):
        project.land("flights", day, FLIGHTS)
        project.land("weather", day, [{"station": 1, "wind": day}])
    project.complete("run", "trips")


def compared(ended: Ended) -> dict[str, tuple[str, str]]:
    assert ended.code == 0, ended.err
    records: list[dict[str, Any]] = ended.records
    return {r["table"].removeprefix("trips."): (r["next"], r["reason"]) for r in records}


def test_each_table_is_named_with_what_differs_and_what_it_follows(project: Here) -> None:
    project.declare(CHANGED)
    found = compared(project.sluice("plan", "--against", "main", "--json"))
    assert found.keys() == ALL
    assert {name for name, (way, _) in found.items() if way == "rebuild"} == REBUILT
    assert found["flights"] == ("rebuild", "+ air_time")
    assert found["delays"] == ("rebuild", "+ sum")
    assert found["worst"] == ("rebuild", "limit 1 -> 2")
    assert found["late"] == ("untouched", "follows trips.flights")
    assert found["gusts"] == found["weather"] == ("untouched", "")
    assert not (project.folder / "lake").exists()


def test_a_folder_says_the_same_as_a_revision_and_goes_before_it(
    project: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Here(tmp_path / "other")
    other.declare(PIPELINE)
    project.declare(CHANGED)
    by_folder = project.sluice("plan", "--against", str(other.folder / "config"), "--json")
    assert compared(by_folder) == compared(project.sluice("plan", "--against", "HEAD", "--json"))
    monkeypatch.chdir(other.folder)
    (other.folder / "config").rename(other.folder / "main")
    other_way = CHANGED.replace("limit: 2", "limit: 3")
    (other.folder / "main" / "pipelines" / "trips.yaml").write_text(other_way)
    found = compared(project.sluice("plan", "--against", "main", "--json"))
    assert found["worst"] == ("rebuild", "limit 3 -> 2")


def test_tables_come_and_go(project: Here) -> None:
    lines = PIPELINE.splitlines(True)
    project.declare("".join(line for line in lines if "  gusts:" not in line) + NEW)
    found = compared(project.sluice("plan", "--against", "main", "--json"))
    assert found["early"] == ("new", "")
    assert {name for name, (way, _) in found.items() if way == "gone"} == {"gusts__state", "gusts"}
    assert len(project.sluice("plan", "early", "--against", "main", "--json").records) == 1


def test_another_spelling_changes_nothing(project: Here) -> None:
    project.declare(PIPELINE.replace("delay > 3", "DELAY  >   3") + "# done\n")
    found = compared(project.sluice("plan", "--against", "main", "--json"))
    assert {*found.values()} == {("untouched", "")}


def test_what_the_lake_has_can_be_extended(project: Here) -> None:
    built(project)
    old, new = (
        "{n: count(*)}}}}\n  late",
        "{n: count(*)}}, l: {from: late, aggregates: {m: count(*)}}}}\n  late",
    )
    assert old in PIPELINE
    project.declare(PIPELINE.replace(old, new))
    before = digest(project)
    found = compared(project.sluice("plan", "--against", "main", "--json"))
    ways = {name: way for name, (way, _) in found.items() if way != "untouched"}
    assert ways == {"delays__state": "extend", "delays": "rebuild"}
    assert digest(project) == before


def test_a_preview_counts_what_the_rebuild_then_does(project: Here, remote: str) -> None:
    project = replace(project, remote=remote)
    built(project)
    project.declare(
        PIPELINE.replace("delay > 3", "delay > 1").replace("limit: 1", "limit: 2") + NEW
    )
    before = digest(project)
    told = project.sluice("plan", "--against", "main", "--preview", "--json")
    assert (told.code, digest(project)) == (0, before), told.err
    ended = [project.sluice("rebuild", "--changed", "--json")]
    ended.append(project.sluice("advance", "early", "--json"))
    assert [one.code for one in ended] == [0, 0]
    assert foreseen(told) == done(Ended(0, "".join(one.out for one in ended), ""))
    assert {r["table"] for r in told.records} == {"trips.late", "trips.worst", "trips.early"}


def test_people_see_the_tables_and_then_the_rows(project: Here, remote: str) -> None:
    project = replace(project, remote=remote)
    built(project)
    project.declare(PIPELINE.replace("delay > 3", "delay > 1"))
    told = project.complete("plan", "--against", "main", "--preview")
    first, _, then = told.out.partition("preview: nothing was committed")
    assert "follows trips.late" in first
    assert "\u2502 + \u2502" in then


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--against", "nowhere"), "'nowhere' is neither a folder nor a revision of"),
        (("--against", "--output=stolen"), "'--output=stolen' is neither a folder nor a revision"),
        (("--against", "main", "--sql", "SELECT 1"), "give either --sql or --against"),
        (("late", "--sql", "SELECT id FROM trips"), "give either --sql or a TABLE"),
        (("--sql", ""), "one SELECT is expected"),
        (("--preview",), "--preview of a plan goes with --against"),
    ],
)
def test_incomparable_is_named(project: Here, arguments: tuple[str, ...], said: str) -> None:
    ended = project.sluice("plan", *arguments)
    assert (ended.code, said in ended.err) == (2, True), ended.err
    assert not list(project.folder.rglob("stolen"))


def test_a_folder_outside_of_git_or_not_in_the_revision_is_named(
    project: Here, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside, later = Here(tmp_path_factory.mktemp("bare")), Here(tmp_path / "later")
    for other, said in ((outside, "is not in a git repository"), (later, "is not in 'main'")):
        other.declare(PIPELINE)
        ended = other.sluice("plan", "--against", "main")
        assert (ended.code, said in ended.err) == (2, True), ended.err


def test_mistakes_of_the_other_configuration_name_its_file(project: Here, tmp_path: Path) -> None:
    project.declare(PIPELINE.replace("limit: 1", "limit: -1"))
    git(tmp_path, "commit", "-qam", "broken")
    project.declare(PIPELINE)
    ended = project.sluice("plan", "--against", "main")
    assert ended.code == 2
    assert "main:shop/config/pipelines/trips.yaml:" in ended.err
