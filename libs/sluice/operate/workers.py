"""Workers of a run: threads that take its tables at the same time, and processes that help them.

A batch keeps one core busy; meanwhile the others take other tables. Each worker has its own Spark
session, because a session's settings concern the table it writes.

The interpreter is Python, which computes on one core in a process. So most workers have a process,
forked when the run begins. It takes one piece of work at a time and hands back its reports. It
never starts Spark: work that needs it is begun again in the process that asked. It ends when that
one does, however that ends.
"""

import ctypes
import gc
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from graphlib import TopologicalSorter
from importlib import import_module
from itertools import chain, repeat
from multiprocessing import get_context
from multiprocessing.connection import Connection
from threading import Lock
from types import TracebackType
from typing import Any, NoReturn, Self, TypeVar

from sluice.declare.project import Project
from sluice.declare.table import Graph, Table
from sluice.engine import BatchReport
from sluice.engine.retries import naming_unforeseen
from sluice.errors import Retryable, SluiceError
from sluice.spark.session import Spark
from sluice.terminal import COLLECTED_AT

T = TypeVar("T")
Work = Callable[..., Iterable[BatchReport]]  # of a Spark, a project, a table and plain values
ProcessAnswer = tuple[tuple[BatchReport, ...], bool]  # reports, and True if they are all
MOST = 4  # workers of a run, this process among them
PR_SET_PDEATHSIG = 1


class Workers:
    """Pool of a few threads, each with its own session and perhaps a process of the project."""

    def __init__(self, spark: Spark, processes: Sequence["Process"] = ()):
        count = min(MOST, os.cpu_count() or 1)
        sparks = [spark, *(spark.sibling() for _ in range(count - 1))]
        helping = chain((None,), processes, repeat(None))
        self._idle = [Worker(*pair) for pair in zip(sparks, helping, strict=False)]
        self._choosing = Lock()
        self._last: dict[str, Worker] = {}
        self._threads = ThreadPoolExecutor(count)

    def in_order(
        self, tables: Iterable[Table], graph: Graph, do: "Callable[[Worker, Table], T]"
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
                running[self._threads.submit(self._take, do, wanted[ready])] = ready
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                order.done(running.pop(future))
                yield future.result()

    def _take(self, do: "Callable[[Worker, Table], T]", table: Table) -> T:
        with self._choosing:
            last = self._last.get(table.id)
            worker = last if last in self._idle else self._idle[0]
            self._idle.remove(worker)
            self._last[table.id] = worker
        try:
            return do(worker, table)
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


@dataclass(frozen=True)
class Worker:
    """A session, and the process that computes what needs none, if that is another one."""

    spark: Spark
    process: "Process | None" = None

    def do(self, work: Work, project: Project, table: Table, *more: Any) -> tuple[BatchReport, ...]:
        """Return what `work`, which is safe to repeat, reports. `more`: values that may be sent."""
        done, are_all = self.process.do(work, table, *more) if self.process else ((), False)
        if are_all:
            return done
        known = {report.table for report in done}
        # The work is begun again, so what the process has committed is found unchanged.
        rest = work(self.spark, project, table, *more)
        return (*done, *(r for r in rest if r.outcome != "unchanged" or r.table not in known))


@contextmanager
def forked(project: Project, tables: Sequence[Table]) -> Iterator[tuple["Process", ...]]:
    """Yield processes for a run of these tables; none where only this one can do the work.

    To be called before this process has opened a table: delta-rs does not survive a fork. A project
    in an environment has looked into its lake already.
    """
    count, made = 0, list[Process]()
    if sys.platform == "linux" and not project.environment and project.spark.computes_here:
        stored = sum(table.is_stored for table in tables)
        count = max(min(MOST, os.cpu_count() or 1, stored) - 1, 0)
    if count:
        import_module("pandas")  # by Arrow's first value; once for all of them
    for _ in range(count):
        made.append(Process(project, made))
    try:
        yield tuple(made)
    finally:
        for process in made:
            process.end()


class Process:
    """A process forked from this one, with its project. One thread at a time may use it."""

    def __init__(self, project: Project, before: Iterable[Self]):
        fork = get_context("fork")
        self.end_here, end = fork.Pipe()
        inherited = [self.end_here, *(other.end_here for other in before)]
        self._process = fork.Process(target=_serve, args=(end, inherited, project))
        self._process.start()
        end.close()

    @property
    def pid(self) -> int | None:
        return self._process.pid

    def do(self, work: Work, table: Table, *more: Any) -> ProcessAnswer:
        """Return the reports of `work`.

        If it needs Spark, only those before that: the caller does the rest. Raises Retryable if the
        process is killed meanwhile. All later work is left to the caller.
        """
        if self.end_here.closed:
            return (), False
        try:
            self.end_here.send((work, table.id, more))
            found = self.end_here.recv()
        except (EOFError, OSError):
            self.end()
            raise Retryable(
                f"{table.id}: the process that computed it has ended (exit code "
                f"{self._process.exitcode})",
                hint="nothing is half-written; run it again to continue. A process that is killed "
                "(-9) may have had too little memory",
            ) from None
        if isinstance(found, SluiceError):
            raise found
        return found  # type: ignore[no-any-return]

    def end(self) -> None:
        """Let it end, which it does when it has nothing left to do."""
        self.end_here.close()
        self._process.join()


def _serve(end: Connection, inherited: Iterable[Connection], project: Project) -> None:
    """Serve requests until the other end is closed.

    Ctrl-C is ignored: the asking process handles it.
    """
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for other in inherited:
        other.close()
    gc.freeze()
    gc.set_threshold(*COLLECTED_AT)
    spark = _Elsewhere(project.spark)
    with suppress(EOFError, OSError):
        while True:
            work, name, more = end.recv()
            end.send(_do(work, spark, project, project.graph.table(name), *more))


def _do(
    work: Work, spark: Spark, project: Project, table: Table, *more: Any
) -> ProcessAnswer | SluiceError:
    reports: list[BatchReport] = []
    try:
        with naming_unforeseen(table.id):
            reports.extend(work(spark, project, table, *more))
    except SluiceError as error:
        error.add_note("".join(traceback.format_exception(error)))
        return error
    except _NeedsSpark:
        return tuple(reports), False
    return tuple(reports), True


class _NeedsSpark(BaseException):
    """Work that needs a session of Spark. A BaseException, so handlers of errors miss it."""


class _Elsewhere(Spark):
    """Stand-in for Spark in a helping process; asking for its session raises _NeedsSpark."""

    @property
    def session(self) -> NoReturn:
        raise _NeedsSpark
