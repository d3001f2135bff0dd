"""The last step of `make setup`: whether what was installed is whole.

Every file that a package brought is there, and what commands need is imported; the packages that
take seconds to import (Airflow, Great Expectations) are only looked at. Two seconds in all.
"""

import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.metadata import Distribution, distributions
from itertools import islice

MODULES = (
    *("deltalake", "pyarrow", "pandas", "grpc", "sqlglot", "croniter"),
    *("pyspark.sql", "pyspark.sql.connect.session", "sluice.cli.main", "sluice.engine.advance"),
)
SHOWN = 5
HINT = "hint: make it again: rm -rf .venv && make setup"


def missing(installed: Iterable[Distribution]) -> Iterator[str]:
    """`package: file` for what was installed and isn't there."""
    for distribution in installed:
        for file in distribution.files or ():
            if not distribution.locate_file(file).exists():  # type: ignore[attr-defined]
                yield f"{distribution.name}: {file} is missing"


def unusable(modules: Iterable[str]) -> Iterator[str]:
    """`module: why` for what can't be imported."""
    for module in modules:
        try:
            import_module(module)
        except Exception as error:  # noqa: BLE001 - whatever a broken package raises
            yield f"{module} can't be imported: {type(error).__name__}: {error}"


def main() -> int:
    """0 if all is whole; else says what isn't."""
    found = list(islice((*missing(distributions()), *unusable(MODULES)), SHOWN))
    for problem in found:
        print(f"error: .venv is broken: {problem}", file=sys.stderr)
    if found:
        print(HINT, file=sys.stderr)
    return 2 if found else 0


if __name__ == "__main__":
    sys.exit(main())
