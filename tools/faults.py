"""Insert faults into a copy of the code, one at a time, and see whether the tests find them.

    python tools/faults.py map --seed 1 --count 200    # which tests of `make test` reach them
    python tools/faults.py map --seed 1 --count 200 --tier deep tests/kinds
    python tools/faults.py run --seed 1 --count 200
    python tools/faults.py run --seed 1 --count 200 --tier deep       # what survived, once more
    python tools/faults.py run --seed 1 --count 200 --with tests/kinds/topk/test_ties.py

A seed draws each kind of fault equally often, and the same ones after changes of other code. The
tests that reach a fault run in a fork of this process, until one fails. What was found and what
survived is kept in `.cache/faults`: a call goes on where the last one ended. `--tier deep` and
`--with` run the survivors alone, with other tests. docs/testing.md has the figures.
"""

import argparse
import compileall
import importlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from hashlib import sha256
from itertools import groupby, zip_longest
from pathlib import Path, PurePath
from statistics import median
from typing import Any, Literal

import pytest

from fault_map import Mapping, Reach, insert_reports
from fault_sites import Fault, faults_of_packages

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / ".cache" / "faults"
# What tests import besides Sluice: once here, then every fork has it.
IMPORTED = (
    "hypothesis", "xdist.scheduler", "pandas", "pyarrow.parquet", "pyarrow.compute",
    "pyarrow.dataset", "pyarrow.csv", "deltalake", "pyspark.sql.connect.session", "sqlglot",
    "pydantic", "click", "rich.console", "ruamel.yaml", "jinja2", "croniter", "cachetools",
    "xxhash", "pyroaring",
)  # fmt: skip
OF_A_TEST, OF_A_FAULT, OF_A_MAP, MEMORY = 120, 900, 14400, 8 * 2**30  # at most: s, s, s, bytes
Verdict = Literal["found", "survived", "not reached"]


@dataclass(frozen=True)
class Result:
    """Result of the tests for one fault."""

    fault: Fault
    verdict: Verdict
    by: str = ""  # the test that found it
    tier: str = "quick"
    seconds: float = 0.0

    def __str__(self) -> str:
        fault, now = self.fault, " ".join(self.fault.text.split()) or "nothing"
        change = f"{' '.join(fault.was.split())!r:.70} -> {now!r:.70}"
        place = f"{fault.file}:{fault.line}"
        return (
            f"{self.verdict:11} {fault.kind:12} {place}: {change} {self.by} ({self.seconds:.0f} s)"
        )


class Tree:
    """A copy of the files of this tree that git knows, or would add."""

    def __init__(self, folder: Path, root: Path = ROOT) -> None:
        self.folder, self.root = folder, root

    @property
    def libs(self) -> Path:
        return self.folder / "libs"

    def refresh(self) -> None:
        """Copy what differs, and link what tests use of the tree's own `.venv` and `.cache`."""
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listed, cwd=self.root, capture_output=True, check=True).stdout
        for name in names.decode().split("\0"):
            here, there = self.root / name, self.folder / name
            if not here.is_file() or (there.exists() and _same(here, there)):
                continue
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(here, there)
        for name in (".venv", ".cache/jars"):
            there = self.folder / name
            there.parent.mkdir(parents=True, exist_ok=True)
            if not there.is_symlink():
                there.symlink_to(self.root / name)
        compileall.compile_dir(self.libs, quiet=2)

    @contextmanager
    def changed(self, file: str, change: Callable[[str], str]) -> Iterator[None]:
        """Have another text of a module in the copy meanwhile."""
        module = self.libs / "sluice" / file
        source, times = module.read_text("utf-8"), module.stat()
        try:
            module.write_text(change(source), "utf-8")  # now: so that it is compiled again
            yield
        finally:
            module.write_text(source, "utf-8")
            os.utime(module, ns=(times.st_atime_ns, times.st_mtime_ns))


def _same(one: Path, other: Path) -> bool:
    a, b = one.stat(), other.stat()
    return (a.st_size, a.st_mtime_ns) == (b.st_size, b.st_mtime_ns)


class First:
    """A plugin of pytest: these tests or those of these files, in order, and which failed first."""

    def __init__(self, tests: Sequence[str], failed: Path) -> None:
        self.place = {test: place for place, test in enumerate(tests)}
        self.failed = failed

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [item for item in items if self._place_of(item.nodeid) is not None]
        items.sort(key=lambda item: self._place_of(item.nodeid) or 0)

    def _place_of(self, test: str) -> int | None:
        """Return the place of a test, of its file, or of a folder above it."""
        file = test.partition("::")[0]
        above = (test, file, *map(str, PurePath(file).parents))
        return next((self.place[name] for name in above if name in self.place), None)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failed.write_text(report.nodeid, "utf-8")


def run_tests(
    tree: Tree, arguments: Sequence[str], plugin: Callable[[], object], within: float = OF_A_FAULT
) -> int:
    """Run pytest in a fork that imports Sluice from the copy; return its exit code.

    Every process that it starts ends with it. A fork that takes too long is killed.
    """
    child = os.fork()
    if child == 0:
        _be_pytest(tree, arguments, plugin)
    try:
        return _wait(child, within)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)


def _be_pytest(tree: Tree, arguments: Sequence[str], plugin: Callable[[], object]) -> None:
    code = 70
    try:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.chdir(tree.folder)
        paths = [str(tree.libs), str(tree.folder / "tools")]
        sys.path[:0] = paths
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
        output = os.open(CACHE / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(output, 1)
        os.dup2(output, 2)
        code = int(pytest.main(["-n", "0", "-q", *arguments], plugins=[plugin()]))
    finally:
        sys.stdout.flush()
        os._exit(code)


def _wait(child: int, within: float) -> int:
    end = time.monotonic() + within
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -signal.SIGKILL


def judge(tree: Tree, result: Result, tests: Sequence[str]) -> Result:
    """Run the tests on a fault; a passed test of a file that can't be imported finds nothing."""
    failed, start = CACHE / "failed.txt", time.monotonic()
    failed.write_text("", "utf-8")
    if not tests:
        return replace(result, verdict="not reached")
    files = list(dict.fromkeys(test.split("::")[0] for test in tests))

    def first() -> First:
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        return First(tests, failed)

    with tree.changed(result.fault.file, result.fault.insert):
        code = run_tests(tree, ["-x", "--timeout", str(OF_A_TEST), *files], first)
    spent = result.seconds + time.monotonic() - start
    if code in (0, 5):
        return replace(result, verdict="survived", seconds=spent)
    by = failed.read_text("utf-8") or f"its import or its end (exit code {code})"
    return replace(result, verdict="found", by=by, seconds=spent)


def draw(faults: Sequence[Fault], seed: int, count: int) -> list[Fault]:
    """Return faults of a seed, each kind equally often; a smaller count is the beginning."""

    def chance(fault: Fault) -> bytes:
        return sha256(f"{seed} {fault.key}".encode()).digest()

    by_kind = groupby(sorted(faults, key=lambda f: (f.kind, chance(f))), lambda f: f.kind)
    rounds = zip_longest(*(list(found) for _, found in by_kind))
    return [fault for faults in rounds for fault in faults if fault is not None][:count]


def _within(tests: Sequence[str], reach: Reach, seconds: float) -> list[str]:
    chosen, spent = [], 0.0
    for test in tests:
        spent += reach.seconds[test]
        if chosen and spent > seconds:
            break
        chosen.append(test)
    return chosen


class Results:
    """The results of a seed, kept in a file."""

    def __init__(self, seed: int) -> None:
        self.file = CACHE / f"seed-{seed}.json"
        kept = json.loads(self.file.read_text("utf-8")) if self.file.exists() else []
        results = (Result(**one | {"fault": Fault(**one["fault"])}) for one in kept)
        self.of = {result.fault.key: result for result in results}

    def keep(self, result: Result) -> None:
        self.of[result.fault.key] = result
        kept = [asdict(one) for one in self.of.values()]
        self.file.write_text(json.dumps(kept, indent=1), "utf-8")


def make_map(tree: Tree, drawn: Sequence[Fault], tier: str, paths: Sequence[str]) -> int:
    """Run the tests once, and add those that reach the faults to the map."""
    folder = CACHE / tier
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        for file in {fault.file for fault in drawn}:
            here = [fault for fault in drawn if fault.file == file]
            stack.enter_context(tree.changed(file, partial(insert_reports, faults=here)))
        return run_tests(tree, ["--tier", tier, *paths], lambda: Mapping(folder), OF_A_MAP)


def run(tree: Tree, drawn: Sequence[Fault], options: argparse.Namespace) -> None:
    """Judge the faults of a seed that have no result yet, or its survivors by other tests."""
    reach, results = Reach(CACHE / options.tier), Results(options.seed)
    is_again = bool(options.others) or options.tier == "deep"
    for fault in drawn:
        known = results.of.get(fault.key)
        if (known is not None and known.verdict == "found") or (known is not None) != is_again:
            continue
        before = replace(known, fault=fault) if known else Result(fault, "not reached")
        reaching = _within(reach.tests_of(fault), reach, options.seconds)
        result = judge(tree, replace(before, tier=options.tier), options.others or reaching)
        results.keep(result)
        print(result, flush=True)
    _summarize([results.of[fault.key] for fault in drawn if fault.key in results.of])


def _summarize(results: Sequence[Result]) -> None:
    found = [one for one in results if one.verdict == "found"]
    quick = sum(one.tier == "quick" for one in found)
    each = median(one.seconds for one in results)
    print(f"{len(results)} faults: `make test` finds {quick}, any test {len(found)}; {each:.0f} s")


def main() -> int:
    """Make the map, or run a seed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    mapping, running = commands.add_parser("map"), commands.add_parser("run")
    for command in (mapping, running):
        command.add_argument("--tier", choices=["quick", "deep"], default="quick")
        command.add_argument("--seed", type=int, default=1)
        command.add_argument("--count", type=int, default=200)
    mapping.add_argument("paths", nargs="*")
    running.add_argument("--seconds", type=float, default=60, help="of tests, by the map's times")
    running.add_argument(
        "--with", dest="others", nargs="*", default=[], help="tests, not the map's"
    )
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # both end a fault in order
    CACHE.mkdir(parents=True, exist_ok=True)
    tree = Tree(CACHE / "tree")
    tree.refresh()
    for name in IMPORTED:
        importlib.import_module(name)
    drawn = draw(faults_of_packages(tree.libs), options.seed, options.count)
    if options.command == "map":
        return make_map(tree, drawn, options.tier, options.paths)
    run(tree, drawn, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
