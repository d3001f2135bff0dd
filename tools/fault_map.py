"""A map of which tests reach which lines, made by coverage.py while the tests run once.

A test reaches what it calls in its own process, and what the forks call that it starts
(`tests.support.forked`); a fork that is killed leaves nothing. A new map of some tests is added to
the one that is there.
"""

import json
import os
from collections.abc import Callable
from functools import cached_property, partial
from itertools import takewhile
from pathlib import Path
from typing import Any

from fault_sites import Fault

MAPPED = "FAULT_MAP"  # the folder of the map that this process and its forks make


def _measured(context: str | None = None) -> Any:
    from coverage import Coverage

    data = Path(os.environ[MAPPED]) / "coverage"
    return Coverage(
        str(data), data_suffix=True, source_pkgs=["sluice"], context=context, config_file=False
    )


class Mapping:
    """A plugin of pytest that maps the tests of a run."""

    def __init__(self, folder: Path) -> None:
        os.environ[MAPPED] = str(folder)
        self.folder, self.seconds, self.failed = folder, dict[str, float](), set[str]()
        self.coverage = _measured()
        self.coverage.start()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        from tests.support import forked

        forked.call = partial(call_measured, nodeid)
        self.coverage.switch_context(nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0) + report.duration
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self.coverage.stop()
        self.coverage.save()
        passed = {test: s for test, s in self.seconds.items() if test not in self.failed}
        file = self.folder / "seconds.json"
        before = json.loads(file.read_text("utf-8")) if file.exists() else {}
        file.write_text(json.dumps(before | passed, indent=0), "utf-8")


def call_measured(nodeid: str, target: Callable[..., object], *arguments: object) -> None:
    """Call what a fork calls, and add its lines to those of the test that started it."""
    from tests.support import forked

    coverage = _measured(nodeid)
    coverage.start()
    try:
        forked.call(target, *arguments)
    finally:
        coverage.stop()
        coverage.save()


class Reach:
    """The map as it is read."""

    def __init__(self, folder: Path, libs: Path) -> None:
        self.folder, self.libs = folder, libs

    @cached_property
    def seconds(self) -> dict[str, float]:
        """Seconds of each test that passed."""
        file = self.folder / "seconds.json"
        found: dict[str, float] = json.loads(file.read_text("utf-8")) if file.exists() else {}
        return found

    @cached_property
    def _coverage(self) -> Any:
        from coverage import Coverage

        coverage = Coverage(str(self.folder / "coverage"), config_file=False)
        coverage.load()
        parts = [str(part) for part in self.folder.glob("coverage.*")]
        if parts:  # of later runs, and of forks
            coverage.combine(parts)  # one of a stopped map has none
            coverage.save()
        return coverage.get_data()

    def tests_of(self, fault: Fault) -> list[str]:
        """Return the tests that reach a fault: first those beside its module, then the shortest."""
        by_line = self._coverage.contexts_by_lineno(str(self.libs / "sluice" / fault.file))
        first, last = fault.lines or (0, 1_000_000)
        tests = {test for line, found in by_line.items() if first <= line <= last for test in found}
        return sorted(tests & self.seconds.keys(), key=lambda test: self._order(fault, test))

    def _order(self, fault: Fault, test: str) -> tuple[int, float]:
        module = Path(fault.file).with_suffix("").parts
        beside = Path(test.partition("::")[0]).parts[1:]
        shared = takewhile(lambda pair: pair[0] == pair[1], zip(module, beside, strict=False))
        return -len(list(shared)), self.seconds[test]
