"""What starting Spark needs to be told: settings for `spark-submit`, and Java's place.

The runtime knows it. It is asked by a command, in a process of its own, because nothing here may
import Spark: a tenth of what the JVM that it is for takes to start.
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
    """As the project in that folder has it."""
    command = [sys.executable, "-m", "sluice.runtime.launch", "--config", str(config)]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    if told.returncode != 0:
        raise AirflowFailException(told.stderr.strip())
    return Launch(**json.loads(told.stdout))
