"""Jobs as separate processes, with a Python that need not be Airflow's.

A job computes small batches without Spark, and starts its own Spark driver for larger ones, with
the configured master. So a run of a few rows starts no JVM.
"""

import os
import shlex
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from logging import Logger
from pathlib import Path

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from sluice.airflow.commands import PACKAGED, Command
from sluice.airflow.outcome import JobFailed, JobOutcome
from sluice.errors import ExitCode


@dataclass
class Launch:
    """One job's process. `environ` is added to this process's environment."""

    python: str
    environ: Mapping[str, str] = field(default_factory=dict)
    _process: "subprocess.Popen[str] | None" = None

    def run(self, command: Command, log: Logger) -> None:
        """Run the job to its end, and log its lines. Raises AirflowException if it failed."""
        words = [self.python, *_program(command.script), *command.arguments]
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
            raise JobFailed(_killed(command.script.name, signal.Signals(-process.returncode)))
        if process.returncode:
            raise AirflowException(f"{command.script.name} exited with {process.returncode}")

    def stop(self) -> None:
        """End the job, and the driver that it may have started."""
        if self._process:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGTERM)


def _killed(what: str, by: signal.Signals) -> JobOutcome:
    """Return the outcome of a job that had no chance to report its own."""
    if by is not signal.SIGKILL:
        return JobOutcome(error=f"{what} was ended by {by.name}", exit_code=ExitCode.RETRY)
    return JobOutcome(
        error=f"{what} was killed by the system, often for want of memory",
        hint="give the machine more memory, or run fewer tasks at the same time",
        exit_code=ExitCode.RETRY,
    )


def _program(script: Path) -> list[str]:
    """Return the command: a job of the package runs from the other Python's own package."""
    if script.parent == PACKAGED:
        return ["-m", f"sluice.cli.jobs.{script.stem}"]
    return [str(script)]
