"""Every failure of a run is reported, and stays visible until a batch of its table succeeds."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.cli.trips import TRIPS, Ended, Here, Project, invoked

JANUARY = ("--start", "2024-01-01", "--end", "2024-01-04")
DELAYS = [{"carrier": "UA", "delay": 2}, {"carrier": "AA", "delay": 5}]
WINDS = [{"station": 1, "wind": 7}]
TEXTS = [{"station": 1, "wind": "strong"}] * 20


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, remote: str) -> Project:
    """Three days: of weather, the second has texts for numbers; of fuel nothing ever came."""
    project = Project(tmp_path_factory.mktemp("trips"), remote)
    project.declare(TRIPS)
    for day in (1, 2, 3):
        project.land("flights", day, DELAYS)
        project.land("weather", day, TEXTS if day == 2 else WINDS)
    project.land("flights", 3, [{"carrier": "UA", "delay": 0}])
    return project


@pytest.fixture(scope="module")
def ran(project: Project) -> Ended:
    return project.sluice("run", "trips", *JANUARY, "--json")


def outcomes(ran: Ended) -> Mapping[str, Any]:
    """The tables that a run did not bring up to date, as the records have them."""
    return {r["table"]: r for r in ran.records if r["outcome"] in ("failed", "skipped")}


def test_a_run_reports_every_table_that_failed_or_was_skipped(ran: Ended) -> None:
    found = outcomes(ran)
    assert {name: (r["outcome"], r["exit_code"], r["because"]) for name, r in found.items()} == {
        "trips.weather": ("failed", 4, []),
        "trips.fuel": ("failed", 3, []),
        "trips.shares": ("failed", 4, []),
        "trips.spent": ("skipped", 0, ["trips.fuel"]),
        "trips.best": ("skipped", 0, ["trips.shares"]),
    }
    assert ran.code == 4


def test_standard_error_has_an_error_and_a_hint_for_each_the_worst_first(ran: Ended) -> None:
    told = [line for line in ran.lines if line.startswith(("error: ", "hint: "))]
    assert [line.partition(" ")[0] for line in told] == ["error:", "hint:"] * 3
    assert told[4].startswith("error: trips.fuel: nothing was delivered at ")
    assert {line.partition(": ")[2].partition(":")[0] for line in told[:4:2]} == {
        "trips.weather",
        "trips.shares__state",
    }


def test_a_failing_source_cuts_off_no_other_and_names_what_it_lacks(ran: Ended) -> None:
    rows = {r["table"]: r["rows_in"] for r in ran.records if r["table"] == "trips.delays__state"}
    assert rows == {"trips.delays__state": 5}
    assert outcomes(ran)["trips.weather"]["undelivered"] == [
        ["2024-01-02T00:00:00+00:00", "2024-01-03T00:00:00+00:00"],
        ["2024-01-03T00:00:00+00:00", "2024-01-04T00:00:00+00:00"],
    ]
    assert len(outcomes(ran)["trips.fuel"]["undelivered"]) == 3


def test_views_follow_the_intervals_that_a_failing_source_has_kept(ran: Ended) -> None:
    done = {r["table"]: r for r in ran.records if r["outcome"] == "committed"}
    assert done["trips.gusts"]["inserted"] == 1


def failed(project: Project) -> dict[str, int]:
    """The tables whose last batch failed, and how, as `status` has them."""
    found = project.sluice("status", "--json").records
    return {r["table"]: r["failure"]["exit_code"] for r in found if r["failure"]}


def test_failures_stay_visible_until_a_batch_succeeds(project: Project, ran: Ended) -> None:
    assert ran.code == 4
    assert failed(project) == {"trips.weather": 4, "trips.fuel": 3, "trips.shares": 4}
    blocked = {r["table"]: r["blocked_by"] for r in project.sluice("status", "--json").records}
    assert {table: by for table, by in blocked.items() if by} == {
        "trips.spent": ["trips.fuel"],
        "trips.best": ["trips.shares"],
    }
    found = project.sluice("doctor", "weather")
    assert (found.code, "its last batch failed at " in found.out) == (5, True)
    told = project.sluice("status").out.splitlines()
    at = next(n for n, line in enumerate(told) if line.startswith("failed: trips.weather at "))
    assert "(exit code 4): trips.weather: column wind: not one of 20 values" in told[at]
    assert told[at + 1].startswith("hint: nothing was committed; fix the delivery")
    report = (project.folder / "lake" / "__quality" / "report" / "index.html").read_text("utf-8")
    words = " ".join(re.sub("<[^>]*>", " ", report).split())
    assert "3 tables stopped at their newest batch" in words
    assert "column wind: not one of 20 values" in report
    refused = project.sluice("advance", "shares", "best", "delays")
    assert (refused.code, "skipped: trips.best, because trips.shares failed" in refused.err) == (
        4,
        True,
    )
    project.land("weather", 2, WINDS)
    assert (
        project.sluice("ingest", "weather", "--start", "2024-01-02", "--end", "2024-01-03").code
        == 0
    )
    assert failed(project) == {"trips.fuel": 3, "trips.shares": 4}


def test_a_job_reports_and_keeps_failures_as_a_command_does(project: Project, ran: Ended) -> None:
    assert ran.code == 4
    project.land("weather", 3, TEXTS)
    tables = ("trips.weather", "trips.flights")
    job = project.job("ingest", *tables, *JANUARY, "--run-id", "r7")
    told = json.loads(job.out.splitlines()[-1])
    assert (job.code, told["exit_code"], told["failed"]) == (4, 4, ["trips.weather"])
    (failure,) = (r for r in told["reports"] if r["outcome"] == "failed")
    assert failure["undelivered"] == [["2024-01-03T00:00:00+00:00", "2024-01-04T00:00:00+00:00"]]
    assert {r["table"] for r in told["reports"]} == set(tables)
    (weather,) = project.sluice("status", "weather", "--json").records
    assert (weather["failure"]["run"], weather["failure"]["exit_code"]) == ("r7", 4)


def test_missing_landing_folders_empty_no_day(project: Project, ran: Ended) -> None:
    assert ran.code == 4
    first = ("--start", "2024-01-01", "--end", "2024-01-02")
    (project.folder / "landing").rename(project.folder / "unmounted")
    stopped = project.sluice("ingest", "flights", *first)
    assert stopped.code == 4
    assert "[2024-01-01, 2024-01-02) has 2 rows, and no file at" in stopped.err
    allowed = project.sluice("ingest", "flights", *first, "--allow-empty", "--json")
    assert (allowed.code, [r["deleted"] for r in allowed.records]) == (0, [2])


RULE = """\
    expect:
      - {type: expect_column_values_to_be_between, column: delay, min_value: 0,
         row_condition: "60 / delay > 1", on_failure: warn}
"""
RULED = TRIPS.partition("views:")[0].replace("    schema:", f"{RULE}    schema:", 1)
BY_ZERO = (
    "'60 / delay': Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL "
    "instead."
)


@pytest.mark.parametrize(
    ("pipeline", "table"),
    [(TRIPS, "trips.shares__state"), (RULED, "trips.flights")],
    ids=["in a view", "in an expectation of a source"],
)
def test_a_division_by_zero_ends_with_the_same_code_and_its_place_without_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pipeline: str, table: str
) -> None:
    monkeypatch.setattr("sluice.extras.is_installed", lambda extra: extra != "spark")
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    project = Here(tmp_path)
    project.declare(pipeline)
    project.land("flights", 1, [{"carrier": "UA", "delay": 0}])
    words = ["--config", str(tmp_path / "config")]
    stopped = invoked(["ingest", "flights", *JANUARY[:3], "2024-01-02", *words])
    if pipeline == TRIPS:
        assert stopped.code == 0
        stopped = invoked(["advance", "shares", *words])
    assert (stopped.code, f"error: {table}: {BY_ZERO}" in stopped.lines) == (4, True), stopped.lines


def test_a_warning_of_an_expectation_names_the_interval(tmp_path: Path) -> None:
    project = Here(tmp_path)
    project.declare(RULED.replace('row_condition: "60 / delay > 1", ', ""))
    project.land("flights", 1, [{"carrier": "UA", "delay": 0}, {"carrier": "UA", "delay": -1}])
    ran = project.complete("ingest", "flights", *JANUARY[:3], "2024-01-02")
    named = "warning: trips.flights [2024-01-01, 2024-01-02): expected that delay is at least 0"
    assert named in ran.out + ran.err
