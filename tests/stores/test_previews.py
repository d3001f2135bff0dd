"""A preview of a lake in a store counts what the next run does, and leaves nothing behind."""

import json
from datetime import timedelta

import pytest
from tests.stores.stored_shop import RUN, StoredShop, objects

from sluice.delta.places import overlay
from sluice.delta.places.failpoint import VARIABLE
from sluice.delta.places.lake_layout import layout
from sluice.delta.places.overlay import previews

KINDS = ("inserted", "updated", "deleted")


def counts(told: str) -> dict[str, list[int]]:
    """The changed rows of each visible table, added up over its batches."""
    found: dict[str, list[int]] = {}
    for line in map(json.loads, told.splitlines()):
        if "__" not in line["table"] and any(line[kind] for kind in KINDS):
            before = found.get(line["table"], [0, 0, 0])
            found[line["table"]] = [n + line[kind] for n, kind in zip(before, KINDS, strict=True)]
    return found


def test_it_counts_what_the_run_does_and_leaves_nothing(corrected: StoredShop) -> None:
    shop, before = corrected, objects(corrected)
    told = shop.sluice(*RUN, "--preview", "--json")
    assert told.code == 0, told.err
    assert objects(shop) == before
    done = shop.sluice(*RUN, "--json")
    assert done.code == 0, done.err
    assert counts(told.out) == counts(done.out) != {}
    shop.check()


def test_what_a_kill_has_left_goes_a_day_later_and_stops_an_erasure(
    corrected: StoredShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = corrected
    killed = shop.sluice(*RUN, "--preview", **{VARIABLE: "committed:totals"})
    assert killed.code == -9, killed.err
    lake = layout(shop.project)
    assert len(previews(lake)) == 1
    refused = shop.sluice("forget", "sales", "--where", "item = 'tea'")
    assert (refused.code, "a preview is running" in refused.err) == (3, True), refused.err
    assert shop.sluice(*RUN, "--preview").code == 0
    assert len(previews(lake)) == 1
    monkeypatch.setattr(overlay, "LEFT_AFTER", timedelta())
    assert previews(lake) == []
    assert not [path for path in objects(shop) if "__preview" in path]
    assert shop.sluice(*RUN).code == 0
    shop.check()
