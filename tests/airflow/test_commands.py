"""The command lines of jobs."""

from pathlib import Path

from sluice.airflow.blueprint import Task, TaskKind
from sluice.airflow.jobs import PACKAGED, Command, PipelineRun, job, own_script
from sluice.cli.job import JOBS
from sluice.language.interval import Interval

CONFIG, REPORT = Path("/project/config"), Path("/tmp/report.json")
DAY = Interval.parse("2024-01-01", "2024-01-02")


def command(kind: TaskKind, *tables: str, run: PipelineRun) -> Command:
    return job(Task(kind.value, kind, "shop", tables), tables, run, CONFIG, REPORT)


def test_an_ingest_gets_its_interval() -> None:
    made = command(TaskKind.INGEST, "shop.sales", run=PipelineRun("r1", DAY))
    assert made.arguments == (
        *("ingest", "shop.sales", "--config", "/project/config", "--run-id", "r1"),
        *("--start", "2024-01-01T00:00:00+00:00", "--end", "2024-01-02T00:00:00+00:00"),
        *("--report", "/tmp/report.json"),
    )


def test_an_advance_gets_the_dimensions_that_its_run_loaded_and_no_interval() -> None:
    made = command(TaskKind.ADVANCE, "shop.lines", run=PipelineRun("r1", DAY, {"shop.items": 4}))
    assert "--start" not in made.arguments
    assert made.arguments[6:8] == ("--pin", "shop.items=4")


def test_what_a_form_allows_reaches_the_job_as_flags() -> None:
    made = command(
        TaskKind.INGEST, "shop.sales", run=PipelineRun("r1", full_refresh=True, allow_empty=True)
    )
    assert made.arguments[6:8] == ("--full-refresh", "--allow-empty")


def test_what_a_user_writes_stays_one_argument() -> None:
    run = PipelineRun("manual; rm -rf / {{ ds }}", None)
    assert "manual; rm -rf / {{ ds }}" in command(TaskKind.LOAD, "shop.items", run=run).arguments


def test_a_project_needs_no_jobs_and_may_have_its_own(tmp_path: Path) -> None:
    assert PACKAGED.is_file()
    assert JOBS.keys() == {*(set(TaskKind) - {TaskKind.QUALITY}), "preview"}
    own = tmp_path / "jobs" / "ingest.py"
    own.parent.mkdir()
    own.touch()
    assert own_script("ingest", tmp_path / "config") == own
    assert own_script("load", tmp_path / "config") is None
    assert Command("ingest", own, ()).program == (str(own),)
    assert Command("load", PACKAGED, ()).program == ("-m", "sluice.cli.jobs")
