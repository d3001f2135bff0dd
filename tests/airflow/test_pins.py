"""Which dimension versions a run's tasks share, whichever loads them, whenever it is tried."""

import time
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from tests.read.tables import position, project_at, write_table

from sluice.airflow.blueprint import Task, TaskKind
from sluice.airflow.pending import at_start, left_by
from sluice.declare.project import Project

LOAD = Task("load.brands", TaskKind.LOAD, "shop", ("shop.brands",))
READ = Task("advance.x", TaskKind.ADVANCE, "other", ("other.x",), ("shop.brands", "shop.sales"))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A dimension at version 1."""
    project = project_at(tmp_path)
    for number in (1, 2):
        write(project, number)
    return project


def write(project: Project, brand: int) -> None:
    brands = pa.table({"brand_id": pa.array([brand], pa.int32()), "brand": ["x"]})
    write_table(project, "brands", brands, position(brand))


def test_loads_hand_on_what_they_committed(project: Project) -> None:
    write(project, 3)
    assert left_by(project, LOAD, [{"table": "shop.brands", "version": 1}]) == {"shop.brands": 1}


def test_a_load_that_was_skipped_hands_on_what_is_there(project: Project) -> None:
    assert left_by(project, LOAD) == {"shop.brands": 1}


def test_dimensions_of_another_pipeline_are_as_at_the_start(project: Project) -> None:
    started = datetime.now(UTC)
    time.sleep(0.01)
    write(project, 3)
    assert at_start(project, READ, started) == {"shop.brands": 1}, "also where it is tried again"
    assert at_start(project, READ, datetime.now(UTC)) == {"shop.brands": 2}
    assert at_start(project, LOAD, started) == {}, "of its own pipeline its load tells"


def test_what_only_looks_after_tables_hands_on_nothing(project: Project) -> None:
    for kind in (TaskKind.MAINTAIN, TaskKind.SWEEP, TaskKind.VERIFY):
        task = Task(f"{kind.value}.shop", kind, "shop", ("shop.brands",))
        assert left_by(project, task, [{"table": "shop.brands", "done": "compact"}]) == {}
