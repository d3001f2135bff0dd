"""The last step of `make setup`: checks that the installation is complete. All files of all
packages must exist, and modules that commands need must import. Packages that take seconds to
import (Airflow, Great Expectations) are only checked for files. It takes two seconds.
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
HINT = "hint: create it again: rm -rf .venv && make setup"


def missing(installed: Iterable[Distribution]) -> Iterator[str]:
    """Yield `package: file` for missing files of installed packages."""
    for distribution in installed:
        for file in distribution.files or ():
            if not distribution.locate_file(file).exists():  # type: ignore[attr-defined]
                yield f"{distribution.name}: {file} is missing"


def unusable(modules: Iterable[str]) -> Iterator[str]:
    """Yield `module: why` for modules that can't be imported."""
    for module in modules:
        try:
            import_module(module)
        except Exception as error:  # noqa: BLE001 - whatever a broken package raises
            yield f"{module} can't be imported: {type(error).__name__}: {error}"


def main() -> int:
    """Return 0 if all is complete; else print the fault."""
    found = list(islice((*missing(distributions()), *unusable(MODULES)), SHOWN))
    for problem in found:
        print(f"error: .venv is broken: {problem}", file=sys.stderr)
    if found:
        print(HINT, file=sys.stderr)
    return 2 if found else 0


if __name__ == "__main__":
    sys.exit(main())
