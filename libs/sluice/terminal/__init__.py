"""Options and output shared by all commands, also by the commands of kinds.

Here is a command as the program of a process, which ends as soon as it has nothing left to do.
"""

import atexit
import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, NoReturn

import click

from sluice.meter import METER

# Of objects; rows are tuples, and modules stay: both are many, and never in cycles.
COLLECTED_AT = (50_000, 20, 20)

_is_guest: ContextVar[bool] = ContextVar("_is_guest", default=False)
_is_program: ContextVar[bool] = ContextVar("_is_program", default=False)


def run(command: click.Command) -> NoReturn:
    """Run a command with the process's arguments, and end the process with its exit code.

    Python frees what a process holds before it ends. A thread of Arrow that then still holds a
    Python object, such as the error of an unreadable file, aborts the process. The exit code would
    be a signal's. So the process ends without; that is also quicker. Threads and exit handlers end
    as always. In the process of another program, SystemExit is raised.
    """
    if _is_guest.get():
        sys.exit(command.main())
    _is_program.set(True)
    gc.set_threshold(*COLLECTED_AT)
    METER.keeps_idle = True
    code: object = 0
    try:
        command.main()
    except SystemExit as end:
        code = end.code
    except BaseException as error:  # noqa: BLE001 - a trace that --debug has asked for
        sys.excepthook(type(error), error, error.__traceback__)
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001
    atexit._run_exitfuncs()  # noqa: SLF001
    with suppress(OSError):  # a reader that has exited
        sys.stdout.flush()
    os._exit(code if isinstance(code, int) else 1)


def is_program() -> bool:
    """True if this process only runs one command, so it may be forked."""
    return _is_program.get()


@contextmanager
def as_guest() -> Iterator[None]:
    """Let programs that run within this context return to the process that runs them."""
    before = _is_guest.set(True)
    try:
        yield
    finally:
        _is_guest.reset(before)


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
