"""Upkeep by its DAG, beside pipelines that run, and the weekly proof: what they did in the tables.

The tests follow each other: each goes on from the lake that the one before it left. The proof
compares the views of all pipelines that tests before these have run.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.support.ageing import age

from airflow_client import AirflowClient
from sluice.delta.log.opened import exists
from sluice.delta.log.position import positions
from sluice.delta.places.lake_layout import layout
from sluice.delta.writing.filing import slices_of
from sluice.engine.upkeep import Kept
from sluice.read.lake import Lake
from stack import Stack

from .corner import await_all, await_run, log_of, states
from .shelf import Shelf, day

UPKEEP, PROOF = "sluice_maintenance", "sluice_verify"
NOTES, RECENT, COUNTS = "shelf.notes", "shelf.recent", "digest.counts"
MONTH = Kept.loose_files + 1
DAYS_KEPT = 7
Done = Mapping[tuple[str, str], int]


@pytest.fixture(scope="module")
def shelf(folder: Path, client: AirflowClient) -> Shelf:
    """A month delivered in small pieces, of which `digest` has read the first before its pause."""
    for dag in ("shelf", "digest"):
        client.await_dag(dag)
        client.unpause(dag)
    shelf = Shelf(folder / "landing")
    shelf.deliver(0)
    run(client, 0, 1)
    await_all(client, "digest", 1)
    client.pause("digest")
    for nth in range(1, MONTH):
        shelf.deliver(nth)
    run(client, 1, MONTH)
    return shelf


def run(client: AirflowClient, first: int, end: int) -> None:
    """Delivers those days."""
    made = client.trigger("shelf", start=f"{day(first)}", end=f"{day(end)}")
    assert await_run(client, "shelf", made) == "success"


def upkeep(client: AirflowClient, meanwhile: Callable[[], None] = lambda: None) -> Done:
    """What the DAG did to the shelf's tables: how many files, by table and step."""
    made = client.trigger(UPKEEP)
    meanwhile()
    assert await_run(client, UPKEEP, made) == "success"
    done = client.xcom(UPKEEP, made, "maintain.shelf")
    return {(step["table"], step["done"]): step["files"] for step in done}


def let_go(client: AirflowClient, dag: str) -> str:
    """Switches a DAG on, and waits for the run that is due; its state."""
    client.await_dag(dag)
    client.unpause(dag)
    await_all(client, dag, 1)
    (run,) = client.runs(dag)
    return run.state


def uri(stack: Stack, table: str) -> str:
    return str(layout(stack.project).uri(table))


def on_disk(uri: str) -> int:
    return len(list(Path(uri).glob("*.parquet")))


def assert_right(stack: Stack, shelf: Shelf) -> None:
    lake = Lake(stack.project)
    assert {row["id"] for row in lake.table(NOTES).read()} == {number for number, *_ in shelf.every}
    assert {row["id"] for row in lake.window(RECENT).all()} == shelf.recent


def counted(stack: Stack) -> dict[str, int]:
    return {row["who"]: row["notes"] for row in Lake(stack.project).table(COUNTS).read()}


def built(stack: Stack) -> set[str]:
    views = [table.id for table in stack.project.graph.tables.values() if table.is_view]
    return {view for view in views if exists(uri(stack, view))}


def proved(client: AirflowClient, run: str) -> set[str]:
    """The tables, without those kept behind them, that were found equal to their recompute."""
    tasks = [task for task, state in states(client, PROOF, run).items() if state == "success"]
    verdicts = [verdict for task in tasks for verdict in client.xcom(PROOF, run, task)]
    assert all(v["missing"] == v["extra"] == v["different"] == 0 for v in verdicts)
    return {verdict["table"] for verdict in verdicts if "__" not in verdict["table"]}


def test_small_files_are_put_together(client: AirflowClient, stack: Stack, shelf: Shelf) -> None:
    notes, recent = DeltaTable(uri(stack, NOTES)), DeltaTable(uri(stack, RECENT))
    assert len(notes.file_uris()) == MONTH
    assert let_go(client, UPKEEP) == "success"
    assert {task.attempt for task in client.tasks(UPKEEP)} == {1}
    notes.update_incremental()
    recent.update_incremental()
    assert (len(notes.file_uris()), len(recent.file_uris())) == (1, DAYS_KEPT)
    assert_right(stack, shelf)
    (swept,) = client.xcom(UPKEEP, client.runs(UPKEEP)[0].id, "sweep.shelf")
    assert (swept["expectations"], swept["unmet"]) == (1, [])


def test_beside_a_run_both_are_right_and_what_a_paused_pipeline_has_yet_to_read_stays(
    client: AirflowClient, stack: Stack, shelf: Shelf
) -> None:
    notes = uri(stack, NOTES)
    read = Lake(stack.project).table(COUNTS).version
    newest = DeltaTable(notes).version()
    for version in range(newest + 1):
        age(notes, version, days=9 if version == newest else 20)
    shelf.deliver(MONTH, late=(MONTH - 2, MONTH - 1))
    done = upkeep(client, meanwhile=lambda: run(client, MONTH, MONTH + 1))
    assert (NOTES, "vacuum") not in done
    assert on_disk(notes) == MONTH + 2
    assert_right(stack, shelf)
    assert Lake(stack.project).table(COUNTS).version == read


def test_what_everybody_has_read_is_deleted_and_days_that_late_rows_reached_are_sealed(
    client: AirflowClient, stack: Stack, shelf: Shelf
) -> None:
    client.unpause("digest")  # what changed while it was paused is no event for it any more
    assert await_run(client, "digest", client.trigger("digest")) == "success"
    assert counted(stack) == shelf.counts
    assert upkeep(client)[NOTES, "vacuum"] == MONTH
    assert on_disk(uri(stack, NOTES)) == 2
    slices = slices_of(DeltaTable(uri(stack, RECENT)))
    assert len(slices) == DAYS_KEPT
    assert {len(closed.paths) for closed in slices[:-1]} == {1}
    assert "seal" in {position.kind for _, position in positions(uri(stack, RECENT))}
    assert_right(stack, shelf)


def test_the_weekly_proof_fails_where_a_table_was_altered_and_passes_when_it_is_rebuilt(
    client: AirflowClient, stack: Stack, shelf: Shelf, alerts: list[dict[str, Any]]
) -> None:
    altered = pa.table({"who": ["eve"], "notes": [99]})
    write_deltalake(uri(stack, COUNTS), altered, mode="append", schema_mode="merge")
    assert let_go(client, PROOF) == "failed"
    (made,) = (run.id for run in client.runs(PROOF))
    found = states(client, PROOF, made)
    assert {task for task, state in found.items() if state == "failed"} == {"verify.digest"}
    assert proved(client, made) == built(stack) - {COUNTS}
    (alert,) = (alert for alert in alerts if alert["tables"] == [COUNTS])
    assert "was not written by Sluice" in alert["why"]
    assert "sluice rebuild" in alert["next"]
    assert alert["text"] in log_of(client, PROOF, made, "verify.digest")
    mended = client.trigger("digest", only=["counts"], full_refresh=True)
    assert await_run(client, "digest", mended) == "success"
    client.clear(PROOF, made, "verify.digest")
    assert await_run(client, PROOF, made) == "success"
    assert counted(stack) == shelf.counts
