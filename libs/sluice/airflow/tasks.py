"""Tasks: each checks for work, launches a job, and reports what changed.

Two engines run the same jobs. With `submit` a job is a separate process, which starts a driver for
YARN, Kubernetes or a standalone cluster if it needs one. With `connect` it runs in the task's own
process, as a client of a warm Spark Connect server.

A task as the parent of its batches' lineage events, as OpenLineage names it.

With Airflow's own provider for OpenLineage, it is the run of that provider's events. Without it,
each try of a task has a separate id.

Jobs as separate processes, with a Python that need not be Airflow's.

A job computes small batches without Spark, and starts its own Spark driver for larger ones, with
the configured master. So a run of a few rows starts no JVM.
"""

import logging
import os
import runpy
import shlex
import signal
import subprocess
import sys
import tempfile
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from logging import Logger
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from airflow.sdk import BaseOperator

from sluice.airflow.blueprint import Task, TaskKind, project
from sluice.airflow.connections import export, export_lake
from sluice.airflow.exceptions import AirflowException, AirflowFailException, AirflowSkipException
from sluice.airflow.jobs import (
    Command,
    JobFailed,
    JobOutcome,
    PipelineRun,
    ReportFields,
    TaskContext,
    check,
    foreseen,
    job,
    raising_refusals,
    requested_run,
    sentence,
)
from sluice.airflow.scheduling import asset, event_fields
from sluice.delta.places.failpoint import passing
from sluice.errors import ExitCode
from sluice.terminal import as_guest

PARENT = "OPENLINEAGE_PARENT_ID"  # namespace/job/run


def name_parent(context: Mapping[str, Any]) -> None:
    """Name the task's try in the environment, for its job; only where events are set up at all."""
    if any(name.startswith("OPENLINEAGE_") for name in os.environ):
        os.environ[PARENT] = _parent_of(context["ti"])


def _parent_of(task: Any) -> str:
    with suppress(Exception):  # without a provider, or one that can't name the task, it is left out
        from airflow.providers.openlineage.plugins.macros import lineage_parent_id

        return str(lineage_parent_id(task))
    namespace = os.environ.get("OPENLINEAGE_NAMESPACE", "default")
    place = f"{task.dag_id}.{task.task_id}"
    return f"{namespace}/{place}/{uuid5(NAMESPACE_URL, f'{place}/{task.run_id}/{task.try_number}')}"


@dataclass
class Launch:
    """One job's process. `environ` is added to this process's environment."""

    python: str
    environ: Mapping[str, str] = field(default_factory=dict)
    _process: "subprocess.Popen[str] | None" = None

    def run(self, command: Command, log: Logger) -> None:
        """Run the job to its end, and log its lines. Raises AirflowException if it failed."""
        words = [self.python, *command.program, *command.arguments]
        log.info(shlex.join(words))
        try:
            self._process = subprocess.Popen(
                words,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                env={**os.environ, **self.environ},
                start_new_session=True,
            )
        except OSError as error:
            raise AirflowFailException(
                f"{self.python} can't be started: {error.strerror}\nhint: `airflow.python` names "
                "the Python of an environment that Sluice is installed in"
            ) from None
        with self._process as process:
            for line in process.stdout or ():
                log.info(line.rstrip())
        if process.returncode < 0:
            raise JobFailed(
                _outcome_of_kill(f"the job {command.name}", signal.Signals(-process.returncode))
            )
        if process.returncode:
            raise AirflowException(f"the job {command.name} exited with {process.returncode}")

    def stop(self) -> None:
        """End the job, and the driver that it may have started."""
        if self._process:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGTERM)


def _outcome_of_kill(what: str, by: signal.Signals) -> JobOutcome:
    """Return the outcome of a job that had no chance to report its own."""
    if by is not signal.SIGKILL:
        return JobOutcome(error=f"{what} was ended by {by.name}", exit_code=ExitCode.RETRY)
    return JobOutcome(
        error=f"{what} was killed by the system, often for want of memory",
        hint="give the machine more memory, or run fewer tasks at the same time",
        exit_code=ExitCode.RETRY,
    )


APP_NAME = "SLUICE_APP_NAME"  # a job's name in Spark's own pages
LOADING = (f"{TaskKind.LOAD}.", f"{TaskKind.INGEST}")


class JobTask(BaseOperator):  # type: ignore[misc]
    """A task that runs a job; its tables are its outlets."""

    ui_color = "#dceefb"

    def __init__(self, *, work: Task, config: Path, **settings: Any) -> None:
        super().__init__(**settings)
        self.work = work
        self.config = config

    def execute(self, context: TaskContext) -> list[ReportFields]:
        """Skip if nothing is new; else do the work, and return the reports."""
        from sluice.airflow.pending import pending_of  # needs Arrow; DAG files do not

        with raising_refusals():
            run = requested_run(context, self.work.timezone)
            export_lake(project(self.config))
        if run.is_preview:
            return self._preview(run, context)
        if run.interval and self.work.kind is TaskKind.INGEST:
            self.log.info("this run delivers %s", run.interval.format(self.work.timezone))
        pending = pending_of(project(self.config), self.work, run)
        if not pending.tables:
            self.log.info(pending.reason)
            self._hand_on_versions(context)
            raise AirflowSkipException(pending.reason)
        run = replace(run, pins=self._pins(context))
        outcome = self._do(pending.tables, run, context)
        self._record(outcome, context)
        self._hand_on_versions(context, outcome.reports)
        passing("succeeding", self.work.id)
        return list(outcome.reports)

    def _preview(self, run: PipelineRun, context: TaskContext) -> list[ReportFields]:
        """Return the preview of the whole run in the first task; skip all others."""
        self._record(JobOutcome(), context)
        tables = tuple(filter(run.is_about, self.work.previews))
        if not tables:
            raise AirflowSkipException("this run is a preview, which its first task shows")
        return list(self._do(tables, run, context).reports)

    @abstractmethod
    def launch(self, command: Command, context: TaskContext) -> None:
        """Run the job to its end. Raises AirflowException if it failed."""

    def _do(self, tables: Iterable[str], run: PipelineRun, context: TaskContext) -> JobOutcome:
        failure = None
        export(project(self.config), tables)
        name_parent(context)
        with tempfile.TemporaryDirectory(prefix="sluice-") as folder:
            file = Path(folder) / "report.json"
            try:
                self.launch(job(self.work, tables, run, self.config, file), context)
            except AirflowException as error:
                failure = error
            outcome = JobOutcome.read(file)
        self._publish(outcome.reports if outcome else (), run)
        return check(outcome, failure)

    def _publish(self, reports: Iterable[ReportFields], run: PipelineRun) -> None:
        """Log a line for each table, including those that failed or were skipped."""
        if run.is_preview:
            self.log.info("preview: nothing was committed")
        for report in reports:
            is_undone = report.get("outcome") in ("failed", "skipped")
            lines = foreseen(report) if run.is_preview else [sentence(report)]
            for line in lines:
                self.log.log(logging.WARNING if is_undone else logging.INFO, line)
            for warning in report.get("warnings", ()):
                self.log.warning(warning)

    def _hand_on_versions(self, context: TaskContext, reports: Iterable[ReportFields] = ()) -> None:
        from sluice.airflow.pending import VERSIONS, left_by

        if versions := left_by(project(self.config), self.work, reports):
            context["ti"].xcom_push(VERSIONS, versions)

    def _pins(self, context: TaskContext) -> dict[str, int]:
        """Return the versions that the whole run looks up."""
        from sluice.airflow.pending import VERSIONS, at_start

        started = context["dag_run"].start_date
        pins = at_start(project(self.config), self.work, started)
        loads = [task for task in self.work.upstream if task.startswith(LOADING)]
        found = context["ti"].xcom_pull(task_ids=loads, key=VERSIONS) if loads else []
        for versions in found:
            pins |= versions or {}
        return pins

    def _record(self, outcome: JobOutcome, context: TaskContext) -> None:
        """Keep only the outlets that changed, because Airflow makes an event of each."""
        mine = (report for report in outcome.reports if report["table"] in self.work.tables)
        counts = ("inserted", "updated", "deleted")
        changed = [report for report in mine if any(report.get(count) for count in counts)]
        self.outlets = [asset(report["table"]) for report in changed]
        for outlet, report in zip(self.outlets, changed, strict=True):
            context["outlet_events"][outlet].extra = event_fields(report, outcome.reports)


class ScriptJob(JobTask):
    """A job in the task's own process, which is a fork of a worker with all imports done."""

    def launch(self, command: Command, context: TaskContext) -> None:  # noqa: ARG002
        """Run the script as if it had been started with these arguments."""
        sys.argv = [str(command.script), *command.arguments]
        self.log.info("python %s", shlex.join(sys.argv))
        try:
            with as_guest():
                runpy.run_path(str(command.script), run_name="__main__")
        except SystemExit as ended:
            if ended.code:
                message = f"the job {command.name} exited with {ended.code}"
                raise AirflowException(message) from None


class ConnectedJob(ScriptJob):
    """A script that is a client of the Spark Connect server at `remote`."""

    def __init__(self, *, remote: str, **settings: Any) -> None:
        super().__init__(**settings)
        self.remote = remote

    def launch(self, command: Command, context: TaskContext) -> None:
        """Run it with the server's address in the environment."""
        os.environ["SPARK_REMOTE"] = self.remote
        super().launch(command, context)


class SeparateJob(JobTask):
    """A job in a separate process, which starts a Spark driver if it needs one.

    `python` runs it, by default Airflow's own. With `remote`, it is a client of that server.
    """

    def __init__(self, *, python: str = "", remote: str = "", **settings: Any) -> None:
        super().__init__(**settings)
        self.python, self.remote = python, remote
        self._launched: Launch | None = None

    def launch(self, command: Command, context: TaskContext) -> None:  # noqa: ARG002
        """Run it under the task's name, and log what it prints."""
        environ = {APP_NAME: f"{self.work.pipeline}.{self.work.id}"}
        environ |= {"SPARK_REMOTE": self.remote} if self.remote else {}
        self._launched = Launch(self.python or sys.executable, environ)
        self._launched.run(command, self.log)

    def on_kill(self) -> None:
        """End the job with the task."""
        if self._launched:
            self._launched.stop()
