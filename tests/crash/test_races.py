"""Two runs at once: one winner for every commit, and tables as after one run."""

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from tests.crash.conftest import Pool
from tests.crash.shop import Shop, attempt, day

from sluice.delta.intervals import deliveries


@pytest.mark.parametrize(
    ("place", "committer"),
    [("committing:sales", "spark"), ("committing:totals__state", "delta-rs")],
)
def test_a_zombie_that_wakes_after_another_run_writes_nothing(
    pool: Pool,
    before: Shop,
    undisturbed: dict[str, Any],
    tmp_path: Path,
    place: str,
    committer: str,
) -> None:
    shop = before.copy(tmp_path / "shop", committer)
    zombie = pool.take(another=False)
    zombie.tell(shop, day(1), failpoint=f"{place}!STOP")
    zombie.wait_until_stopped()
    shop.run(day(1))
    state = shop.state()
    assert state == undisturbed
    zombie.resume()
    said = zombie.answer()
    assert said is not None
    before_it_slept = {"shop.sales committed"} if "totals" in place else set()
    wrote = {outcome for outcome in said["outcomes"] if outcome.endswith("committed")}
    assert wrote == before_it_slept
    shop.check()
    assert shop.state() == state
    pool.give_back(zombie)


def test_two_runs_of_the_same_interval_at_once_end_as_one(
    pool: Pool, before: Shop, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    worker = pool.take(another=False)
    for number in range(2):
        shop = before.copy(tmp_path / f"shop-{number}", "spark" if number % 2 else "auto")
        worker.tell(shop, day(1))
        mine = attempt(lambda shop=shop: shop.run(day(1)))  # type: ignore[misc]
        said = worker.answer()
        assert said is not None
        losers = [error for error in (mine, said.get("error")) if isinstance(error, str)]
        assert set(losers) <= {"LostRace"}
        shop.check()
        shop.run(day(1))
        shop.check()
        assert shop.state() == undisturbed
    pool.give_back(worker)


def test_overlapping_intervals_leave_one(pool: Pool, before: Shop, tmp_path: Path) -> None:
    """Whichever came last: the note of what was delivered names the rows that are there."""
    shop = before.copy(tmp_path / "shop")
    shop.land(2, ("d", "fig", "4.00"))
    worker = pool.take(another=False)
    worker.tell(shop, day(1, days=2), what="ingest")
    attempt(lambda: shop.ingest(day(1)))
    assert worker.answer() is not None
    shop.check()
    noted = {d.interval: d.rows_accepted for d in deliveries(shop.uri("sales__intervals"))}
    found = rows_by_start(shop)
    assert {interval.start: n for interval, n in noted.items() if n} == found
    shop.ingest(day(1, days=2))
    assert [d.interval for d in deliveries(shop.uri("sales__intervals"))] == [day(1, days=2)]
    pool.give_back(worker)


def rows_by_start(shop: Shop) -> dict[Any, int]:
    found: dict[Any, int] = {}
    for row in DeltaTable(shop.uri("sales")).to_pyarrow_table().to_pylist():
        start = row["_sluice_interval"]
        found[start] = found.get(start, 0) + 1
    return found
