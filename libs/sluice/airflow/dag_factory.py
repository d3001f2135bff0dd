"""Airflow's DAGs, one per pipeline, made from the configuration.

A task that writes a table runs once at a time over all runs (`max_active_tis_per_dag`). This keeps
the runs of a backfill apart; the commit's fence decides in the end. A skipped task does not stop
those that follow.

Last task of a run: publishes the quality report, and ends as the run did.

It runs whatever happened to the other tasks, so that a stopped run has its report, too. It then
fails if one of them failed, because Airflow judges a run by its last tasks.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, BaseOperator, TriggerRule
from airflow.timetables.trigger import CronTriggerTimetable

from sluice.airflow.blueprint import Blueprint, Policy, Site, Task, TaskKind, project, site
from sluice.airflow.connections import export_lake
from sluice.airflow.exceptions import AirflowException, AirflowFailException, AirflowSkipException
from sluice.airflow.jobs import form, is_preview, raising_refusals
from sluice.airflow.scheduling import Grid, address, alert_of_failure, asset, deadline, whenever
from sluice.airflow.tasks import ConnectedJob, ScriptJob, SeparateJob

FAILED = frozenset({"failed", "upstream_failed"})
UNKNOWN = (
    "Airflow named no task of the run {}, so how it ended is not known\n"
    "hint: the next attempt asks again; if none is left, clear this task"
)


class QualityTask(BaseOperator):  # type: ignore[misc]
    """Publish the report of a pipeline."""

    ui_color = "#e8f6e3"

    def __init__(self, *, work: Task, config: Path, **settings: Any) -> None:
        super().__init__(**settings)
        self.work = work
        self.config = config

    def execute(self, context: Mapping[str, Any]) -> str:
        """Publish the report and return its path."""
        states = self._states(context)
        if set(states.values()) <= {"skipped"}:
            raise AirflowSkipException("nothing new came in, so nothing was checked")
        failed = sorted(task for task, state in states.items() if state in FAILED)
        if is_preview(context):
            ended = AirflowFailException if failed else AirflowSkipException
            raise ended("this run is a preview, so nothing was checked")
        report = self._publish()
        self.log.info("the report is %s", report)
        if failed:
            raise AirflowFailException(f"{', '.join(failed)} failed; the report is {report}")
        return report

    def _states(self, context: Mapping[str, Any]) -> dict[str, str]:
        run = context["run_id"]
        found = context["ti"].get_task_states(self.dag_id, run_ids=[run]).get(run)
        if not found:  # not even this task; a run whose tasks failed must not end well
            raise AirflowException(UNKNOWN.format(run))
        return {task: str(state) for task, state in found.items() if task != self.task_id}

    def _publish(self) -> str:
        from sluice.report.publish import publish  # needs Arrow; DAG files do not

        with raising_refusals():
            export_lake(project(self.config))
        return str(publish(project(self.config)))


LONGEST_DELAY = timedelta(hours=1)
DOUBLED = 2 if BaseOperator.retry_exponential_backoff is not False else True  # a flag in 3.1
FIRST_START = datetime(2000, 1, 1, tzinfo=UTC)


def dags(config: Path) -> Iterator[DAG]:
    """Yield a DAG for each pipeline declared in that folder."""
    whole = site(config)
    for pipeline in whole.pipelines:
        yield dag(whole, pipeline, config)


def maintenance(config: Path) -> DAG:
    """Return one daily DAG for the upkeep of all tables; it meets batches only at the fence."""
    whole = site(config)
    about = "Merges small files and checks whole tables. Changes no row."
    made = _of_all(whole, "sluice_maintenance", "30 3 * * *", about)
    with made:
        for pipeline in whole.pipelines:
            _upkeep(pipeline, config)
            if pipeline.sweep:
                _operator(pipeline.sweep, whole, pipeline, config)
    return made


def verification(config: Path) -> DAG:
    """Return one weekly DAG that compares every view with a recompute."""
    whole = site(config)
    about = "Compares every view with a recompute. Changes nothing."
    made = _of_all(whole, "sluice_verify", "30 4 * * 0", about)
    with made:
        for pipeline in whole.pipelines:
            if pipeline.proof.tables:
                _operator(pipeline.proof, whole, pipeline, config)
    return made


def _of_all(whole: Site, name: str, schedule: str, description: str) -> DAG:
    return DAG(
        name,
        description=description,
        schedule=CronTriggerTimetable(schedule, timezone="UTC"),
        start_date=FIRST_START,
        catchup=False,
        default_args=_defaults(whole.policy),
        tags=["sluice"],
    )


def dag(whole: Site, pipeline: Blueprint, config: Path) -> DAG:
    """Return the pipeline's DAG."""
    graph = pipeline.graph
    advice = ADVICE.format(report=address("/report/index.html"))
    tables = [f"- `{table}` by `{task.id}`" for task in graph.tasks for table in task.tables]
    cron = pipeline.schedule
    schedule = _timetable(cron, pipeline.timezone) if cron else whenever(graph.triggers)
    # Airflow's end date is the last start of an interval; Sluice's is where all have ended.
    last_start = pipeline.end_date and pipeline.end_date - timedelta(microseconds=1)
    made = DAG(
        pipeline.name,
        description=pipeline.description or None,
        doc_md="\n".join((advice, "", "**Tables**", "", *tables)),
        schedule=schedule,
        start_date=pipeline.start_date,
        end_date=last_start,
        catchup=pipeline.catchup,
        default_args=_defaults(pipeline.policy),
        deadline=deadline(pipeline.policy),
        tags=["sluice", *pipeline.policy.tags],
    )
    with made:  # an operator takes the DAG's default arguments only if made inside it
        for task in graph.tasks:
            operator = _operator(task, whole, pipeline, config)
            operator.set_upstream([made.get_task(above) for above in task.upstream])
    # Parameters set before the operators would be copied into every task. Set as an attribute, they
    # would be checked against JSON Schema's own schema each time, half of the cost of parsing.
    params = form(graph.tables, has_intervals=pipeline.schedule is not None)
    object.__setattr__(made, "params", params)
    return made


def _upkeep(pipeline: Blueprint, config: Path) -> Any:
    settings: dict[str, Any] = {
        "task_id": pipeline.upkeep.id,
        "work": pipeline.upkeep,
        "config": config,
        "max_active_tis_per_dag": 1,
        "on_failure_callback": alert_of_failure,
    }
    if python := pipeline.policy.python:
        return SeparateJob(python=python, **settings)
    return ScriptJob(**settings)


def _operator(task: Task, whole: Site, pipeline: Blueprint, config: Path) -> Any:
    common: dict[str, Any] = {"task_id": task.id, "work": task, "config": config}
    if task.kind is TaskKind.QUALITY:
        return QualityTask(trigger_rule=TriggerRule.ALL_DONE, **common)
    only_looks = task.kind in (TaskKind.SWEEP, TaskKind.VERIFY)
    settings = {
        **common,
        "inlets": [asset(table) for table in (task.tables if only_looks else task.reads)],
        "outlets": [] if only_looks else [asset(table) for table in task.tables],
        "trigger_rule": TriggerRule.NONE_FAILED,
        "max_active_tis_per_dag": 1,
        "on_failure_callback": alert_of_failure,
    }
    python = pipeline.policy.python
    if whole.remote and not python:
        return ConnectedJob(remote=whole.remote, **settings)
    return SeparateJob(python=python, remote=whole.remote, **settings)


@cache
def _timetable(expression: str, timezone: str) -> Grid:
    return Grid(expression, timezone=timezone)


def _defaults(policy: Policy) -> dict[str, Any]:
    return {
        "owner": policy.owner,
        "retries": policy.retries,
        "retry_delay": policy.retry_delay,
        "retry_exponential_backoff": DOUBLED,
        "max_retry_delay": LONGEST_DELAY,
    }


ADVICE = """A backfill replaces what its intervals delivered, and the views follow.
To correct days that ran already, choose **All Runs** in the backfill dialog:
*Missing Runs*, its default, skips them. The tab **Sluice** shows the tables as they stand,
the [quality report]({report}) what was expected of them and what came.

A run is named by the end of its interval: with a daily schedule, the run `…2014-11-11` delivers
2014-11-10. Its `ingest` tasks log the interval. A run triggered with **Deliver what changed**
delivers all due intervals, and those whose files have changed."""
