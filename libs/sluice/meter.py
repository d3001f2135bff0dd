"""Cost of a batch: its seconds by phase, and its share of the CPU time.

CPU time is of pieces of work that share one process, and of the JVM that it has started.

What was used since the last look is shared equally by those at work. So the times add up to the
process's own, however many threads each of them uses. In the process of a command, work also bears
what was used before it while nothing was at work. Executors elsewhere are not counted.
"""

import os
import time
import weakref
from collections import Counter, deque
from collections.abc import Hashable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

T = TypeVar("T")


class Meter:
    """CPU seconds by piece of work. Several threads may use it at the same time.

    `keeps_idle`: seconds without work, and those that no note has, are the next work's. Only for a
    process that does nothing else.
    """

    def __init__(self, *, keeps_idle: bool = False) -> None:
        self.keeps_idle = keeps_idle
        self._busy = Counter[Hashable]()
        self._used: dict[Hashable, float] = {}
        self._noted: dict[Hashable, float] = {}
        self._kept = deque[float]()
        self._children: set[int] = set()
        self._looking = Lock()
        self._last = 0.0

    def begin(self, work: Hashable) -> None:
        """Count a piece of work from now on; several may run at the same time."""
        with self._looking:
            self._share()
            self._busy[work] += 1

    def end(self, work: Hashable) -> None:
        """Count it no longer."""
        with self._looking:
            self._share()
            self._busy[work] -= 1
            self._busy = +self._busy

    def note_seconds(self, work: Hashable) -> float:
        """Return the seconds of CPU that it has used so far, for its note."""
        with self._looking:
            self._share()
            self._noted[work] = self._used.get(work, 0.0)
            return self._noted[work]

    def forget(self, work: Hashable) -> None:
        """Forget a piece of work that has ended. Takes no lock: a finalizer calls it."""
        rest = self._used.pop(work, 0.0) - self._noted.pop(work, 0.0)
        if self.keeps_idle:
            self._kept.append(rest)

    def add_child(self, pid: int) -> None:
        """Count another process from its start on: a JVM that works for this one."""
        with self._looking:
            self._children.add(pid)

    def after_fork(self) -> None:
        """Begin again in a forked process, whose seconds start at 0. The parent bears its own."""
        self.__init__(keeps_idle=self.keeps_idle)  # type: ignore[misc]

    def _share(self) -> None:
        now = time.process_time() + sum(map(_of_process, self._children))
        since, self._last = max(now - self._last, 0.0), now
        self._kept.append(since)
        if not (self._busy or self.keeps_idle):
            self._kept.clear()
        elif self._busy:
            kept = sum(self._kept.popleft() for _ in range(len(self._kept)))
            for work in self._busy:
                self._used[work] = self._used.get(work, 0.0) + kept / len(self._busy)


def _of_process(pid: int) -> float:
    """Return the CPU time of another process; 0 if the system does not report it."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    except (OSError, UnicodeDecodeError):
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


METER = Meter()
os.register_at_fork(after_in_child=METER.after_fork)


class Clock:
    """Seconds by phase, and the cost of the work since the clock was created."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._began = datetime.now(UTC)
        self._since = time.monotonic()
        weakref.finalize(self, METER.forget, id(self))

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time the work inside."""
        began = time.monotonic()
        METER.begin(id(self))
        try:
            yield
        finally:
            METER.end(id(self))
            taken = self.seconds.get(name, 0.0) + time.monotonic() - began
            self.seconds[name] = round(taken, 3)

    @contextmanager
    def timed(self, name: str, context: AbstractContextManager[T]) -> Iterator[T]:
        """Enter `context`, and add the time that entering takes."""
        with ExitStack() as held:
            with self.phase(name):
                entered = held.enter_context(context)
            yield entered

    def spent(self, attempt: str, read: int, whole: int | None = None) -> "Spent":
        """Return the cost of an attempt up to its commit, for its position.

        `read`: bytes of new data; `whole`: bytes of the inputs, which a rebuild would read.
        """
        return Spent(self, attempt, read, whole)

    def to_now(self) -> dict[str, Any]:
        """Return the start of the work, and its seconds and CPU until now."""
        return {
            "began": self._began.isoformat(),
            "seconds": round(time.monotonic() - self._since, 3),
            "cpu": round(METER.note_seconds(id(self)), 3),
        }


class Spent(Mapping[str, Any]):
    """Cost of a batch for its commit: computed only when the commit is made."""

    def __init__(self, clock: Clock, attempt: str, read: int, whole: int | None) -> None:
        self._clock = clock
        self._known: dict[str, Any] = {"attempt": attempt, "read": read}
        self._known |= {} if whole is None else {"whole": whole}

    def __getitem__(self, name: str) -> Any:
        return {**self._clock.to_now(), **self._known}[name]

    def __iter__(self) -> Iterator[str]:
        return iter((*self._clock.to_now(), *self._known))

    def __len__(self) -> int:
        return sum(1 for _ in self)
