"""Costs are those that the commits note, summed; upkeep and repeats add nothing."""

import json
import random
import resource
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.cli.previewed import PIPELINE, World
from tests.cli.trips import Here

from sluice.meter import Meter

SUMS = ("batches", "cpu", "read", "written")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Here:
    return World.of_runs(3, tmp_path_factory.mktemp("cost"), 3).project


def noted(project: Here) -> dict[str, Counter[str]]:
    """What the logs note of each table, its states and deliveries included."""
    found: dict[str, Counter[str]] = {}
    for log in sorted(project.folder.glob("lake/trips/*/_delta_log/*.json")):
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        info = next(a["commitInfo"] for a in actions if "commitInfo" in a)
        note = json.loads(info.get("userMetadata") or "{}").get("sluice", {}).get("cost")
        if note:
            files = [a[kind] for a in actions for kind in ("add", "cdc") if kind in a]
            written = sum(file["size"] for file in files)
            name, _, part = log.parts[-3].partition("__")
            table, batches = f"trips.{name}", 0 if part else 1
            one = {"batches": batches, "cpu": note["cpu"], "read": note["read"], "written": written}
            found.setdefault(table, Counter()).update(one)  # type: ignore[arg-type]
    return found


def asked(project: Here, *arguments: str) -> list[dict[str, Any]]:
    ended = project.complete("cost", *arguments, "--json")
    return ended.records


def test_costs_are_the_sums_of_what_commits_note(project: Here) -> None:
    by_table, expected = asked(project), noted(project)
    assert {row["table"] for row in by_table} == expected.keys()
    for row in by_table:
        for name in SUMS:
            assert row[name] == pytest.approx(expected[row["table"]][name], abs=0.01), row
        assert row["seconds"] >= row["cpu"] * 0.2 > 0
    whole = {row["table"]: row["share"] for row in by_table}
    assert whole["trips.flights"] is not None  # it follows its deliveries
    assert whole["trips.weather"] is None  # delivered: there is no input to read again
    assert all(share > 0 for share in whole.values() if share is not None)
    for by in ("pipeline", "day"):
        (one,) = asked(project, "--by", by)
        assert one["read"] == sum(row["read"] for row in by_table)
        assert one["batches"] == sum(row["batches"] for row in by_table)


def test_a_batch_counts_once_however_many_tables_it_writes(project: Here) -> None:
    last = {
        row["table"]: row["last"]["number"] for row in project.sluice("status", "--json").records
    }
    assert {row["table"]: row["batches"] for row in asked(project)} == last


def test_upkeep_and_runs_without_news_cost_nothing(project: Here) -> None:
    before = asked(project)
    project.complete("run", "trips", "--changed")
    assert project.sluice("maintain", "late").code in (0, 2)
    assert asked(project) == before
    assert asked(project, "--since", "2999-01-01") == []
    assert [row["table"] for row in asked(project, "late", "--by", "table")] == ["trips.late"]


def test_a_later_batch_reads_a_small_share_of_what_a_rebuild_would(tmp_path: Path) -> None:
    project = Here(tmp_path)
    project.declare(PIPELINE)
    flights = [
        {
            "flight": n,
            "carrier": "AB"[n % 2],
            "delay": n % 9,
            "at": f"2024-01-01T{n % 24:02}:00:00Z",
        }
        for n in range(3000)
    ]
    World(project, random.Random(1)).carriers()
    project.land("flights", 1, flights)
    project.complete("run", "trips", "--changed")
    (first,) = asked(project, "late")
    assert first["share"] == 1
    project.land("flights", 1, [*flights[:-1], {**flights[-1], "delay": 12}])
    project.complete("run", "trips", "--changed")
    (both,) = asked(project, "late")
    assert both["read"] - first["read"] < (both["whole"] - first["whole"]) / 3


def test_work_at_the_same_time_shares_the_cpu() -> None:
    meter = Meter()
    meter.begin("a")
    meter.begin("b")
    total = sum(n * n for n in range(2_000_000))
    meter.end("b")
    alone = sum(n * n for n in range(2_000_000))
    meter.end("a")
    assert total == alone
    assert meter.note_seconds("a") == pytest.approx(3 * meter.note_seconds("b"), rel=0.5)
    meter.forget("a")
    assert meter.note_seconds("a") == 0


def test_a_command_bears_what_was_used_beside_its_work_and_after_its_note() -> None:
    command, host = Meter(keeps_idle=True), Meter()
    for meter in (command, host):
        meter.begin("noted")
        meter.end("noted")
    noted = command.note_seconds("noted")
    assert noted > 10 * host.note_seconds("noted")  # the imports of this process
    for meter in (command, host):
        meter.begin("noted")
    assert sum(n * n for n in range(1_000_000))
    for meter in (command, host):
        meter.end("noted")
        meter.forget("noted")
        meter.begin("next")
        meter.end("next")
    assert noted > command.note_seconds("next") > 10 * host.note_seconds("next")


def test_a_forked_process_counts_its_own_seconds_alone() -> None:
    meter = Meter(keeps_idle=True)
    meter.begin("a")
    meter.after_fork()
    assert meter.note_seconds("a") == 0
    assert meter.keeps_idle


def test_a_command_notes_nearly_all_the_cpu_that_it_uses(tmp_path: Path) -> None:
    project = Here(tmp_path)
    project.declare(PIPELINE)
    World(project, random.Random(4)).land()
    began = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "sluice.cli.main", "run", "trips", "--changed"]
    subprocess.run(command, cwd=project.folder, check=True, capture_output=True)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    whole = ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime
    total = sum(cost["cpu"] for cost in noted(project).values())
    assert 0.85 * whole < total <= whole  # the rest: the tables of a report, and the end
