"""Command lines of jobs: the arguments that a task and its run pass to the process.

A job is a script of the package, or of the project's `jobs/` if there is one of its name. It gets
arguments, never a shell line. It reports what it did, or why it failed, in the file named by
`--report`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sluice.airflow.task_graph import Task, TaskKind

if TYPE_CHECKING:
    from sluice.language.interval import Interval


PREVIEW = "preview"
PACKAGED = Path(__file__).parents[1] / "cli" / "jobs"


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
    """A script and its arguments."""

    script: Path
    arguments: tuple[str, ...]


def job(task: Task, tables: Iterable[str], run: PipelineRun, config: Path, report: Path) -> Command:
    """Return the job that does a task's work on these of its tables in that run."""
    script = script_of(PREVIEW if run.is_preview else task.kind.value, config)
    arguments = (*tables, "--config", str(config), "--run-id", run.id)
    asked = (*_bounds(task, run), *_pins(run), *_flags(run))
    return Command(script, (*arguments, *asked, "--report", str(report)))


def script_of(name: str, config: Path) -> Path:
    """Return the script of a job: the project's own, or that of the package."""
    own = config.parent / "jobs" / f"{name}.py"
    return own if own.exists() else PACKAGED / f"{name}.py"


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


def _pins(run: PipelineRun) -> Iterator[str]:
    for dimension, version in run.pins.items():
        yield from ("--pin", f"{dimension}={version}")
