"""Progress of a backfill: a board of tasks by runs on a terminal, else lines.

On a terminal the board is redrawn every second; elsewhere, as in CI, a line is printed at once,
then whenever ten more tasks are done, and every ten seconds at the latest.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from airflow_client import DONE, AirflowClient, RunOfDag, RunOfTask

MARKS = {
    "success": ("●", "green"),
    "skipped": ("·", "dim"),
    "failed": ("✗", "bold red"),
    "upstream_failed": ("✗", "red"),
    "running": ("▶", "yellow"),
    "queued": ("○", "cyan"),
    "up_for_retry": ("↻", "yellow"),
}
ENDED = frozenset({"success", "skipped", "failed", "upstream_failed", "removed"})
PAUSE = 1.0
STEP, PATIENCE = 10, 10.0  # tasks and seconds between two lines


class Board:
    """Display of the runs of one DAG."""

    def __init__(self, client: AirflowClient, dag: str, order: Sequence[str]) -> None:
        self.client = client
        self.dag = dag
        self.order = order
        self.console = Console()
        self.began = time.monotonic()

    def follow(self, days: Sequence[str], note: Callable[[], str]) -> list[RunOfTask]:
        """Show the backfill of these days until it ends; return its tasks. `note` may raise."""
        self.began = time.monotonic()
        told = Told()
        with Live(console=self.console, refresh_per_second=4, transient=False) as live:
            while True:
                runs = [run for run in self.client.runs(self.dag) if run.start in days]
                tasks = [task for task in self.client.tasks(self.dag) if task.day in days]
                done = sum(task.state in ENDED for task in tasks)
                note_ = note()
                if self.console.is_terminal:
                    live.update(self._drawn(days, tasks, note_))
                elif told.is_due(done, time.monotonic()):
                    self.console.print(self._line(tasks, note_))
                if _has_ended(runs, days):
                    break
                time.sleep(PAUSE)
        if not self.console.is_terminal:
            self.console.print(self._line(tasks, note_))
        return tasks

    def _drawn(self, days: Sequence[str], tasks: Sequence[RunOfTask], note: str) -> Group:
        by_place = {(task.task, task.day): task for task in tasks}
        table = Table(box=None, padding=(0, 1), header_style="bold")
        table.add_column(self.dag)
        for day in days:
            table.add_column(day[5:], justify="center")
        for name in self.order:
            table.add_row(name, *(_cell(by_place.get((name, day))) for day in days))
        return Group(table, Text(self._line(tasks, note), style="bold"))

    def _line(self, tasks: Sequence[RunOfTask], note: str) -> str:
        states = Counter(task.state for task in tasks)
        counts = ", ".join(f"{states[name]} {word}" for name, word in WORDS if states[name])
        return f"{time.monotonic() - self.began:5.0f} s  {counts or 'waiting'}  {note}"


@dataclass
class Told:
    """The last printed line, if there is no board."""

    done: int = 0
    at: float | None = None

    def is_due(self, done: int, now: float) -> bool:
        """Return True if another line is due; remember it."""
        is_due = self.at is None or done >= self.done + STEP or now >= self.at + PATIENCE
        if is_due:
            self.done, self.at = done, now
        return is_due


WORDS = (
    ("success", "done"),
    ("skipped", "skipped"),
    ("running", "running"),
    ("up_for_retry", "to be tried again"),
    ("failed", "failed"),
)


def _cell(task: RunOfTask | None) -> Text:
    mark, style = MARKS.get(task.state if task else "", (" ", ""))
    return Text(mark, style)


def _has_ended(runs: Sequence[RunOfDag], days: Sequence[str]) -> bool:
    ended = [run for run in runs if run.state in DONE]
    return {run.start for run in ended} == set(days) and len(ended) == len(runs)
