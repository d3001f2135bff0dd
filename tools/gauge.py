"""Peak memory of several processes together."""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Self

import psutil  # type: ignore[import-untyped]

from daemons import memory

PAUSE = 2.0


class Gauge:
    """Samples memory while it is open; `peaks`: bytes of Python and Spark. To cost little, the
    first samples are `pause` seconds apart, later ones a hundredth of the time so far, at most
    PAUSE.
    """

    def __init__(
        self, processes: Callable[[], Sequence[psutil.Process]], pause: float = PAUSE
    ) -> None:
        self.processes = processes
        self.pause = pause
        self.peaks = {"Python": 0, "Spark": 0}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def __str__(self) -> str:
        return ", ".join(f"{name} {size / 2**20:.0f} MB" for name, size in self.peaks.items())

    def _watch(self) -> None:
        began = time.monotonic()
        while not self._ended.wait(self._next(time.monotonic() - began)):
            processes = self.processes()
            java = [process for process in processes if _is_java(process)]
            self._raise("Spark", java)
            self._raise("Python", set(processes).difference(java))

    def _next(self, elapsed: float) -> float:
        return min(PAUSE, max(self.pause, elapsed / 100))

    def _raise(self, name: str, processes: Iterable[psutil.Process]) -> None:
        self.peaks[name] = max(self.peaks[name], memory(processes))


def _is_java(process: psutil.Process) -> bool:
    try:
        return bool(process.name() == "java")
    except psutil.Error:
        return False
