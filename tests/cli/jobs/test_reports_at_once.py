"""A delivery is reported though the step that follows it fails, whoever delivers, and however."""

import json
from pathlib import Path
from typing import Any, NoReturn

import pytest
from click.testing import CliRunner
from tests.cli.trips import Ended, Project, invoked

from sluice.cli.job import JOBS
from sluice.errors import ExitCode, UsageError
from sluice.sources import feeds

DECLARED = """
pipeline: trips
schedule: "@daily"
start_date: 2024-01-01
sources:
  rides:
    path: "landing/rides/{interval_start:%Y-%m-%d}/"
    format: json
    key: [id]
    schema: id INT, fare INT
    expect: [{type: expect_column_values_to_not_be_null, column: fare, on_failure: quarantine}]
  calls:
    delivery: stream
    path: landing/calls
    format: json
    key: [id]
    schema: id INT, fare INT
    expect: [{type: expect_column_values_to_not_be_null, column: fare, on_failure: quarantine}]
"""
DAYS = ("--start", "2024-01-01", "--end", "2024-01-03")
FIRST = ["2024-01-01T00:00:00+00:00", "2024-01-02T00:00:00+00:00"]
SECOND = ["2024-01-02T00:00:00+00:00", "2024-01-03T00:00:00+00:00"]


class Halting(Project):
    """A project whose sources can be kept from following their deliveries."""

    def halted(self, *arguments: str) -> Ended:
        """The command, in a process in which no source can be brought up to its deliveries."""
        return self._forked(halted, *arguments)

    def job_halted(self, *arguments: str) -> Ended:
        """The job that ingests, in such a process."""
        return self._forked(job_halted, *arguments)


def halted(arguments: list[str]) -> Ended:
    feeds.follow = _follow  # type: ignore[assignment]
    return invoked(arguments)


def job_halted(arguments: list[str]) -> Ended:
    feeds.follow = _follow  # type: ignore[assignment]
    done = CliRunner().invoke(JOBS["ingest"], arguments)
    return Ended(done.exit_code, done.stdout, done.stderr)


def _follow(*_: object) -> NoReturn:
    raise UsageError("it can't follow")


@pytest.fixture
def project(tmp_path: Path, remote: str) -> Halting:
    """Two days of rides, and calls that have arrived; each time a row has no fare."""
    project = Halting(tmp_path, remote)
    project.declare(DECLARED)
    for day in (1, 2):
        project.land("rides", day, [{"id": day, "fare": 5}, {"id": 7}])
    project.land("calls", 1, [{"id": 1, "fare": 5}, {"id": 7}])
    return project


def outcomes(reports: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(r["table"].partition(".")[2], r["outcome"]) for r in reports]


def only_delivered(name: str) -> list[tuple[str, str]]:
    return [(f"{name}__deliveries", "committed"), (name, "failed")]


def test_a_job_reports_the_delivered_day_and_names_the_undelivered_one(project: Halting) -> None:
    ended = project.job_halted("trips.rides", *DAYS)
    done = json.loads(ended.out.splitlines()[-1])
    delivered, failed = done["reports"]
    assert outcomes([delivered, failed]) == only_delivered("rides")
    assert delivered["interval"] == FIRST
    assert (failed["error"], failed["undelivered"]) == ("it can't follow", [SECOND])
    assert ended.code == done["exit_code"] == failed["exit_code"] == ExitCode.CONFIGURATION


def test_so_does_a_job_whose_table_is_a_stream(project: Halting) -> None:
    ended = project.job_halted("trips.calls")
    delivered, failed = json.loads(ended.out.splitlines()[-1])["reports"]
    assert outcomes([delivered, failed]) == only_delivered("calls")
    assert (delivered["inserted"], ended.code) == (1, ExitCode.CONFIGURATION)


@pytest.mark.parametrize("arguments", [("rides", *DAYS), ("calls",)], ids=lambda a: a[0])
def test_so_does_the_command(project: Halting, arguments: tuple[str, ...]) -> None:
    ended = project.halted("ingest", *arguments, "--json")
    assert outcomes(ended.records) == only_delivered(arguments[0])
    assert ended.code == ExitCode.CONFIGURATION


def test_so_does_a_run_and_the_next_one_follows(project: Halting) -> None:
    ended = project.halted("run", "trips", *DAYS, "--json")
    both = [*only_delivered("calls"), *only_delivered("rides"), ("rides__deliveries", "committed")]
    assert sorted(outcomes(ended.records)) == sorted(both)
    assert ended.code == ExitCode.CONFIGURATION
    ended = project.sluice("run", "trips", *DAYS, "--json")
    assert {("calls", "committed"), ("rides", "committed")} <= {*outcomes(ended.records)}
    assert ended.code == ExitCode.OK


@pytest.mark.parametrize("name", ["rides", "calls"])
def test_so_does_a_replay(project: Halting, name: str) -> None:
    project.complete("run", "trips", *DAYS)
    project.declare(DECLARED.replace("fare, on_failure", "id, on_failure"))
    ended = project.halted("replay", name, "--json")
    assert outcomes(ended.records) == only_delivered(name)
    assert ended.code == ExitCode.CONFIGURATION


def test_a_report_in_a_file_is_not_repeated_in_the_output(project: Halting, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    ended = project.job_halted("trips.rides", *DAYS, "--report", str(file))
    assert len(json.loads(file.read_text("utf-8"))["reports"]) == 2
    assert '"reports"' not in ended.out
