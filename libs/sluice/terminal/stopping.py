"""Ctrl-C during a run: batches at work end first, and a second one ends the process."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

STDERR = 2
SAID = "stopping: running batches end first; press Ctrl-C again to end at once\n"


@contextmanager
def stopping() -> Iterator[None]:
    """Report Ctrl-C at once within this context; raise KeyboardInterrupt as usual.

    Ending at once is safe, too: the next run repeats uncommitted work.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, _stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _stop(*_: Any) -> NoReturn:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.write(STDERR, f"\n{SAID}".encode())  # the printer may be interrupted itself
    raise KeyboardInterrupt
