"""A run through a join, a union, a select and window functions, killed at places on its way.

Here one place of each; `SLUICE_KILLS=2` kills at every one, in the run that creates them as well.

Each run is a process that a server forks, with everything imported, so a kill costs no start. None
needs Spark: what is between two commits is the same with it.
"""

import os
import signal
from pathlib import Path
from typing import ClassVar

import pytest
from tests.crash.shop import CORRECTED, FIRST, PIPELINE, POSITIONED, Shop, day
from tests.support.forked import forked
from tests.support.indexing import index_small_tables

from sluice.declare.project import Project
from sluice.delta.log.files import has_vectors
from sluice.delta.places.delta_rs import open_table
from sluice.delta.places.failpoint import VARIABLE
from sluice.language.interval import Interval
from sluice.limits import Limits

MORE = """
  beside:
    kind: join
    type: left
    left: sales
    right: best
    on: [shop, item]
    select: {shop: sales.shop, item: sales.item, rank: best.rank}
  flows:
    kind: union
    from:
      - {table: beside, where: rank is not null, select: {shop: shop, item: item}}
      - {table: totals, where: lines > 1, select: {shop: shop, item: item}}
    tag: flow
  shops: {kind: select, from: flows, select: {shop: shop, flow: flow}, distinct: true}
  steps:
    kind: over
    from: totals
    partition_by: [shop]
    order_by: [item]
    select: {shop: shop, item: item, so_far: sum(total) OVER (w ROWS UNBOUNDED PRECEDING)}
"""
NEW = ("beside", "flows", "shops", "steps")
STEPS = ("creating", "created", "pinned", "committing", "committed")
PLACES = ("committing:beside", "committed:flows", "pinned:shops", "committed:steps")
MARKING = (
    "indexing:totals__state",
    "sealing:index#4",
    "marked:totals__state",
    "committed:totals__state",
    "marked:totals",
    "committed:totals",
)
IN_DEPTH = os.environ.get("SLUICE_KILLS", "1") != "1"


class Mall(Shop):
    """The shop, with one view more of each kind that follows several rows or tables."""

    pipeline: ClassVar[str] = PIPELINE + MORE
    positioned: ClassVar[tuple[str, ...]] = (*POSITIONED, *NEW)


class MarkedMall(Mall):
    """The same, whose tables all count as large: they are indexed, and rows that go are marked."""

    @property
    def project(self) -> Project:
        limits = Limits(merged_bytes=-1, marked_share=1_000, read_here_bytes=-1)
        return super().project.model_copy(update={"limits": limits})

    def run(self, *intervals: Interval) -> list[str]:
        index_small_tables()  # in a process of its own
        return super().run(*intervals)


def go(kind: type[Mall], folder: Path, place: str) -> None:
    os.environ[VARIABLE] = place
    kind(folder).run(day(1))


def ran(mall: Mall, place: str = "") -> int:
    """How a run in a process of its own has ended: 0, or the signal that has killed it."""
    process = forked(go, type(mall), mall.folder, place)
    process.join()
    assert process.exitcode is not None
    return process.exitcode


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Mall:
    """A day was delivered and everything is up to date; then that day was corrected."""
    mall = Mall.create(tmp_path_factory.mktemp("mall") / "before")
    mall.land(1, *FIRST)
    assert ran(mall) == 0
    mall.land(1, *CORRECTED)
    return mall


@pytest.mark.parametrize("is_new", [False, True] if IN_DEPTH else [False])
def test_kills_anywhere_are_mended(before: Mall, tmp_path: Path, *, is_new: bool) -> None:
    begun = Mall.create(tmp_path / "begun") if is_new else before
    begun.land(1, *CORRECTED)
    whole = begun.copy(tmp_path / "whole")
    assert ran(whole) == 0
    undisturbed = whole.state()
    steps = STEPS if is_new else STEPS[2:]
    every = tuple(f"{step}:{name}" for name in NEW for step in steps)
    for place in every if IN_DEPTH else PLACES:
        mall = begun.copy(tmp_path / place)
        assert ran(mall, place) == -signal.SIGKILL, place
        mall.check()
        assert ran(mall) == 0
        mall.check()
        assert mall.state() == undisturbed, place


def test_kills_while_rows_are_indexed_and_marked_are_mended(before: Mall, tmp_path: Path) -> None:
    rewritten = before.copy(tmp_path / "rewritten")
    assert ran(rewritten) == 0
    large = MarkedMall(before.folder)
    for place in MARKING:
        mall = large.copy(tmp_path / place.replace("#", "-"))
        assert ran(mall, place) == -signal.SIGKILL, place
        mall.check()
        assert ran(mall) == 0
        mall.check()
        assert mall.state() == rewritten.state(), place
        assert has_vectors(open_table(mall.uri("totals")))
