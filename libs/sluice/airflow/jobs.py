"""Jobs as Airflow sees them: their command lines, a person's request for a run, and their outcome.

A job is a command of the package's, or a script of the project's `jobs/` if there is one of its
name. It gets arguments, never a shell line. It reports what it did, or why it failed, in the file
named by `--report`.

A request is a form in Airflow's trigger dialog: a JSON Schema that Airflow draws and checks.
Answers reach a job as separate arguments of a process. They are never a template.

The outcome's meaning to Airflow is to go on, to retry, or to give up with the reason. The report is
`{"reports": [...]}`, or `{"error", "hint", "exit_code"}` with the tables that failed. A job that
left no such file was killed, or its machine failed: a retry may help.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import Param
from airflow.sdk.definitions.param import ParamsDict

from sluice.airflow.blueprint import Task, TaskKind
from sluice.airflow.exceptions import AirflowException, AirflowFailException
from sluice.errors import ExitCode, SluiceError, UsageError

if TYPE_CHECKING:
    from sluice.language.interval import Interval


PREVIEW = "preview"
PACKAGED = Path(__file__).parents[1] / "cli" / "jobs.py"  # of which a job is one command


@dataclass(frozen=True)
class PipelineRun:
    """One run of a pipeline: its id, its scope, and the dimension versions that it loaded.

    `interval` is what its sources deliver; with `is_about_news`, each delivers the intervals that
    it finds due or changed instead. A backfill requests its messages of topics again.
    `only` lists the tables in scope and is empty for all.
    """

    id: str
    interval: "Interval | None" = None
    pins: Mapping[str, int] = field(default_factory=dict)
    only: tuple[str, ...] = ()
    full_refresh: bool = False
    allow_empty: bool = False
    is_preview: bool = False
    is_backfill: bool = False
    is_about_news: bool = False

    def is_about(self, table: str) -> bool:
        """True if the table was chosen."""
        return not self.only or table in self.only


@dataclass(frozen=True)
class Command:
    """A job: its name, its script, and the script's arguments."""

    name: str
    script: Path
    arguments: tuple[str, ...]

    @property
    def program(self) -> tuple[str, ...]:
        """Arguments of Python; a job of the package runs from the other Python's own package."""
        packaged = ("-m", "sluice.cli.jobs")
        return packaged if self.script == PACKAGED else (str(self.script),)


def job(task: Task, tables: Iterable[str], run: PipelineRun, config: Path, report: Path) -> Command:
    """Return the job that does a task's work on these of its tables in that run."""
    name = PREVIEW if run.is_preview else task.kind.value
    own = own_script(name, config)
    arguments = (*tables, "--config", str(config), "--run-id", run.id)
    pins = (word for pin in run.pins.items() for word in ("--pin", "{}={}".format(*pin)))
    asked = (*_bounds(task, run), *pins, *_flags(run), "--report", str(report))
    if own:
        return Command(name, own, (*arguments, *asked))
    return Command(name, PACKAGED, (name, *arguments, *asked))


def own_script(name: str, config: Path) -> Path | None:
    """Return the project's own script of a job, which replaces that of the package."""
    own = config.parent / "jobs" / f"{name}.py"
    return own if own.exists() else None


def _bounds(task: Task, run: PipelineRun) -> Iterator[str]:
    if task.kind is not TaskKind.INGEST and not run.is_preview:
        return
    if run.is_about_news:
        yield "--changed"
    elif run.interval:
        yield from ("--start", run.interval.start.isoformat())
        yield from ("--end", run.interval.end.isoformat())
        if run.is_backfill:
            yield "--backfill"


def _flags(run: PipelineRun) -> Iterator[str]:
    if run.full_refresh:
        yield "--full-refresh"
    if run.allow_empty:
        yield "--allow-empty"


FINAL = (ExitCode.DIFFERENCES, ExitCode.CONFIGURATION, ExitCode.QUALITY, ExitCode.HISTORY)
ReportFields = dict[str, Any]


@dataclass(frozen=True)
class JobOutcome:
    """Batch reports of the tables that the job reached, and how the job ended."""

    reports: tuple[ReportFields, ...] = ()
    error: str = ""
    hint: str = ""
    exit_code: int = 0
    failed: tuple[str, ...] = ()

    @classmethod
    def read(cls, file: Path) -> "JobOutcome | None":
        """Return the outcome that a file holds; None if it is missing or unreadable."""
        try:
            content = json.loads(file.read_text("utf-8"))
        except (OSError, ValueError):
            return None
        lists = {name: tuple(content.get(name, ())) for name in ("reports", "failed")}
        return cls(**{**content, **lists})

    def __str__(self) -> str:
        return f"{self.error}\nhint: {self.hint}" if self.hint else self.error


class JobFailed(AirflowException):  # type: ignore[misc]
    """A failure that may not occur in the next attempt."""

    def __init__(self, outcome: JobOutcome) -> None:
        super().__init__(str(outcome))
        self.outcome = outcome


class JobRefused(AirflowFailException):  # type: ignore[misc]
    """A failure that no retry fixes: a person has to change something first."""

    def __init__(self, outcome: JobOutcome) -> None:
        super().__init__(str(outcome))
        self.outcome = outcome


def check(outcome: JobOutcome | None, cause: BaseException | None) -> JobOutcome:
    """Return the outcome of a job that did its work; raise an Airflow exception for any other."""
    if outcome is None and isinstance(cause, AirflowFailException | JobFailed):
        raise cause  # it was never started, or was killed
    if outcome is None:
        raise AirflowException(f"the job ended without a message: {cause}") from cause
    if outcome.error:
        kind = JobRefused if outcome.exit_code in FINAL else JobFailed
        raise kind(outcome) from None
    return outcome


def sentence(report: Mapping[str, Any]) -> str:
    """Return a line for a task's log: what was read, what changed, how long each phase took."""
    if "outcome" not in report:
        return ", ".join(f"{name} {value}" for name, value in report.items())
    parts = [f"{report['table']}: {report['outcome']}"]
    if report["outcome"] == "failed":
        return (
            f"{parts[0]} with exit code {report['exit_code']}: {report['error']}"
            + _list_undelivered(report)
        )
    if report["outcome"] == "skipped":
        return f"{parts[0]}, because {', '.join(report['because'])} failed"
    if report["outcome"] in ("committed", "position"):
        counts = " ".join(f"{sign}{report.get(name, 0)}" for sign, name in SIGNS)
        parts[0] += f" version {report['version']}"
        parts += [f"read {name} ({a}, {b}]" for name, (a, b) in report.get("inputs", {}).items()]
        rows = report.get("rows_in")
        parts += [f"{rows} rows in"] if rows is not None else []
        parts.append(counts)
    if report.get("quarantined"):
        parts.append(f"{report['quarantined']} quarantined")
    phases = ", ".join(f"{name} {spent:.1f}" for name, spent in report.get("seconds", {}).items())
    return ", ".join(parts) + (f"; seconds: {phases}" if phases else "")


def foreseen(record: Mapping[str, Any]) -> list[str]:
    """Return lines for a preview's log: what a run would do to a table, and some changed rows."""
    counts = " ".join(f"{sign}{record[name]}" for sign, name in SIGNS)
    line = f"{record['table']}: {record['outcome']}, {counts}"
    line += f", {record['rows_in']} rows in" if record["rows_in"] is not None else ""
    more = (f", {record[name]} {name}" for name in ("quarantined", "expired") if record[name])
    line += "".join(more) + (f": {record['error']}" if record["error"] else "")
    sides = ((sign, s[side]) for s in record["samples"] for sign, side in SIDES)
    return [line, *(f"  {sign} {json.dumps(row)}" for sign, row in sides if row is not None)]


def _list_undelivered(report: Mapping[str, Any]) -> str:
    from sluice.language.interval import (
        Interval,  # DAG files do without it
        spans,
    )

    intervals = (Interval.parse(*bounds) for bounds in report["undelivered"])
    left = spans(intervals, report.get("timezone", "UTC"))
    return f"; not delivered: {', '.join(map(str, left))}" if left else ""


SIDES = (("-", "before"), ("+", "after"))
SIGNS = (("+", "inserted"), ("~", "updated"), ("-", "deleted"))


@contextmanager
def raising_refusals() -> Iterator[None]:
    """Raise JobRefused, with the outcome that a job would report, instead of a named error."""
    try:
        yield
    except SluiceError as error:
        refused = JobOutcome(error=error.message, hint=error.hint, exit_code=int(error.exit_code))
        raise JobRefused(refused) from None


TaskContext = Mapping[str, Any]
MOMENT = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:\d{2})?)?$"
BOUNDS = ("start", "end")
TIME = {"type": ["null", "string"], "format": "date-time", "pattern": MOMENT}


def form(tables: Iterable[str], *, has_intervals: bool) -> ParamsDict:
    """Return the parameters of a pipeline with these tables."""
    names = sorted(table.partition(".")[2] for table in tables)
    bounds = dict(zip(BOUNDS, (START, END), strict=True)) if has_intervals else {}
    only = {
        "type": ["null", "array"],
        "items": {"type": "string", "enum": names},
        "examples": names,
        "title": "Only these tables",
        "description": "Tables to bring up to date. Empty: all of them.",
    }
    return ParamsDict(
        {
            **{name: Param(None, **TIME, **words) for name, words in bounds.items()},
            "only": Param(None, **only),
            "full_refresh": Param(False, type="boolean", **FULL_REFRESH),
            **({"changed": Param(False, type="boolean", **CHANGED)} if bounds else {}),
            **({"allow_empty": Param(False, type="boolean", **ALLOW_EMPTY)} if bounds else {}),
            "preview": Param(False, type="boolean", **PREVIEW_FIELD),
        }
    )


START = {
    "title": "From",
    "description": "First instant to deliver, in place of the run's own data interval. A bound of "
    "the schedule, given together with the end; without an offset, in the pipeline's timezone. "
    "Several intervals are delivered one by one. A topic's messages of that time are read again.",
}
END = {"title": "Until", "description": "The instant after the last one to deliver."}
CHANGED = {
    "title": "Deliver what changed",
    "description": "Deliver, in place of the run's own data interval, every interval that has "
    "ended and was not delivered, and those whose files have changed or are gone since. Each "
    "source finds its own, as `sluice plan` lists them.",
}
FULL_REFRESH = {
    "title": "Full refresh",
    "description": "Read unchanged files again, and recompute views from their current inputs "
    "and dimensions. Only differences are committed.",
}
ALLOW_EMPTY = {
    "title": "Allow empty",
    "description": "Let an interval with rows become empty if its files are missing or none of "
    "their rows can be used. Otherwise such a delivery stops.",
}
PREVIEW_FIELD = {
    "title": "Preview",
    "description": "Compute everything and commit nothing. The first task's log and XCom show what "
    "would change in each table; the other tasks are skipped.",
}


def requested_run(context: TaskContext, timezone: str) -> PipelineRun:
    """Return the run of that context, as requested. Raises UsageError for impossible bounds.

    `timezone` is the pipeline's, for bounds without a zone.
    """
    run, answers = context["dag_run"], context.get("params") or {}
    start, end = map(answers.get, BOUNDS)
    changed = bool(answers.get("changed"))
    if changed and (start or end):
        raise UsageError(
            "a run that delivers what changed finds its intervals itself",
            hint="trigger another run, without start and end",
        )
    names = answers.get("only") or ()
    return PipelineRun(
        context["run_id"],
        None if changed else _interval(run, start, end, timezone),
        only=tuple(f"{context['dag'].dag_id}.{name}" for name in names),
        full_refresh=bool(answers.get("full_refresh")),
        allow_empty=bool(answers.get("allow_empty")),
        is_preview=is_preview(context),
        is_backfill=bool(start and end) or getattr(run, "run_type", "") == "backfill",
        is_about_news=changed,
    )


def is_preview(context: TaskContext) -> bool:
    """True if the run is to commit nothing."""
    return bool((context.get("params") or {}).get("preview"))


def _interval(run: Any, start: str | None, end: str | None, timezone: str) -> "Interval | None":
    from sluice.language.interval import Interval  # DAG files do without it

    if start and end:
        return Interval.parse(start, end, timezone)
    if start or end:
        raise UsageError("a run takes both start and end, or neither", hint="give the other one")
    first, last = run.data_interval_start, run.data_interval_end
    return Interval(first, last) if first and last and first < last else None
