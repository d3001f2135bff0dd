"""Versions that the core suite has passed with: `make matrix`, and the table of docs/install.md."""

import sys
from collections.abc import Iterator
from importlib.metadata import version

from sluice.spark.starting import minor

PACKAGES = ("pyspark-client", "deltalake", "pyarrow", "pandas")
TESTED = (  # Python, then each of the packages, by minor version
    ("3.11", "4.1", "1.6", "25.0", "2.2"),
    ("3.11", "4.2", "1.6", "26.0", "2.3"),
    ("3.12", "4.1", "1.6", "26.0", "2.3"),
    ("3.13", "4.2", "1.6", "26.0", "2.3"),
    ("3.14", "4.2", "1.6", "26.0", "2.3"),
)


def untested() -> Iterator[str]:
    """Yield a sentence if this Python and these packages were not tested together."""
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = (here, *(minor(version(package)) for package in PACKAGES))
    if found not in TESTED:
        nearest = max(TESTED, key=lambda row: sum(map(str.__eq__, row, found)))
        yield (
            f"{_words(found)} were not tested together; the nearest that were: {_words(nearest)}"
        )


def _words(row: tuple[str, ...]) -> str:
    return ", ".join(map(" ".join, zip(("Python", *PACKAGES), row, strict=True)))
