"""A person's request for a run: the form in Airflow's trigger dialog, and its meaning.

The form is a JSON Schema that Airflow draws and checks. Answers reach a job as separate arguments
of a process. They are never a template or part of a shell line.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import Param
from airflow.sdk.definitions.param import ParamsDict

from sluice.airflow.jobs import PipelineRun
from sluice.errors import UsageError

if TYPE_CHECKING:
    from sluice.language.interval import Interval

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
            "preview": Param(False, type="boolean", **PREVIEW),
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

PREVIEW = {
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
