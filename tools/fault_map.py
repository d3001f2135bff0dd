"""Which tests reach which faults: the place of each fault reports the test that runs there.

The reports come from the copy of the code while the tests run once, also from commands in forks,
from other processes, and from those that are killed. A test reaches a fault outside of functions if
it calls any function of the module.
"""

import ast
import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import takewhile
from pathlib import Path
from typing import Any

from fault_sites import Fault

MAPPED = "FAULT_MAP"  # the folder of the map that this process and those below it make
RUNNING = "PYTEST_CURRENT_TEST"  # kept by pytest: a test and its phase
_reported = set[tuple[str, str]]()


def report_reached(*keys: str) -> None:
    """Add the test that runs to those that reach these faults."""
    test = os.environ.get(RUNNING, "").rpartition(" ")[0]
    new = [key for key in keys if (key, test) not in _reported]
    if new and test and MAPPED in os.environ:
        _reported.update((key, test) for key in new)
        with (Path(os.environ[MAPPED]) / "reached.tsv").open("a", encoding="utf-8") as file:
            file.write("".join(f"{key}\t{test}\n" for key in new))


def insert_reports(source: str, faults: Sequence[Fault]) -> str:
    """Return a module's text that reports whenever one of its faults is reached."""
    tree = ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    keys = defaultdict[int, list[str]](list)  # by line of a statement in a function
    for fault in faults:
        everywhere = [function.body[0].lineno for function in functions]
        for line in everywhere if fault.reach is None else [fault.reach]:
            keys[line].append(fault.key)
    blocks = [
        block
        for node in ast.walk(tree)
        for name in ("body", "orelse", "finalbody")
        if isinstance(block := getattr(node, name, None), list)
    ]
    for block in blocks:
        for statement in list(block):
            if reached := keys.pop(statement.lineno, None):
                is_docstring = isinstance(statement, ast.Expr) and isinstance(
                    statement.value, ast.Constant
                )
                block.insert(block.index(statement) + is_docstring, _report(reached))
    return ast.unparse(ast.fix_missing_locations(tree))


def _report(keys: Sequence[str]) -> ast.stmt:
    return ast.parse(f"__import__('fault_map').report_reached(*{list(keys)!r})").body[0]


class Mapping:
    """A plugin of pytest that keeps how long each test takes that passes."""

    def __init__(self, folder: Path) -> None:
        os.environ[MAPPED] = str(folder)
        self.file, self.seconds, self.failed = (
            folder / "seconds.tsv",
            dict[str, float](),
            set[str](),
        )

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        from tests.support import forked

        forked.call = partial(call_of_test, nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0) + report.duration
        if report.failed:
            self.failed.add(report.nodeid)
        elif report.when == "teardown" and report.nodeid not in self.failed:
            with self.file.open("a", encoding="utf-8") as file:
                file.write(f"{report.nodeid}\t{self.seconds[report.nodeid]:.3f}\n")


def call_of_test(nodeid: str, target: Callable[..., object], *arguments: object) -> None:
    """Call what a fork calls, for this test: the fork's server was started for another one."""
    from tests.support import forked

    os.environ[RUNNING] = f"{nodeid} (call)"
    forked.call(target, *arguments)


class Reach:
    """The map as it is read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _lines(self, name: str) -> list[str]:
        file = self.folder / name
        return file.read_text("utf-8").split("\n")[:-1] if file.exists() else []

    @cached_property
    def seconds(self) -> dict[str, float]:
        """Seconds of each test that passed."""
        return {
            test: float(s)
            for test, s in (line.rsplit("\t", 1) for line in self._lines("seconds.tsv"))
        }

    @cached_property
    def _tests(self) -> dict[str, set[str]]:
        tests = defaultdict[str, set[str]](set)
        for key, test in (line.split("\t", 1) for line in self._lines("reached.tsv")):
            tests[key].add(test)
        return tests

    def tests_of(self, fault: Fault) -> list[str]:
        """Return the tests that reach a fault: first those beside its module, then the shortest."""
        tests = self._tests.get(fault.key, set()) & self.seconds.keys()
        return sorted(tests, key=lambda test: self._order(fault, test))

    def _order(self, fault: Fault, test: str) -> tuple[int, float]:
        module = Path(fault.file).with_suffix("").parts
        beside = Path(test.partition("::")[0]).parts[1:]
        shared = takewhile(lambda pair: pair[0] == pair[1], zip(module, beside, strict=False))
        return -len(list(shared)), self.seconds[test]
