"""What tests of several packages share: tiers, engines, a browser, and files by process."""

import gc
import os
import shutil
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from tests.support.engines import address_of, running_spark, session_in_this_process, switch
from tests.support.servers import SERVERS
from tests.support.tiers import fixtures_of, needs_spark, tier_of
from tests.support.wording import COLLECTED, kept_messages, wording
from xdist.scheduler import LoadFileScheduling

from within import slowness

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from pyspark.sql import SparkSession
    from tests.support.lake import Lake
    from tests.support.landed import Landed

__all__ = ["kept_messages", "wording"]

LIVE, WHOLE = "tests/airflow/live/", "tests/whole/"
MINUTES = {"quick": 10, "deep": 20}  # of two cores, on a machine of usual speed
LONGEST_S = 5.0  # of CPU, on a usual machine (tools/within.py)
BESIDE_OTHERS = 1.5  # as much more CPU does the same take on a busy machine
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
LEFT_OUT = "there was no time left for it"
BEGUN = time.monotonic()
IN_THIS_PROCESS, SHARED = pytest.StashKey["SparkSession"](), pytest.StashKey["SparkSession"]()

settings.register_profile("unhurried", deadline=None)  # a busy machine is not a defect
settings.load_profile("unhurried")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--tier`: one tier. `--within`: minutes; tests that have not begun by then are left out.

    `--store`: the stores' server. `--update-…`: keep what is told.
    """
    parser.addoption("--tier", choices=["quick", "deep"])
    parser.addoption("--within", type=float, metavar="MINUTES", help="begin no test after these")
    parser.addoption("--store", choices=[*SERVERS], default="seaweedfs")
    parser.addoption("--unhurried", action="store_true", help="a quick test may take long")
    parser.addoption("--update-messages", action="store_true")
    parser.addoption("--update-answers", action="store_true", help="record Spark's answers again")


@pytest.fixture
def spark(request: pytest.FixtureRequest, local_spark: "SparkSession") -> "SparkSession":
    """A session in this process; Spark itself for tests that use `real_spark`."""
    if not needs_spark(request.node):
        return local_spark
    found: SparkSession = request.getfixturevalue("real_spark")
    return found


@pytest.fixture
def new_lake(tmp_path: Path, spark: "SparkSession") -> Callable[..., "Lake"]:
    """Begin a lake in the test's folder with these tables."""
    from tests.support.lake import Lake

    return lambda declared, *more, **limits: Lake(tmp_path, declared, spark, *more, **limits)


@pytest.fixture
def new_landed(tmp_path: Path, spark: "SparkSession") -> Callable[..., "Landed"]:
    """Begin one whose files land and are ingested."""
    from tests.support.landed import Landed

    return lambda declared, *more, **limits: Landed(tmp_path, declared, spark, *more, **limits)


@pytest.fixture(scope="session")
def local_spark(request: pytest.FixtureRequest) -> "SparkSession":
    """A session that computes in this process, without a JVM."""
    return _session_in_this_process(request.config)


@pytest.fixture(scope="session")
def real_spark(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator["SparkSession"]:
    """A small Spark for the whole run."""
    with running_spark(tmp_path_factory.mktemp("spark")) as session:
        request.config.stash[SHARED] = session
        yield session


@pytest.fixture(scope="session")
def remote(real_spark: "SparkSession") -> str:
    """The address at which other processes use that Spark: they start no JVM of their own."""
    return address_of(real_spark)


@pytest.fixture
def own_spark() -> None:
    """The test starts a Java, or an application of Spark, by itself."""


@pytest.fixture
def long() -> None:
    """The test takes longer than the quick tier has time for."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests that ask for a session and not for Spark compute in this process."""
    minutes = item.config.getoption("--within")
    if minutes is not None and time.monotonic() - BEGUN > minutes * 60:
        pytest.skip(LEFT_OUT)
    is_local = "local_spark" in fixtures_of(item) and not needs_spark(item)
    switch(_session_in_this_process(item.config) if is_local else None)


def _session_in_this_process(config: pytest.Config) -> "SparkSession":
    if IN_THIS_PROCESS not in config.stash:
        config.stash[IN_THIS_PROCESS] = session_in_this_process()
    return config.stash[IN_THIS_PROCESS]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """A quick test that takes long fails: `make test` runs after each change.

    So does one that stops the Spark of the tests after it.
    """
    before = sum(os.times()[:4])
    outcome = yield
    used = sum(os.times()[:4]) - before
    shared = item.config.stash.get(SHARED, None)
    if shared and shared.sparkContext._jsc is None:
        pytest.fail("it stopped the Spark that all tests of its process share")
    if item.config.getoption("--unhurried"):
        return outcome
    if used > LONGEST_S and tier_of(item) == "quick" and not item.nodeid.startswith(WHOLE):
        allowed = LONGEST_S * max(slowness(), 1) * BESIDE_OTHERS
        if used > allowed:
            pytest.fail(f"took {used:.1f} s of CPU; a quick test may take {allowed:.1f} here")
    return outcome


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print what a whole tier may take on this machine, above the line that says what it took.

    Before it, the tests that were left out for want of time.
    """
    skipped = terminalreporter.getreports("skipped")
    if out := sorted(one.nodeid for one in skipped if LEFT_OUT in str(one.longrepr)):
        terminalreporter.write_line(f"{len(out)} tests were left out, for want of time:")
        for name in out:
            terminalreporter.write_line(f"  {name}")
    minutes = MINUTES.get(config.getoption("tier"))
    if minutes and not config.option.file_or_dir:
        slow = max(slowness(), 1)
        line = f"This tier should take at most {minutes * 60 * slow:,.0f} s here, where work takes"
        terminalreporter.write_line(f"{line} {slow:.1f} times as long as usual now.")


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """The machine's own Chromium; tests are skipped where there is none."""
    if CHROMIUM is None:
        pytest.skip("there is no chromium on the path")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays to the end: Python need not look for waste in it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of the tier; files that use Spark come first, those of Airflow last."""
    config.stash[COLLECTED] = [*items]
    if tier := config.getoption("tier"):
        config.hook.pytest_deselected(items=[item for item in items if tier_of(item) != tier])
        items[:] = [item for item in items if tier_of(item) == tier]
    on_spark = {item.path for item in items if needs_spark(item)}
    items.sort(key=lambda item: _place(item, is_on_spark=item.path in on_spark))


def _place(item: pytest.Item, *, is_on_spark: bool) -> int:
    if is_on_spark or item.nodeid.startswith(WHOLE):
        return 0
    return 2 if item.nodeid.startswith(LIVE) else 1


class ByService(LoadFileScheduling):
    """File by file, as xdist's own, but files that share an Airflow go to one process.

    Half of the processes (one of three) take files from the end, and so need no Spark at first.
    """

    def _split_scope(self, nodeid: str) -> str:
        return LIVE if nodeid.startswith(LIVE) else str(super()._split_scope(nodeid))

    def _assign_work_unit(self, node: Any) -> None:
        if self.nodes.index(node) >= (len(self.nodes) + 1) // 2:
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByService | None:
    """How `--dist loadfile` shares out the tests."""
    return ByService(config, log) if config.getvalue("dist") == "loadfile" else None
