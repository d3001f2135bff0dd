"""Threads that read, so that a long read delays no other request.

A further thread is started only when all are busy, because each keeps the memory of a page. They
take reads from a plain queue: an executor takes several times as long as most reads of one row.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


class Readers:
    """At most so many threads; they end with the process. Its methods are called in one loop."""

    def __init__(self, most: int) -> None:
        self._most, self._started, self._busy = most, 0, 0
        self._reads = SimpleQueue[Callable[[], None]]()

    def begin(
        self, read: Callable[[], T], ended: Callable[[], None] = lambda: None
    ) -> "asyncio.Future[T]":
        """Return the future of what a read returns; `ended` is called once a thread is free."""
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[T] = loop.create_future()

        def end(found: Any, wrong: Exception | None) -> None:
            nonlocal answered
            self._busy -= 1
            ended()
            hand_over(answered, found, wrong)
            del answered

        def work() -> None:
            found, wrong = None, None
            try:
                found = read()
            except Exception as error:  # noqa: BLE001  # of a read: who waits for it gets it
                wrong = error
            except BaseException as error:  # noqa: BLE001  # a panic of a library
                wrong = SystemError(repr(error))
            with suppress(RuntimeError):  # of a loop that has ended: nobody waits any more
                loop.call_soon_threadsafe(end, found, wrong)
            del wrong  # its trace holds this frame, and all that the read had

        self._busy += 1
        if self._started < min(self._busy, self._most):
            self._started += 1
            Thread(target=_take_all, args=(self._reads,), name="read", daemon=True).start()
        self._reads.put(work)
        return answered


def hand_over(answered: "asyncio.Future[Any]", found: Any, wrong: Exception | None) -> None:
    """Hand over what a read found, if somebody still waits for it."""
    if not answered.done():
        answered.set_exception(wrong) if wrong else answered.set_result(found)


def _take_all(reads: "SimpleQueue[Callable[[], None]]") -> None:
    while True:
        reads.get()()
