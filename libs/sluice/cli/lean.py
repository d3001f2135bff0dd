"""Reads without pandas, whose import takes longer than most of them.

At its first scalar, PyArrow imports pandas to find out whether it is there. In a process that only
reads, it learns that in advance. It still imports pandas if rows are converted to it.
"""

import sys
from importlib.abc import MetaPathFinder

import pyarrow as pa


class _Hidden(MetaPathFinder):
    """A finder that reports pandas as not installed."""

    def find_spec(self, name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name=name)


def without_pandas() -> None:
    """Have PyArrow decide now that rows are not pandas objects, unless pandas was imported."""
    if "pandas" in sys.modules:
        return
    hidden = _Hidden()
    sys.meta_path.insert(0, hidden)
    try:
        pa.scalar(True)
    finally:
        sys.meta_path.remove(hidden)
