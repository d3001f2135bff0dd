"""Workers that process a run's tables at the same time, each table after its inputs.

A batch keeps one core busy; meanwhile the others take other tables. Each worker has its own Spark
session, because a session's settings concern the table it writes.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import chain, repeat
from threading import Lock
from types import TracebackType
from typing import Any, Self, TypeVar

from sluice.declare.graph import Graph
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.engine.batch_report import BatchReport
from sluice.operate.processes import MOST, Process, Work
from sluice.spark.session import Spark

T = TypeVar("T")


@dataclass(frozen=True)
class Worker:
    """A session, and the process that computes what needs none, if that is another one."""

    spark: Spark
    process: Process | None = None

    def do(self, work: Work, project: Project, table: Table, *more: Any) -> tuple[BatchReport, ...]:
        """Return what `work`, which is safe to repeat, reports. `more`: values that may be sent."""
        done, are_all = self.process.do(work, table, *more) if self.process else ((), False)
        if are_all:
            return done
        known = {report.table for report in done}
        rest = work(self.spark, project, table, *more)
        return (*done, *(r for r in rest if r.outcome != "unchanged" or r.table not in known))


class Workers:
    """Pool of a few threads, each with its own session and perhaps a process of the project."""

    def __init__(self, spark: Spark, processes: Sequence[Process] = ()):
        count = min(MOST, os.cpu_count() or 1)
        sparks = [spark, *(spark.sibling() for _ in range(count - 1))]
        helping = chain((None,), processes, repeat(None))
        self._idle = [Worker(*pair) for pair in zip(sparks, helping, strict=False)]
        self._choosing = Lock()
        self._last: dict[str, Worker] = {}
        self._threads = ThreadPoolExecutor(count)

    def in_order(
        self, tables: Iterable[Table], graph: Graph, do: Callable[[Worker, Table], T]
    ) -> Iterator[T]:
        """Yield what `do` returns for each table when it is done; inputs come before their views.

        Dimensions are begun first. A table returns to its last worker, who has it open, if it can.
        """
        wanted = {t.id: t for t in sorted(tables, key=lambda t: not t.is_loaded)}
        above = {i: {t.id for t in graph.ancestors(i)} & wanted.keys() for i in wanted}
        order = TopologicalSorter(above)
        order.prepare()
        running: dict[Future[T], str] = {}
        while order.is_active():
            for ready in order.get_ready():
                running[self._threads.submit(self._taken, do, wanted[ready])] = ready
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                order.done(running.pop(future))
                yield future.result()

    def _taken(self, do: Callable[[Worker, Table], T], table: Table) -> T:
        with self._worker(table) as worker:
            return do(worker, table)

    @contextmanager
    def _worker(self, table: Table) -> Iterator[Worker]:
        with self._choosing:
            last = self._last.get(table.id)
            worker = last if last in self._idle else self._idle[0]
            self._idle.remove(worker)
            self._last[table.id] = worker
        try:
            yield worker
        finally:
            with self._choosing:
                self._idle.append(worker)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._threads.shutdown(cancel_futures=True)
