"""Messages to the person on call."""

import shlex
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

from sluice.airflow.blueprint import Task, TaskKind
from sluice.airflow.exceptions import AirflowException
from sluice.airflow.jobs import JobFailed, JobOutcome, JobRefused
from sluice.airflow.scheduling import KILLED, of_delay, of_failure
from sluice.airflow.tasks import SeparateJob
from sluice.cli.main import main
from sluice.language.interval import parse_time

HALF = Task("advance", TaskKind.ADVANCE, "shop", ("shop.sums", "shop.best"))
SALES = Task("ingest.sales", TaskKind.INGEST, "shop", ("shop.sales",))


def context(task: Task, error: BaseException | None) -> dict[str, Any]:
    start, end = parse_time("2024-01-01"), parse_time("2024-01-02")
    run = SimpleNamespace(data_interval_start=start, data_interval_end=end)
    told = {"task": SimpleNamespace(work=task), "exception": error}
    return {**told, "run_id": "r1", "dag_run": run, "ti": SimpleNamespace(log_url="http://log")}


def test_an_alert_names_the_tables_that_failed_the_reason_and_the_next_command() -> None:
    lost = JobOutcome(
        error="its feed is gone", hint="run `sluice rebuild best`", failed=("shop.best",)
    )
    alert = of_failure(context(HALF, JobRefused(lost)))
    assert alert.text == (
        "shop.best failed in shop, r1, task advance\n"
        "why: its feed is gone\n"
        "next: run `sluice rebuild best`; then clear the task with what follows it, "
        "or run `sluice advance shop.best`"
    )
    assert alert.url == "http://log"


def test_a_source_is_delivered_again_with_what_follows_it() -> None:
    alert = of_failure(context(SALES, JobFailed(JobOutcome(error="no route to the store"))))
    command = "sluice run shop --start 2024-01-01 --end 2024-01-02"
    assert alert.next == f"clear the task with what follows it, or run `{command}`"


def test_a_run_for_other_days_names_these_and_that_its_answers_stay() -> None:
    answers = {"start": "2024-03-05", "end": "2024-03-07"}
    alert = of_failure({**context(SALES, JobRefused(JobOutcome(error="no"))), "params": answers})
    assert alert.next == (
        "clear the task with what follows it, or trigger another run with other bounds, or run "
        "`sluice run shop --start 2024-03-05 --end 2024-03-07`"
    )


def test_days_that_a_person_asked_for_are_those_of_the_pipelines_zone() -> None:
    answers = {"start": "2024-03-05", "end": "2024-03-06"}
    berlin = replace(SALES, timezone="Europe/Berlin")
    alert = of_failure({**context(berlin, JobRefused(JobOutcome(error="no"))), "params": answers})
    assert "`sluice run shop --start 2024-03-05 --end 2024-03-06`" in alert.next


def test_bounds_that_were_refused_are_not_advised_again() -> None:
    answers = {"start": "2024-03-05T05:00", "end": "2024-03-07"}
    refused = JobRefused(
        JobOutcome(error="05:00 is not a bound", hint="take midnight", exit_code=2)
    )
    alert = of_failure({**context(SALES, refused), "params": answers})
    assert "other bounds" in alert.next
    assert "sluice run" not in alert.next


def test_half_a_time_span_is_reported_with_what_mends_it() -> None:
    given = {**context(SALES, None), "params": {"start": "2024-03-05"}}
    with pytest.raises(JobRefused) as refused:
        SeparateJob(task_id="ingest", work=SALES, config=Path()).execute(given)
    alert = of_failure({**given, "exception": refused.value})
    assert alert.why == "a run takes both start and end, or neither"
    assert alert.next == (
        "give the other one; then clear the task with what follows it, "
        "or trigger another run with other bounds"
    )


@pytest.mark.parametrize("kind", [kind for kind in TaskKind if kind is not TaskKind.QUALITY])
def test_the_command_of_an_alert_is_one_that_there_is(kind: TaskKind) -> None:
    tables = HALF.tables if kind is not TaskKind.LOAD else HALF.tables[:1]
    alert = of_failure(context(Task("t", kind, "shop", tables), None))
    words = shlex.split(alert.next.partition("`")[2].rstrip("`"))[1:]
    command = main.get_command(click.Context(main), words[0])
    assert command is not None
    command.make_context(words[0], words[1:])


@pytest.mark.parametrize("error", [AirflowException("exited with -9"), None])
def test_a_job_that_left_no_word_is_reported_with_all_its_tables(error: Any) -> None:
    alert = of_failure(context(HALF, error))
    assert alert.tables == ("shop.sums", "shop.best")
    assert alert.why in ("exited with -9", KILLED)


def test_a_late_run_is_named_with_its_limit() -> None:
    run = {"dag_id": "shop", "dag_run_id": "r1", "state": "running", "start_date": "2024-01-02"}
    alert = of_delay(run, "2 hours")
    assert alert.what == "shop is late: r1 has not ended 2 hours after it was due"
    assert "sluice status" in alert.next
