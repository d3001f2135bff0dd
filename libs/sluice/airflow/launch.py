"""Settings for starting Spark: those of `spark-submit`, and Java's place.

`sluice.spark` knows them. A command in a process of its own asks it, because nothing here may
import Spark. The command takes a tenth of the time that the JVM needs to start.
"""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from airflow.sdk.exceptions import AirflowFailException


@dataclass(frozen=True)
class Launch:
    """Spark settings, and the environment of the process that starts it."""

    conf: dict[str, str]
    environ: dict[str, str]


def launch_settings(config: Path) -> Launch:
    """Return the settings of the project in that folder."""
    command = [sys.executable, "-m", "sluice.spark.launch", "--config", str(config)]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    if told.returncode != 0:
        raise AirflowFailException(told.stderr.strip())
    return Launch(**json.loads(told.stdout))
