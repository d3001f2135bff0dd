"""Changed definitions: `plan` names what differs for all tables, `rebuild` takes all of them."""

import pytest
from tests.cli.redefined import CHANGED, FLIGHTS, PIPELINE
from tests.cli.trips import Project


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, remote: str) -> Project:
    """Two days, run by one definition; three of six tables have another one now."""
    project = Project(tmp_path_factory.mktemp("trips"), remote)
    project.declare(PIPELINE)
    for day in (1, 2):
        project.land("flights", day, FLIGHTS)
        project.land("weather", day, [{"station": 1, "wind": day}])
    project.complete("run", "trips")
    project.declare(CHANGED)
    return project


def test_a_plan_goes_on_for_all_tables_and_says_what_differs(project: Project) -> None:
    planned = project.complete("plan", "--json")
    steps = {step["table"].removeprefix("trips."): step for step in planned.records}
    others = {name: step["reason"] for name, step in steps.items() if step["next"] == "rebuild"}
    assert others.pop("flights").startswith("+ air_time; 2 delivered")
    assert others == {
        "delays__state": "+ sum",
        "delays": "+ sum",
        "worst__state": "limit 1 -> 2",
        "worst": "limit 1 -> 2",
    }
    assert {name: steps[name]["rows"] for name in ("flights", "delays__state", "worst__state")} == {
        "flights": 6,
        "delays__state": 6,
        "worst__state": 4,
    }
    assert all(steps[name]["bytes"] > 0 for name in others)
    current = ("weather__deliveries", "late", "gusts")
    assert {steps[name]["next"] for name in current} == {"nothing"}


def test_a_run_and_the_status_say_it_too(project: Project) -> None:
    ran = project.sluice("run", "trips", "--start", "2024-01-01", "--end", "2024-01-02")
    assert ran.code == 2
    assert "from the configuration's: + air_time\n" in ran.err
    assert "`sluice rebuild --changed` for every such table" in ran.err
    assert "built by another definition (limit 1 -> 2)" in project.sluice("status").out


def test_a_rebuild_takes_exactly_those_in_order_and_a_second_finds_none(project: Project) -> None:
    refused = [project.sluice("rebuild"), project.sluice("rebuild", "flights", "--changed")]
    assert [ended.code for ended in refused] == [2, 2]
    assert "name one TABLE, or give --changed" in refused[0].err
    rebuilt = project.complete("rebuild", "--changed", "--json")
    tables = [record["table"].removeprefix("trips.") for record in rebuilt.records]
    assert tables == ["flights", "delays__state", "delays", "worst__state", "worst"]
    assert (
        "every table was built by the configuration's" in project.sluice("rebuild", "--changed").out
    )
    steps = {step["table"]: step["next"] for step in project.sluice("plan", "--json").records}
    assert "rebuild" not in steps.values()
    project.complete("run", "trips")
    project.complete("verify")
    worst = project.sluice("read", "worst", "--json").records
    assert [row["delay"] for row in worst] == [9, 9]
    assert {r["sum"] for r in project.sluice("read", "delays", "--json").records} == {140, 160}


def test_a_table_that_no_declaration_names_any_more_is_listed(project: Project) -> None:
    project.declare("".join(line for line in CHANGED.splitlines(True) if "  gusts:" not in line))
    said, records = project.sluice("status"), project.sluice("status", "--json").records
    found, one = project.sluice("doctor", "--json"), project.sluice("doctor", "late", "--json")
    project.declare(CHANGED)
    assert said.out.splitlines()[-2:] == [
        "undeclared: trips.gusts, which no declaration names",
        "hint: declare it again, `sluice drop trips.gusts`, or `sluice rename trips.gusts NEW`",
    ]
    assert [r["table"] for r in records if r["kind"] == "undeclared"] == ["trips.gusts"]
    assert [(r["table"], r["name"]) for r in found.records] == [("trips.gusts", "undeclared")]
    assert (found.code, one.records) == (0, [])


def test_a_table_that_can_not_go_on_hides_no_other(project: Project) -> None:
    log = project.folder / "lake" / "trips" / "gusts__state" / "_delta_log"
    kept = {file: file.read_bytes() for file in log.glob("*.json")}
    for file in kept:
        file.unlink()
    planned = project.sluice("plan", "--json")
    for file, content in kept.items():
        file.write_bytes(content)
    steps = {step["table"]: step["next"] for step in planned.records}
    assert planned.code != 0
    assert planned.err.count("error: ") == 1
    assert steps["trips.gusts"] == "stopped"
    assert steps["trips.late"] not in ("stopped", "rebuild")
