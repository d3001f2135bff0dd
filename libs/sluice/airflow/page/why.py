"""Explanation of one row for the page, by `sluice why` in a process of its own.

So the server imports nothing that computes. The command reads tables without Spark.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sluice.airflow.connections import environ
from sluice.declare.project import Project

LONGEST = 60  # seconds
ROWS = "10"  # shown of each table


def why(project: Project, config: Path, table: str, named: Sequence[str]) -> dict[str, Any]:
    """Return what `sluice why` says of a row, or its `trouble`. `named`: its options and values."""
    python = project.airflow.python or sys.executable
    command = [python, "-m", "sluice.cli.main", "why", table, *named, "--rows", ROWS, "--json"]
    try:
        done = subprocess.run(
            [*command, "--config", str(config)],
            capture_output=True,
            text=True,
            timeout=LONGEST,
            env=environ(project),
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"trouble": str(error)}
    if done.returncode:
        return {"trouble": done.stderr.strip()}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def options(
    key: Sequence[str], partition: Sequence[str], rank: int | None, time: str | None
) -> list[str]:
    """Return the command's options that name a row; values can't be taken for options."""
    given = [f"--key={value}" for value in key]
    given += [f"--partition={pair}" for pair in partition]
    given += [f"--rank={rank}"] if rank is not None else []
    return given + ([f"--time={time}"] if time else [])
