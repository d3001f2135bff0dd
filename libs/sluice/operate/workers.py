"""Workers that process a run's tables at the same time, each table after its inputs.

A small batch keeps one core busy with planning; meanwhile the others take other tables. Each worker
has its own Spark session, because a session's settings concern the table it writes.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from graphlib import TopologicalSorter
from queue import SimpleQueue
from types import TracebackType
from typing import Self, TypeVar

from sluice.declare.graph import Graph
from sluice.declare.table import Table
from sluice.spark.session import Spark

T = TypeVar("T")
MOST = 4


class Workers:
    """Pool of a few threads, each with its own session."""

    def __init__(self, spark: Spark):
        count = min(MOST, os.cpu_count() or 1)
        self._idle: SimpleQueue[Spark] = SimpleQueue()
        for worker in [spark, *(spark.sibling() for _ in range(count - 1))]:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(count)

    def in_order(
        self, tables: Iterable[Table], graph: Graph, do: Callable[[Spark, Table], T]
    ) -> Iterator[T]:
        """Yield what `do` returns for each table when it is done; inputs come before their views.

        Dimensions are begun first.
        """
        wanted = {t.id: t for t in sorted(tables, key=lambda t: not t.is_dimension)}
        above = {i: {t.id for t in graph.ancestors(i)} & wanted.keys() for i in wanted}
        order = TopologicalSorter(above)
        order.prepare()
        running: dict[Future[T], str] = {}
        while order.is_active():
            for ready in order.get_ready():
                running[self._threads.submit(self._with_session, do, wanted[ready])] = ready
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                order.done(running.pop(future))
                yield future.result()

    def _with_session(self, do: Callable[[Spark, Table], T], table: Table) -> T:
        spark = self._idle.get()
        try:
            return do(spark, table)
        finally:
            self._idle.put(spark)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._threads.shutdown(cancel_futures=True)
