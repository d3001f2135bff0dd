"""A run that is killed anywhere, and then run again, ends as one that was not.

Here a handful of kills: one at each kind of edge, and one at a random time. `SLUICE_KILLS=200`
kills that often at random times, elsewhere for each `SLUICE_KILLS_SEED`.
"""

import os
import random
import time
from pathlib import Path
from typing import Any

import pytest
from tests.crash.conftest import Pool, Worker
from tests.crash.shop import Shop, day, mended

from sluice.read.pending import pending

KILLS = int(os.environ.get("SLUICE_KILLS", "1"))
SEED = int(os.environ.get("SLUICE_KILLS_SEED", "1"))
LONGEST_RUN = 6.0
EDGES = [  # (place, committer)
    ("committing:sales", "auto"),  # the quarantine is written, the source is not
    ("committed:sales", "spark"),  # the source is written, the note of its delivery is not
    ("pinned:totals__state", "auto"),  # inputs chosen, nothing written
    ("committed:totals__state", "auto"),  # the state is ahead of the view that it is behind
    ("committing:totals", "spark"),
    ("committed:totals", "auto"),  # between chained views
    ("committed:best__state", "auto"),  # a ranking's state is ahead of the ranking
    ("committed:best", "spark"),  # all is written, the run does not know
]


@pytest.mark.parametrize(("place", "committer"), EDGES)
def test_a_kill_at_an_edge_is_mended_by_running_again(
    pool: Pool,
    before: Shop,
    undisturbed: dict[str, Any],
    tmp_path: Path,
    place: str,
    committer: str,
) -> None:
    shop = before.copy(tmp_path / "shop", committer)
    pool.killed(shop, day(1), at=place)
    mended(shop, undisturbed)


def test_a_kill_between_the_creation_of_a_table_and_its_first_rows(
    pool: Pool, before: Shop, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    shop = Shop.create(tmp_path / "shop")
    shop.land(1, ("a", "tea", "1.00"), ("a", None, "1.00"))
    pool.killed(shop, day(1), at="created:totals__state")
    shop.check()
    shop.run(day(1))
    shop.check()
    whole = Shop.create(tmp_path / "whole")
    whole.land(1, ("a", "tea", "1.00"), ("a", None, "1.00"))
    whole.run(day(1))
    assert shop.state() == whole.state()


@pytest.mark.parametrize(("what", "place"), [("job", "reporting"), ("task", "succeeding")])
def test_a_kill_before_success_is_reported_leaves_nothing_to_do(
    pool: Pool, before: Shop, undisturbed: dict[str, Any], tmp_path: Path, what: str, place: str
) -> None:
    shop = before.copy(tmp_path / "shop")
    shop.ingest(day(1))
    pool.killed(shop, day(1), at=f"{place}:best", what=what)
    assert shop.state() == undisturbed
    mended(shop, undisturbed)
    assert pending(shop.project, shop.project.graph.table("best")) == {}


@pytest.mark.parametrize("number", range(KILLS))
def test_a_kill_at_any_time_is_mended_by_running_again(
    before: Shop, undisturbed: dict[str, Any], tmp_path: Path, number: int
) -> None:
    chance = random.Random(f"{SEED}-{number}")
    shop = before.copy(tmp_path / "shop", chance.choice(["auto", "spark"]))
    worker = Worker.start(tmp_path / "worker")
    assert worker.answer() == {"ready": True}
    worker.tell(shop, day(1))
    time.sleep(chance.uniform(0, LONGEST_RUN))
    worker.kill()
    mended(shop, undisturbed)
