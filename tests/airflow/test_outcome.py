"""What a job's end means to Airflow."""

import json
from pathlib import Path
from typing import Any

import pytest

from sluice.airflow.exceptions import AirflowException, AirflowFailException
from sluice.airflow.jobs import JobOutcome, check, sentence

REPORT = {
    "table": "shop.sums",
    "outcome": "committed",
    "version": 3,
    "inputs": {"shop.lines": [4, 6]},
    "rows_in": 7,
    "inserted": 2,
    "updated": 1,
    "deleted": 0,
    "seconds": {"compute": 1.25},
}


def ended(exit_code: int) -> JobOutcome:
    return JobOutcome(error="the lake is gone", hint="look for it", exit_code=exit_code)


@pytest.mark.parametrize("exit_code", [1, 2, 4, 5])
def test_what_a_retry_can_not_help_fails_for_good_with_the_reason(exit_code: int) -> None:
    with pytest.raises(AirflowFailException, match="the lake is gone\nhint: look for it"):
        check(ended(exit_code), None)


@pytest.mark.parametrize("exit_code", [3, 137])
def test_what_a_retry_may_help_is_retried(exit_code: int) -> None:
    with pytest.raises(AirflowException, match="the lake is gone") as raised:
        check(ended(exit_code), None)
    assert not isinstance(raised.value, AirflowFailException)


def test_a_job_that_was_killed_is_retried() -> None:
    with pytest.raises(AirflowException, match="without a message: exited with -9") as raised:
        check(None, AirflowException("exited with -9"))
    assert not isinstance(raised.value, AirflowFailException)


def test_a_job_that_did_its_work_hands_on_its_reports(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_text(json.dumps({"reports": [REPORT], "exit_code": 0}), "utf-8")
    assert check(JobOutcome.read(file), None).reports == (REPORT,)


@pytest.mark.parametrize("text", [None, "", '{"reports": ['])
def test_a_report_that_is_missing_or_cut_off_is_none(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "report.json"
    if text is not None:
        file.write_text(text, "utf-8")
    assert JobOutcome.read(file) is None


def test_a_log_line_says_what_was_read_what_changed_and_where_time_went() -> None:
    assert sentence(REPORT) == (
        "shop.sums: committed version 3, read shop.lines (4, 6], 7 rows in, +2 ~1 -0; "
        "seconds: compute 1.2"
    )


def test_a_log_line_names_what_failed_what_was_skipped_and_what_was_not_delivered() -> None:
    days = [[f"2024-01-0{n}T00:00:00+00:00", f"2024-01-0{n + 1}T00:00:00+00:00"] for n in (2, 3)]
    failed = {"table": "shop.sales", "outcome": "failed", "error": "a text", "exit_code": 4}
    assert sentence({**failed, "undelivered": days}) == (
        "shop.sales: failed with exit code 4: a text; "
        "not delivered: [2024-01-02, 2024-01-04) (2 intervals)"
    )
    skipped = {"table": "shop.sums", "outcome": "skipped", "because": ["shop.sales"]}
    assert sentence(skipped) == "shop.sums: skipped, because shop.sales failed"


def test_a_batch_that_read_nothing_says_so() -> None:
    waiting: dict[str, Any] = {"table": "shop.best", "outcome": "waiting", "version": None}
    assert sentence({**waiting, "rows_in": None}) == "shop.best: waiting"
