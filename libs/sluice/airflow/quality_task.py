"""Last task of a run: publishes the quality report, and ends as the run did.

It runs whatever happened to the other tasks, so that a stopped run has its report, too. It then
fails if one of them failed, because Airflow judges a run by its last tasks.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from sluice.airflow.connections import export_lake
from sluice.airflow.outcome import refusing
from sluice.airflow.projects import project
from sluice.airflow.request import is_preview
from sluice.airflow.task_graph import Task

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

        with refusing():
            export_lake(project(self.config))
        return str(publish(project(self.config)))
