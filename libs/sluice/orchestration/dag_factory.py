"""Airflow's DAGs, one per pipeline, made from the configuration.

Every task that writes a table runs once at a time over all runs (`max_active_tis_per_dag`), which
keeps the runs of a backfill apart; the commit's fence is the last word. A skipped task lets what
follows go on.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, TriggerRule
from airflow.timetables.interval import CronDataIntervalTimetable
from airflow.timetables.trigger import CronTriggerTimetable

from sluice.orchestration.alerts import failed
from sluice.orchestration.assets import asset, whenever
from sluice.orchestration.deadlines import deadline
from sluice.orchestration.graph import Task, TaskGraph, TaskKind, task_graph, upkeep
from sluice.orchestration.projects import project
from sluice.orchestration.quality_task import QualityTask
from sluice.orchestration.request import form
from sluice.orchestration.tasks import ConnectedJob, ScriptJob, SubmittedJob
from sluice.specs.project import Pipeline, Project
from sluice.specs.settings import AirflowSettings, SparkSettings

LONGEST_DELAY = timedelta(hours=1)
EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


def dags(config: Path) -> Iterator[DAG]:
    """A DAG for each pipeline declared in that folder."""
    whole = project(config)
    for pipeline in whole.pipelines.values():
        yield dag(whole, pipeline, config)


def maintenance(config: Path) -> DAG:
    """One DAG for the upkeep of all tables, daily; it competes with batches at the fence alone."""
    whole = project(config)
    made = DAG(
        "sluice_maintenance",
        description="Puts many small files together. Changes no row.",
        schedule=CronTriggerTimetable("30 3 * * *", timezone="UTC"),
        start_date=EPOCH,
        catchup=False,
        default_args=_defaults(whole.airflow),
        tags=["sluice"],
    )
    with made:
        for pipeline in whole.pipelines.values():
            task = upkeep(whole, pipeline)
            ScriptJob(
                task_id=task.id,
                work=task,
                config=config,
                max_active_tis_per_dag=1,
                on_failure_callback=failed,
            )
    return made


def dag(whole: Project, pipeline: Pipeline, config: Path) -> DAG:
    """The pipeline's DAG."""
    graph = task_graph(whole, pipeline)
    made = DAG(
        pipeline.name,
        description=pipeline.description or None,
        doc_md=_page(graph),
        schedule=_schedule(pipeline, graph),
        start_date=pipeline.start_date,
        end_date=_last_start(pipeline),
        catchup=pipeline.catchup,
        default_args=_defaults(pipeline.airflow),
        params=form(graph.tables, has_intervals=pipeline.schedule.has_intervals),
        deadline=deadline(pipeline.airflow),
        tags=["sluice", *pipeline.airflow.tags],
    )
    with made:  # an operator takes the DAG's default arguments only when it is made in it
        for task in graph.tasks:
            operator = _operator(task, whole.spark, config)
            operator.set_upstream([made.get_task(above) for above in task.upstream])
    return made


def _operator(task: Task, spark: SparkSettings, config: Path) -> Any:
    common: dict[str, Any] = {"task_id": task.id, "work": task, "config": config}
    if task.kind is TaskKind.QUALITY:
        return QualityTask(trigger_rule=TriggerRule.ALL_DONE, **common)
    settings = {
        **common,
        "inlets": [asset(table) for table in task.reads],
        "outlets": [asset(table) for table in task.tables],
        "trigger_rule": TriggerRule.NONE_FAILED,
        "max_active_tis_per_dag": 1,
        "on_failure_callback": failed,
    }
    if spark.engine == "connect":
        return ConnectedJob(remote=spark.remote, **settings)
    return SubmittedJob(master=spark.master, **settings)


def _schedule(pipeline: Pipeline, graph: TaskGraph) -> Any:
    if not pipeline.schedule.has_intervals:
        return whenever(graph.triggers)
    expression, timezone = pipeline.schedule.expression, pipeline.schedule.timezone
    return CronDataIntervalTimetable(expression, timezone=timezone)


def _last_start(pipeline: Pipeline) -> datetime | None:
    """Airflow's end date is the last at which an interval may start, ours where they all end."""
    return pipeline.end_date and pipeline.end_date - timedelta(microseconds=1)


def _defaults(settings: AirflowSettings) -> dict[str, Any]:
    return {
        "owner": settings.owner,
        "retries": settings.retries,
        "retry_delay": settings.retry_delay.timedelta,
        "retry_exponential_backoff": 2,
        "max_retry_delay": LONGEST_DELAY,
    }


def _page(graph: TaskGraph) -> str:
    tables = [f"- `{table}` by `{task.id}`" for task in graph.tasks for table in task.tables]
    return "\n".join((ADVICE, "", "**Tables**", "", *tables))


ADVICE = """A backfill replaces what its intervals delivered, and the views follow.
To correct days that ran already, choose **All Runs** in the backfill dialog:
*Missing Runs*, its default, skips them. The tab **Sluice** shows the tables as they stand."""
