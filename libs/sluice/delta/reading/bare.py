"""Tables read as if they had no rows: their columns are known from the log, no file is opened.

So a plan can compile a batch over them without reading anything.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_is_bare: ContextVar[bool] = ContextVar("_is_bare", default=False)


def is_bare() -> bool:
    """True if reads return no rows, in this thread."""
    return _is_bare.get()


@contextmanager
def without_rows() -> Iterator[None]:
    """Have reads in this thread return no rows while the context is open."""
    before = _is_bare.set(True)
    try:
        yield
    finally:
        _is_bare.reset(before)
