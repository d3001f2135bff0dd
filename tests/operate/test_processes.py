"""Processes that compute a run's batches: how many, what they hand back, and how they end."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import cast

import psutil
import pytest
from pyspark import SparkContext

from sluice.declare.project import Project, load
from sluice.declare.settings import SparkSettings
from sluice.declare.table import Table
from sluice.engine import BatchReport
from sluice.errors import QualityStop, Retryable
from sluice.operate.workers import Process, Worker, forked
from sluice.spark.session import Spark

DECLARED = """
pipeline: shop
schedule: "@daily"
start_date: 2024-01-01
sources:
  sales: {path: "landing/{interval_start:%Y-%m-%d}/", format: json, schema: "id INT"}
views:
  counts: {kind: cogroup, key: [id], streams: {s: {from: sales, aggregates: {n: count(*)}}}}
  best: {kind: topk, from: counts, order_by: [n, id], limit: 3}
"""
TWO_CORES = "import os; os.cpu_count = lambda: 2; from sluice.cli.main import program; program()"
PARENT = """
import os, signal
from sluice.declare.project import load
from sluice.operate.workers import Process
print(Process(load("config"), ()).pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def answered(_: Spark, project: Project, table: Table, word: str) -> tuple[BatchReport, ...]:
    return (BatchReport(table.id, word, "unchanged", version=os.getpid(), reason=project.lake),)


def ended(*_: object) -> tuple[BatchReport, ...]:
    os.kill(os.getpid(), signal.SIGKILL)
    return ()


def stopped(*_: object) -> tuple[BatchReport, ...]:
    raise QualityStop("too many", hint="count them")


def surprised(*_: object) -> tuple[BatchReport, ...]:
    raise ZeroDivisionError("by nothing")


def left_to_spark(spark: Spark, _: Project, table: Table) -> Iterator[BatchReport]:
    """A table with a state: on a second attempt, the state is up to date."""
    is_first = isinstance(spark, Spark)
    yield BatchReport(f"{table.id}__state", "source", "committed" if is_first else "unchanged")
    with suppress(Exception):  # as code may that handles errors
        assert spark.tune(small=False)
    yield BatchReport(table.id, "source", "committed")


class FakeSpark:
    def tune(self, *, small: bool) -> bool:
        return not small


@pytest.fixture
def project(tmp_path: Path) -> Project:
    pipelines = tmp_path / "config" / "pipelines"
    pipelines.mkdir(parents=True)
    (pipelines.parent / "sluice.yaml").write_text("lake: lake\n")
    (pipelines / "shop.yaml").write_text(DECLARED)
    return load(tmp_path / "config")


@pytest.fixture
def sales(project: Project) -> Table:
    return project.graph.table("shop.sales")


@pytest.fixture
def process(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[Process]:
    """Forked, as in a run, before Spark is started."""
    with monkeypatch.context() as patch:
        patch.setattr(SparkContext, "_gateway", None)
        process = Process(project, ())
    yield process
    process.end()


def count(project: Project, tables: int = 3) -> int:
    with forked(project, project.graph.pipeline("shop")[:tables]) as processes:
        assert len({os.getpid(), *(process.pid for process in processes)}) == len(processes) + 1
        return len(processes)


def test_processes_run_on_other_cores(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    for cores, expected in ((1, [0, 0, 0, 0]), (3, [0, 0, 1, 2]), (64, [0, 0, 1, 2])):
        monkeypatch.setattr(os, "cpu_count", lambda cores=cores: cores)
        assert [count(project, tables) for tables in range(4)] == expected, f"{cores} cores"
    with forked(project, [*project.graph.tables.values()] * 9) as processes:
        assert len(processes) == 3, "at most"
    all_spark = SparkSettings(small_batches="spark")
    assert count(project.model_copy(update={"spark": all_spark})) == 0
    assert count(project.model_copy(update={"environment": "dev"})) == 0


def test_processes_hand_back_reports(project: Project, sales: Table, process: Process) -> None:
    done = process.do(answered, sales, "a word")
    answered_there = BatchReport(
        sales.id, "a word", "unchanged", version=process.pid, reason=project.lake
    )
    assert done == ((answered_there,), True)


def test_an_error_comes_back_as_it_is_with_its_trace(sales: Table, process: Process) -> None:
    with pytest.raises(QualityStop) as raised:
        process.do(stopped, sales)
    assert (raised.value.message, raised.value.hint) == ("too many", "count them")
    assert "in stopped" in raised.value.__notes__[0]
    with pytest.raises(Retryable, match=r"shop\.sales: ZeroDivisionError: by nothing"):
        process.do(surprised, sales)


def test_work_for_spark_is_reported_once(project: Project, sales: Table, process: Process) -> None:
    done, are_all = process.do(left_to_spark, sales)
    assert ([report.table for report in done], are_all) == (["shop.sales__state"], False)
    here = Worker(cast(Spark, FakeSpark()), process)
    reports = here.do(left_to_spark, project, sales)
    assert [(report.table, report.outcome) for report in reports] == [
        ("shop.sales__state", "committed"),
        ("shop.sales", "committed"),
    ]


def test_one_that_is_killed_is_named_and_asked_no_more(sales: Table, process: Process) -> None:
    with pytest.raises(Retryable, match=r"shop\.sales: .* has ended \(exit code -9\)"):
        process.do(ended, sales)
    assert process.do(answered, sales, "again") == ((), False)


def test_it_does_not_heed_ctrl_c(sales: Table, process: Process) -> None:
    _, is_up = process.do(answered, sales, "it is up")
    os.kill(process.pid or 0, signal.SIGINT)
    _, is_still = process.do(answered, sales, "still")
    assert is_up
    assert is_still


def test_it_ends_with_its_parent(project: Project) -> None:
    done = program(project, PARENT)
    assert done.returncode == -signal.SIGKILL
    pid = int(done.stdout)
    if psutil.pid_exists(pid):
        orphan = psutil.Process(pid)
        assert orphan.status() == psutil.STATUS_ZOMBIE or not orphan.wait(10)


@pytest.mark.usefixtures("long")
def test_runs_name_the_table_of_a_killed_process(project: Project) -> None:
    """The source is taken by the run's own process, and its view by the other."""
    landing = project.root / "landing" / "2024-01-01"
    landing.mkdir(parents=True)
    (landing / "a.json").write_text('{"id": 1}\n{"id": 1}\n')
    command = ("run", "shop", "--start", "2024-01-01", "--end", "2024-01-02", "--json")
    killed = program(project, TWO_CORES, *command, SLUICE_FAILPOINT="pinned:counts")
    assert killed.returncode == Retryable.exit_code
    assert "shop.counts: the process that computed it has ended (exit code -9)" in killed.stderr
    assert "Traceback" not in killed.stderr
    outcomes = [(r["table"], r["outcome"]) for r in map(json.loads, killed.stdout.splitlines())]
    assert outcomes == [
        ("shop.sales", "committed"),
        ("shop.counts", "failed"),
        ("shop.best", "skipped"),
    ]
    done = program(project, TWO_CORES, *command)
    assert (done.returncode, done.stderr) == (0, "")
    found = program(project, TWO_CORES, "read", "shop.best", "--json")
    assert [json.loads(line)["n"] for line in found.stdout.splitlines()] == [2]


def program(
    project: Project, code: str, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=project.root,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
