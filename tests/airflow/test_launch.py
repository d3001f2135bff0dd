"""A job's process that ends before it can report."""

import logging
import sys
from pathlib import Path

import pytest

from sluice.airflow.jobs import Command, JobFailed, check
from sluice.airflow.tasks import Launch

KILLS = "import os, signal; os.kill(os.getpid(), signal.{signal})"


def failure(tmp_path: Path, signal: str) -> JobFailed:
    script = tmp_path / "advance.py"
    script.write_text(KILLS.format(signal=signal), "utf-8")
    with pytest.raises(JobFailed) as raised:
        Launch(sys.executable).run(Command("advance", script, ()), logging.getLogger())
    return raised.value


def test_a_job_that_the_system_has_killed_is_reported_as_such(tmp_path: Path) -> None:
    killed = failure(tmp_path, "SIGKILL")
    told = "the job advance was killed by the system, often for want of memory"
    assert killed.outcome.error == told
    assert "more memory" in killed.outcome.hint
    with pytest.raises(JobFailed, match=f"^{told}"):
        check(None, killed)


def test_a_job_that_a_signal_has_ended_names_it(tmp_path: Path) -> None:
    assert str(failure(tmp_path, "SIGTERM")) == "the job advance was ended by SIGTERM"
