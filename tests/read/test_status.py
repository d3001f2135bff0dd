"""How far behind its inputs a table is, by the logs."""

from dataclasses import replace
from pathlib import Path
from shutil import copytree, rmtree
from time import perf_counter

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from tests.kinds.topk.tables import ranked
from tests.read.tables import CONFIG, day, pin, position, project_at, write_table

from sluice.declare.meaning import definition, definition_of_deliveries
from sluice.delta.failures import Failure, clear, keep
from sluice.delta.intervals import Note, record
from sluice.delta.log.position import Pin
from sluice.delta.places.lake_layout import layout
from sluice.delta.reading.landing import fingerprint
from sluice.language.interval import Interval
from sluice.read.pending import pending
from sluice.read.status import status

TOTALS = ranked([("DELI", 1, "9.00", 1)], rank=False)
LEADERS = ranked([("DELI", 1, "9.00", 1)])


@pytest.fixture
def project(tmp_path):
    return project_at(tmp_path)


def leaders_over(project, totals):
    return write_table(project, "leaders", LEADERS, position(1, {"shop.totals": pin(totals)}))


def test_a_view_over_what_is_not_built_has_nothing_to_do(project):
    assert pending(project, project.graph.table("leaders")) == {}


def test_a_view_never_built_has_everything_to_read(project):
    write_table(project, "totals", TOTALS, position(1))
    assert pending(project, project.graph.table("leaders")) == {"shop.totals": (None, 0)}


def test_new_versions_of_an_input_are_pending(project):
    totals = write_table(project, "totals", TOTALS, position(1))
    leaders_over(project, totals)
    leaders = project.graph.table("leaders")
    assert pending(project, leaders) == {}
    write_table(project, "totals", TOTALS, position(2))
    assert pending(project, leaders) == {"shop.totals": (0, 1)}


def test_commits_that_change_no_row_are_not(project):
    totals = write_table(project, "totals", TOTALS, position(1))
    leaders_over(project, totals)
    write_table(
        project, "totals", TOTALS.slice(0, 0), position(2, kind="position", unchanged_since=0)
    )
    assert pending(project, project.graph.table("leaders")) == {}
    DeltaTable(totals).optimize.compact()
    assert pending(project, project.graph.table("leaders")) == {}


def test_what_an_internal_table_has_not_read_is_pending_too(project):
    sales = write_table(project, "sales", pa.table({"x": [1]}), position(1))
    state = write_table(project, "totals__state", TOTALS, position(1, {"shop.sales": pin(sales)}))
    write_table(project, "totals", TOTALS, position(1, {"shop.totals__state": pin(state)}))
    totals = project.graph.table("totals")
    assert pending(project, totals) == {}
    write_table(project, "sales", pa.table({"x": [2]}), position(2))
    assert pending(project, totals) == {"shop.sales": (0, 1)}
    write_table(project, "totals__state", TOTALS, position(2, {"shop.sales": pin(sales)}))
    assert pending(project, totals) == {"shop.totals__state": (0, 1)}


def test_an_input_that_was_made_again_is_pending(project, tmp_path):
    totals = write_table(project, "totals", TOTALS, position(1))
    leaders_over(project, totals)
    (tmp_path / "lake" / "shop" / "totals").rename(tmp_path / "old")
    write_table(project, "totals", TOTALS, position(1))
    assert pending(project, project.graph.table("leaders")) == {"shop.totals": (None, 0)}


def test_an_input_that_was_put_back_and_written_again_is_pending(project, tmp_path):
    made = [replace(position(batch), attempt=f"{batch}") for batch in (1, 2, 3)]
    totals = write_table(project, "totals", TOTALS, made[0])
    backup = copytree(totals, tmp_path / "backup")
    write_table(project, "totals", TOTALS, made[1])
    read = replace(pin(totals), attempt="2")
    write_table(project, "leaders", LEADERS, position(1, {"shop.totals": read}))
    leaders = project.graph.table("leaders")
    assert pending(project, leaders) == {}
    rmtree(totals)
    copytree(backup, totals)
    write_table(project, "totals", TOTALS, made[2])
    assert pending(project, leaders) == {"shop.totals": (None, 1)}


def test_status_shows_version_rows_lag_and_last_batch(project):
    totals = write_table(project, "totals", TOTALS, position(1))
    leaders = leaders_over(project, totals)
    for batch in (2, 3):
        write_table(project, "totals", TOTALS, position(batch))
    inputs = {"shop.totals": Pin(pin(totals).table, 0)}
    upkeep = position(1, inputs, kind="compact", unchanged_since=0)
    write_table(project, "leaders", LEADERS.slice(0, 0), upkeep)
    found = {one.table: one for one in status(project)}
    assert found["shop.sales"].version is None
    assert (found["shop.totals"].version, found["shop.totals"].rows) == (2, 3)
    assert not found["shop.totals"].is_behind
    (lag,) = found["shop.leaders"].lag
    assert (lag.input, lag.read, lag.newest, lag.versions) == ("shop.totals", 0, 2, 2)
    assert lag.since is not None
    last = found["shop.leaders"].last
    assert (last.number, last.kind, last.run) == (1, "batch", "run-1")
    assert DeltaTable(leaders).version() == 1
    assert "shop.catalogue" not in found


def test_a_changed_definition_is_a_problem_and_everything_is_pending(project):
    totals = write_table(project, "totals", TOTALS, position(1))
    inputs = {"shop.totals": pin(totals)}
    leaders = project.graph.table("leaders")
    made = replace(position(1, inputs), definition=definition(leaders))
    write_table(project, "leaders", LEADERS, made)
    assert pending(project, leaders) == {}
    write_table(project, "leaders", LEADERS, replace(made, definition="another"))
    assert pending(project, leaders) == {"shop.totals": (None, 0)}
    (found,) = status(project, [leaders])
    assert "sluice rebuild shop.leaders" in found.problem


def test_quarantined_rows_are_counted_over_all_deliveries(project):
    write_table(project, "sales", pa.table({"x": [1]}), position(1))
    deliver(project, {1: 2, 2: 5})
    (sales,) = status(project, [project.graph.table("sales")])
    assert sales.quarantined == 7


def deliver(project, quarantined):
    """Note deliveries of sales: a day of January, and how many rows of it were quarantined."""
    for first, aside in quarantined.items():
        interval = Interval(day(first), day(first + 1))
        record(layout(project).uri("shop.sales", "intervals"), Note(interval, "", 9, 9, aside))


def test_intervals_that_are_missing_between_delivered_ones_are_named(project):
    write_table(project, "sales", pa.table({"x": [1]}), position(1))
    deliver(project, dict.fromkeys((1, 2, 5, 7), 0))
    (sales,) = status(project, [project.graph.table("sales")])
    found = [str(span) for span in sales.missing]
    assert found == [
        "[2017-01-03, 2017-01-05) (2 intervals)",
        "[2017-01-06, 2017-01-07) (1 interval)",
    ]


def test_intervals_without_files_are_named_unless_their_source_declares_them_ordinary(tmp_path):
    project = project_at(tmp_path)
    sales = project.graph.table("sales")
    no_files = fingerprint((), definition_of_deliveries(sales))
    for first, files, rows in (
        *((1, "abc", 9), (2, no_files, 0), (3, no_files, 0)),
        *((4, "a file without rows", 0), (5, no_files, 0)),
    ):
        span = Interval(day(first), day(first + 1))
        record(layout(project).uri("shop.sales", "intervals"), Note(span, files, rows, rows, 0))
    (found,) = status(project, [sales])
    assert [str(span) for span in found.without_files] == [
        "[2017-01-02, 2017-01-04) (2 intervals)",
        "[2017-01-05, 2017-01-06) (1 interval)",
    ], "also before the table has a row"
    write_table(project, "sales", pa.table({"x": [1]}), position(1))
    assert status(project, [sales])[0].without_files == found.without_files
    ordinary = CONFIG.replace("format: parquet", "format: parquet\n    missing: empty")
    assert status(project_at(tmp_path / "b", ordinary))[0].without_files == ()
    empty = project_at(tmp_path, ordinary)
    assert status(empty, [empty.graph.table("sales")])[0].without_files == ()


def test_a_failure_stands_with_what_it_blocks_until_it_is_cleared(project):
    write_table(project, "sales", pa.table({"x": [1]}), position(1))
    lake = layout(project)
    failure = Failure("shop.sales", day(1), "a column is a text", "mend it", 4, "r1")
    keep(lake, failure)
    stands = {one.table: one for one in status(project)}
    assert stands["shop.sales"].failure == failure
    blocked = {name for name, one in stands.items() if one.blocked_by == ("shop.sales",)}
    assert blocked == {f"shop.{view}" for view in ("totals", "leaders", "unranked", "tied")}
    keep(lake, replace(failure, blocks=False))
    assert not any(one.blocked_by for one in status(project))
    clear(lake, "shop.sales")
    assert not any(one.failure or one.blocked_by for one in status(project))


def test_a_view_names_the_inputs_that_it_waits_for(project):
    stands = {one.table: one for one in status(project)}
    assert stands["shop.totals"].waits_for == ("shop.sales",)
    assert stands["shop.sales"].waits_for == ()


def test_a_table_that_no_batch_has_filled_is_not_built_and_has_everything_to_read(project):
    write_table(project, "sales", pa.table({"x": [1]}), position(1))
    write_table(project, "totals", TOTALS.slice(0, 0), position(0, kind="create"))
    totals = project.graph.table("totals")
    assert pending(project, totals) == {"shop.sales": (None, 0)}
    (stands,) = status(project, [totals])
    assert stands.version is None


def test_a_foreign_change_is_a_problem_not_a_crash(project):
    totals = write_table(project, "totals", TOTALS, position(1))
    DeltaTable(totals).delete()
    (found,) = status(project, [project.graph.table("totals")])
    assert "was not written by Sluice" in found.problem


def test_pending_takes_milliseconds(project):
    totals = write_table(project, "totals", TOTALS, position(1))
    leaders_over(project, totals)
    leaders = project.graph.table("leaders")
    pending(project, leaders)

    def seconds() -> float:
        began = perf_counter()
        for _ in range(12):
            pending(project, leaders)
        return perf_counter() - began

    assert any(seconds() < 1 for _ in range(5)), "also where the machine is busy at times"


def test_a_table_whose_log_can_not_be_read_is_stopped_and_its_readers_show_their_rows(project):
    totals = write_table(project, "totals", TOTALS, position(1))
    leaders_over(project, totals)
    Path(layout(project).uri("shop.totals"), "_delta_log", f"{0:020}.json").write_text("{")
    after = {one.table: one for one in status(project)}
    broken, leaders = after["shop.totals"], after["shop.leaders"]
    assert (broken.state, broken.version) == ("stopped", None)
    assert broken.problem.startswith("the log of shop.totals can't be read: ")
    assert leaders.problem == broken.problem
    assert (leaders.version, leaders.rows) == (0, 1)
