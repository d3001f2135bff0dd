"""Environments of a lake in a store: whole or not at all, one of a name, and gone when dropped."""

import json
from datetime import UTC, datetime, timedelta
from threading import Barrier, Thread

import pytest
from pyspark.sql import SparkSession
from tests.cli.trips import Ended
from tests.stores.stored_shop import RUN, StoredShop, objects
from tests.support.s3a import reach
from tests.support.stores import Store

from sluice.declare.environment_folders import names
from sluice.delta.places import overlay
from sluice.delta.places.failpoint import VARIABLE
from sluice.delta.places.lake_layout import layout
from sluice.delta.places.overlay import remove_unfinished
from sluice.errors import UsageError

NOW = datetime(2024, 1, 1, tzinfo=UTC)
RIVALS = 6


@pytest.fixture
def lake(corrected: StoredShop) -> StoredShop:
    """A day that was run, and then delivered again."""
    return corrected


@pytest.fixture
def with_spark(lake: StoredShop, spark: SparkSession, remote: str, store: Store) -> StoredShop:
    """The same; what its commands need of Spark, the tests' own does."""
    reach(spark, store, store.endpoint)
    lake.remote = remote
    return lake


def done(ended: Ended) -> str:
    assert ended.code == 0, ended.err
    return ended.out


def own(shop: StoredShop) -> set[str]:
    """The objects of the lake itself."""
    return {path for path in objects(shop) if "/__env/" not in path}


def outcomes(shop: StoredShop) -> dict[str, str]:
    told = done(shop.sluice("env", "diff", "dev", "--json"))
    found = {one["table"]: one["outcome"] for one in map(json.loads, told.splitlines())}
    return {name.removeprefix("shop."): outcome for name, outcome in found.items()}


def test_what_is_run_in_one_stays_there_until_it_is_dropped_whole(with_spark: StoredShop) -> None:
    lake = with_spark
    before, state = own(lake), lake.state()
    assert "environment dev: " in done(lake.sluice("env", "create", "dev"))
    assert {*outcomes(lake).values()} == {"untouched"}
    done(lake.sluice("--env", "dev", *RUN))
    assert (own(lake), lake.state()) == (before, state)
    assert {"sales", "totals", "best"} <= {n for n, o in outcomes(lake).items() if o == "differs"}
    (listed,) = map(json.loads, done(lake.sluice("env", "list", "--json")).splitlines())
    assert (listed["environment"], listed["own"] > 0, listed["moved_on"]) == ("dev", True, 0)
    done(lake.sluice("env", "keep", "dev", "--expires", "30 days"))
    done(lake.sluice("--env", "dev", "verify"))
    done(lake.sluice("env", "drop", "dev"))
    assert objects(lake) == before


def test_a_changed_definition_is_promoted_and_then_both_are_equal(with_spark: StoredShop) -> None:
    lake = with_spark
    done(lake.sluice("env", "create", "dev"))
    file = lake.config / "pipelines" / "shop.yaml"
    text = file.read_text()
    assert "limit: 2" in text
    file.write_text(text.replace("limit: 2", "limit: 1"))
    done(lake.sluice("--env", "dev", "rebuild", "--changed"))
    told = done(lake.sluice("env", "promote", "dev", "--json"))
    agreed = [one for one in map(json.loads, told.splitlines()) if "kind" not in one]
    assert {one["outcome"] for one in agreed} == {"equal"}
    assert "nothing to promote" in done(lake.sluice("env", "promote", "dev"))


def test_what_a_kill_has_left_is_no_environment_and_goes_a_day_later(
    lake: StoredShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, root = objects(lake), layout(lake.project)
    for edge, words in (("sharing:dev", ("create", "dev")), ("dropping:dev", ("drop", "dev"))):
        assert lake.sluice("env", *words, **{VARIABLE: edge}).code == -9
        assert names(root.root) == []
        assert len(remove_unfinished(root)) == 1 + (words[0] == "drop")
        refused = lake.sluice("forget", "sales", "--where", "item = 'tea'")
        assert (refused.code, "__env/dev/" in refused.err) == (3, True), refused.err
        done(lake.sluice("env", "create", "dev"))
    assert names(root.root) == ["dev"]
    monkeypatch.setattr(overlay, "LEFT_AFTER", timedelta())
    assert remove_unfinished(root) == []
    assert {*outcomes(lake).values()} == {"untouched"}
    done(lake.sluice("env", "drop", "dev"))
    assert objects(lake) == before


def test_of_several_that_make_one_of_a_name_at_once_one_wins(lake: StoredShop) -> None:
    root, ready = layout(lake.project), Barrier(RIVALS)
    ended: list[str] = []

    def rival() -> None:
        ready.wait()
        try:
            overlay.create(root, "dev", NOW, NOW + timedelta(days=7))
            ended.append("made")
        except UsageError as error:
            ended.append(error.message)

    rivals = [Thread(target=rival) for _ in range(RIVALS)]
    for one in rivals:
        one.start()
    for one in rivals:
        one.join()
    lost = "there is an environment 'dev' already"
    assert sorted(ended) == sorted(["made", *[lost] * (RIVALS - 1)])
    assert remove_unfinished(root) == []
    assert {*outcomes(lake).values()} == {"untouched"}


def test_it_expires(lake: StoredShop) -> None:
    root, before = layout(lake.project), objects(lake)
    overlay.create(root, "dev", NOW, NOW + timedelta(days=7))
    assert overlay.expire(root, NOW + timedelta(days=6)) == []
    assert overlay.expire(root, NOW + timedelta(days=8)) == ["dev"]
    assert objects(lake) == before


def test_what_can_not_be_done_is_named(lake: StoredShop) -> None:
    done(lake.sluice("env", "create", "dev"))
    for words, said in (
        (("--env", "deev", "status"), "has no environment 'deev'; did you mean 'dev'?"),
        (("env", "drop", "x"), "`sluice env create x` makes it; there are: dev"),
        (("env", "create", "dev"), "there is an environment 'dev' already"),
        (("env", "create", "../x"), "environment '../x' is not a name"),
        (("forget", "sales", "--where", "item = 'tea'"), "environments have these rows, too: dev"),
    ):
        ended = lake.sluice(*words)
        assert (ended.code, said in ended.err) == (2, True), ended.err
