"""Kills, zombies and two runs at once, with lake and landing folder in a store."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.crash.conftest import Pool
from tests.crash.shop import attempt, day, mended
from tests.stores.stored_shop import StoredShop
from tests.support.stores import Store, using

EDGES = [  # before and after a store's commit; tests/crash has those between commits
    "committing:sales",
    "withdrawn:sales__intervals",
    "recorded:sales__intervals",
    "committed:totals__state",
    "committing:totals",
]


@pytest.fixture(scope="module")
def workers(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    """Processes without Spark."""
    pool = Pool(tmp_path_factory.mktemp("workers"))
    with using(store.environ()):
        yield pool
    pool.stop()


@pytest.fixture(scope="module")
def undisturbed(store: Store, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The state of a lake whose runs went through."""
    from tests.crash.shop import CORRECTED, FIRST

    with using(store.environ()):
        shop = StoredShop.begin(tmp_path_factory.mktemp("whole") / "shop", store)
        for rows in (FIRST, CORRECTED):
            shop.land(1, *rows)
            shop.run(day(1))
        shop.check()
        return shop.state()


@pytest.mark.parametrize("place", EDGES)
def test_a_kill_at_an_edge_is_mended_by_running_again(
    workers: Pool, corrected: StoredShop, undisturbed: dict[str, Any], place: str
) -> None:
    workers.killed(corrected, day(1), at=place)
    mended(corrected, undisturbed)


@pytest.mark.parametrize("place", ["created:sales", "created:totals__state"])
def test_a_kill_between_the_creation_of_a_table_and_its_first_rows(
    workers: Pool, shop: StoredShop, undisturbed: dict[str, Any], place: str
) -> None:
    from tests.crash.shop import CORRECTED

    workers.killed(shop, day(1), at=place)
    shop.check()
    shop.run(day(1))
    shop.land(1, *CORRECTED)
    mended(shop, undisturbed)


def test_a_zombie_that_wakes_after_another_run_writes_nothing(
    workers: Pool, corrected: StoredShop, undisturbed: dict[str, Any]
) -> None:
    zombie = workers.take(another=False)
    zombie.tell(corrected, day(1), failpoint="committing:totals__state!STOP")
    zombie.wait_until_stopped()
    corrected.run(day(1))
    assert corrected.state() == undisturbed
    zombie.resume()
    said = zombie.answer()
    assert said is not None
    assert {o for o in said["outcomes"] if o.endswith("committed")} == {"shop.sales committed"}
    corrected.check()
    assert corrected.state() == undisturbed
    workers.give_back(zombie)


def test_two_runs_of_the_same_interval_at_once_end_as_one(
    workers: Pool, corrected: StoredShop, undisturbed: dict[str, Any]
) -> None:
    worker = workers.take(another=False)
    worker.tell(corrected, day(1))
    mine = attempt(lambda: corrected.run(day(1)))
    said = worker.answer()
    assert said is not None
    losers = [error for error in (mine, said.get("error")) if isinstance(error, str)]
    assert set(losers) <= {"LostRace"}
    mended(corrected, undisturbed)
    workers.give_back(worker)


def test_logs_and_files_hold_no_secret(corrected: StoredShop, store: Store) -> None:
    corrected.run(day(1))
    for name in store.names(corrected.bucket):
        with store.files.open_input_stream(f"{corrected.bucket}/{name}") as stream:
            content = stream.read()
        assert not any(secret.encode() in content for secret in store.secrets), name
    written: list[Path] = [p for p in corrected.folder.rglob("*") if p.is_file()]
    assert not any(secret in p.read_text() for secret in store.secrets for p in written)
