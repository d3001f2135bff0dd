"""Additional processes that compute batches, so that a run uses every core.

The interpreter is Python, which computes on one core in a process. Each of these takes one piece of
work at a time and hands back its reports. It never starts Spark: work that needs it is begun again
in the process that asked. It ends when that one does, however that ends.
"""

import ctypes
import gc
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, NoReturn, Self

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.engine.batch_report import BatchReport
from sluice.errors import Retryable, SluiceError
from sluice.operate.run_failures import named
from sluice.spark.session import COLLECTED_AT, Spark

Work = Callable[..., Iterable[BatchReport]]  # of a Spark, a project, a table and plain values
ProcessAnswer = tuple[tuple[BatchReport, ...], bool]  # reports, and True if they are all
MOST = 4  # workers of a run, this process among them
PR_SET_PDEATHSIG = 1


@contextmanager
def forked(project: Project, tables: Sequence[Table]) -> Iterator[tuple["Process", ...]]:
    """Yield processes for a run of these tables; none where only this one can do the work.

    To be called before this process has opened a table: delta-rs does not survive a fork.
    """
    made: list[Process] = []
    if count := _count(project, tables):
        import_module("pandas")  # by Arrow's first value; once for all of them
    for _ in range(count):
        made.append(Process(project, made))
    try:
        yield tuple(made)
    finally:
        for process in made:
            process.end()


def _count(project: Project, tables: Sequence[Table]) -> int:
    """Return how many can help. A project in an environment has looked into its lake already."""
    if sys.platform != "linux" or project.environment or not project.spark.computes_here:
        return 0
    stored = sum(table.is_stored for table in tables)
    return max(min(MOST, os.cpu_count() or 1, stored) - 1, 0)


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
        """Return what `work` reports before it needs Spark, if it does: the caller does the rest.

        Raises Retryable if the process is killed meanwhile. All later work is left to the caller.
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
    """Serve requests until the other end is closed. Ctrl-C is the other's to heed."""
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
            end.send(_done(work, spark, project, project.graph.table(name), *more))


def _done(
    work: Work, spark: Spark, project: Project, table: Table, *more: Any
) -> ProcessAnswer | SluiceError:
    """Return the reports, or the error with its trace as a note."""
    reports: list[BatchReport] = []
    try:
        with named(table.id):
            reports.extend(work(spark, project, table, *more))
    except SluiceError as error:
        error.add_note("".join(traceback.format_exception(error)))
        return error
    except _NeedsSpark:
        return tuple(reports), False
    return tuple(reports), True


class _NeedsSpark(BaseException):
    """Work that needs a session of Spark. Nothing that handles errors handles it."""


class _Elsewhere(Spark):
    """Spark as a process without it sees it."""

    @property
    def session(self) -> NoReturn:
        raise _NeedsSpark
