"""A command as a program of its own, whose process ends as soon as it has nothing left to do."""

import atexit
import os
import sys
import threading
from contextlib import suppress
from typing import Any, NoReturn

import click


class Program(click.Command):
    """A command that ends its process when it is called, with its exit code.

    Python frees what a process holds before it ends. A thread of Arrow that still has an object of
    Python's then, such as the error of a file that could not be read, aborts the process: the exit
    code would be a signal's. So the process ends without; that is also quicker.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Run the command of the process's arguments. Threads and exit handlers end as always."""
        code: object = 0
        try:
            self.main(*args, **kwargs)
        except SystemExit as end:
            code = end.code
        except BaseException as error:  # noqa: BLE001 - a trace that --debug has asked for
            sys.excepthook(type(error), error, error.__traceback__)
            code = 1
        threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001
        atexit._run_exitfuncs()  # noqa: SLF001
        with suppress(OSError):  # a reader that is gone
            sys.stdout.flush()
        os._exit(code if isinstance(code, int) else 1)
