"""Progress of a long computation: a line every half minute, for readers of a task's log.

A Spark Connect server reports to its clients; a Spark of one's own is asked. Commands draw their
own progress and ignore these lines. If Spark shows pages of its own, the log gives their address.
"""

import logging
import time
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

EVERY = 30.0
UI_PORT = "4040"
log = logging.getLogger(__name__)


class Progress:
    """Listener for the progress that a Spark Connect server reports of a session's operations."""

    def __init__(self) -> None:
        self._operation = ""
        self._printed = 0.0

    def __call__(
        self, stages: Any, inflight_tasks: int, operation_id: str | None, done: bool, **_: Any
    ) -> None:
        """Log the operation's progress, unless that was done a short while ago."""
        now = time.monotonic()
        if operation_id and operation_id != self._operation:
            self._operation, self._printed = operation_id, now
        if stages and not done and now - self._printed >= EVERY:
            self._printed = now
            finished = sum(stage.num_completed_tasks for stage in stages)
            known = sum(stage.num_tasks for stage in stages)
            read = sum(stage.num_bytes_read for stage in stages) / 1e6
            _print(finished, known, inflight_tasks, f", {read:,.0f} MB read")


def watch(context: "SparkContext") -> Event:
    """Log the progress of this process's own Spark at intervals, until the event is set."""
    ended = Event()
    Thread(target=_watch, args=(context, ended), name="progress", daemon=True).start()
    return ended


def say_where(session: "SparkSession", *, is_remote: bool) -> None:
    """Log the address of Spark's own pages, if it has any."""
    if not is_remote:
        url = session.sparkContext.uiWebUrl
    elif session.conf.get("spark.ui.enabled", "true") == "true":
        host = session.conf.get("spark.driver.host", "localhost")
        url = f"http://{host}:{session.conf.get('spark.ui.port', UI_PORT)}"
    else:
        url = None
    if url:
        log.info("Spark's own pages: %s", url)


def _watch(context: "SparkContext", ended: Event) -> None:
    """Log the progress of jobs that last from one look to the next."""
    tracker, before = context.statusTracker(), frozenset[int]()
    while not ended.wait(EVERY):
        try:
            jobs = frozenset(tracker.getActiveJobsIds())
            found = [tracker.getStageInfo(nth) for nth in tracker.getActiveStageIds()]
        except Exception:  # noqa: BLE001 Spark has ended, which is reported elsewhere
            return
        stages = [stage for stage in found if stage]
        if stages and jobs & before:
            finished = sum(stage.numCompletedTasks for stage in stages)
            running = sum(stage.numActiveTasks for stage in stages)
            _print(finished, sum(stage.numTasks for stage in stages), running)
        before = jobs


def _print(finished: int, known: int, running: int, more: str = "") -> None:
    log.info("so far %s of %s Spark tasks done, %s running%s", finished, known, running, more)
