"""How far a long computation is: a line every half minute, for those who read a task's log."""

import time
from typing import Any

from pyspark.sql.connect.shell.progress import ProgressHandler

EVERY = 30.0


class Progress(ProgressHandler):
    """Hears from a Spark Connect server how the operations of a session go on."""

    def __init__(self) -> None:
        self._operation = ""
        self._told = 0.0

    def __call__(
        self, stages: Any, inflight_tasks: int, operation_id: str | None, done: bool, **_: Any
    ) -> None:
        """Says how far the operation is, if it has not done so for a while."""
        now = time.monotonic()
        if operation_id and operation_id != self._operation:
            self._operation, self._told = operation_id, now
        if stages and not done and now - self._told >= EVERY:
            self._told = now
            print(_line(stages, inflight_tasks), flush=True)


def _line(stages: Any, running: int) -> str:
    done = sum(stage.num_completed_tasks for stage in stages)
    known = sum(stage.num_tasks for stage in stages)
    read = sum(stage.num_bytes_read for stage in stages) / 1e6
    return f"so far {done} of {known} Spark tasks done, {running} running, {read:,.0f} MB read"
