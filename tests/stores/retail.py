"""The demo's pipeline with lake and landing folder in a store, without a JVM.

It takes more than a minute of CPU, so `make test-stores` names this file and `make test` does not.
"""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.support.stores import Store, using

import landing
from sluice.declare.project import Project, load
from sluice.engine.upkeep import Kept
from sluice.interpreter.local_session import interpreting
from sluice.language.interval import Interval
from sluice.limits import Limits
from sluice.operate.doctor import examine
from sluice.operate.maintain import maintain
from sluice.operate.run import run
from sluice.operate.verify import verify
from sluice.spark import session
from sluice.spark.session import Spark

CONFIG = Path(__file__).parents[2] / "config"
FIRST, CORRECTED, END = date(2017, 5, 8), date(2017, 5, 10), date(2017, 5, 15)
HERE = 100_000_000  # bytes; all that these days bring
CHANGED = {  # inserted, updated, deleted, as in README
    "transactions": (0, 3, 3),
    "invoices": (0, 3, 3),
    "product_sales": (0, 6, 0),
    "top_products": (3, 8, 3),
    "households": (0, 3, 0),
    "baskets": (0, 2, 1),
    "basket_steps": (0, 4, 1),
}


def midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


@pytest.fixture
def place(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An empty place in the store; the project's lake and landing folder lie there."""
    place = store.place()
    folders = {"SLUICE_LAKE": f"s3://{place}/lake", "SLUICE_LANDING": f"s3://{place}/landing"}
    monkeypatch.setattr(session, "open_session", None)  # no JVM: a call fails
    with using({**store.environ(), **folders}):
        yield place


class Here(Spark):
    """Spark that is never started: what is asked of it is computed in this process."""

    def tune(self, *, small: bool) -> Any:
        return self.here

    session = property(lambda self: self.here)  # type: ignore[assignment]


def project_here() -> Project:
    """The project; it computes everything in this process."""
    limits = replace(Limits(), read_here_bytes=HERE)
    return load(CONFIG).model_copy(update={"limits": limits})


def delivered(project: Project, start: date, end: date) -> dict[str, tuple[int, int, int]]:
    """Run these days; return what each table inserted, updated and deleted."""
    edges = [midnight(day) for day in landing.days(start, end + timedelta(days=1))]
    intervals = [Interval(*pair) for pair in pairwise(edges)]
    found = {}
    run(
        Here(project.spark),
        project,
        project.pipelines["retail"],
        intervals,
        on_step=lambda r: found.update({r.table: (r.inserted, r.updated, r.deleted)}),
    )
    return {name.removeprefix("retail."): counts for name, counts in found.items()}


def check(project: Project) -> None:
    """Every table equals its query and is sound."""
    spark = Here(project.spark)
    for table in project.graph.tables.values():
        if table.is_stored:
            with interpreting(spark.here):
                assert all(v.is_sound for v in verify(spark, project, table)), table.id


def test_a_corrected_day_changes_what_readme_says(
    store: Store, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Kept, "loose_files", 1)
    landing.split(tmp_path, FIRST, END)
    store.copy(tmp_path, f"{place}/landing")
    project = project_here()
    assert delivered(project, FIRST, END)["invoices"][0] > 0
    landing.correct(tmp_path, CORRECTED)
    store.copy(tmp_path / "transactions", f"{place}/landing/transactions")
    changed = delivered(project, CORRECTED, CORRECTED + timedelta(days=1))
    assert {name: changed[name] for name in CHANGED} == CHANGED
    tables = [t for t in project.graph.tables.values() if t.is_stored]
    assert maintain(Here(project.spark), project, tables)
    check(project)
    assert not [f for f in examine(project, tables, datetime.now(UTC)) if f.table]
    days = (f"--start={FIRST}", f"--end={END}")  # of a year, which has no others' files
    told = subprocess.run(
        [sys.executable, "-m", "sluice.cli.main", "run", "retail", *days, "--preview"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    assert "nothing was committed" in told.stdout
