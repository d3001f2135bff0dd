"""Tasks that stand still where they are about to commit, as in a machine that hangs.

Whatever commits to `hits` while `STOPS` is in its environment stops first; tests wake it, or not.
"""

import json
import time
from pathlib import Path

import psutil

from sluice.delta.places.failpoint import VARIABLE
from stack import Stack

DUEL = """
pipeline: duel
schedule: "@daily"
start_date: 2024-03-01
end_date: 2024-03-05
airflow: {retries: 1, retry_delay: 1 second}
sources:
  shots:
    path: "${SLUICE_LANDING:-landing}/shots/{interval_start:%Y-%m-%d}/"
    format: json
    schema: id INT
views:
  hits: {kind: topk, from: shots, order_by: [id desc], limit: 9}
"""
STOPS = {VARIABLE: "committing:hits!STOP"}


def shoot(landing: Path, day: str, *numbers: int) -> None:
    """A day's shots."""
    file = landing / "shots" / day / "a.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{json.dumps({'id': n})}\n" for n in numbers), "utf-8")


def stopped(stack: Stack, patience: float = 300) -> psutil.Process:
    """The task that stands still, once there is one."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        for process in stack.daemons.processes():
            if stands_still(process):
                return process
        time.sleep(0.1)
    raise TimeoutError(f"no task has stopped within {patience} s")


def stands_still(process: psutil.Process) -> bool:
    """Whether it is stopped; false once it has ended."""
    try:
        return bool(process.status() == psutil.STATUS_STOPPED)
    except psutil.Error:
        return False
