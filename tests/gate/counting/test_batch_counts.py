"""Counts of a source's and a dimension's last batches are kept, one for each delivery or load."""

import datetime as dt
from pathlib import Path

from tests.gate.outcomes.days import DAY, kept

from sluice.delta.places.lake_layout import LakeLayout
from sluice.gate import counts
from sluice.gate.anomalies import warnings
from sluice.gate.counts import KEPT, BatchCounts
from sluice.gate.results import Verdict


def verdict(rows: int) -> Verdict:
    return Verdict("shop.sales", rows, rows, (), BatchCounts(rows, rows, {"item": 0}))


def test_counts_are_kept_and_a_repeat_replaces_its_own(tmp_path: Path) -> None:
    lake = LakeLayout(str(tmp_path))
    rows = [1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 3, 3]
    starts = [DAY + dt.timedelta(days=min(nth, 8)) for nth in range(10)]
    told = [
        warnings(lake, verdict(n), run="r", batch=nth, checked_at=at, interval_start=at)
        for nth, (n, at) in enumerate(zip(rows, starts, strict=True))
    ]
    assert told[:8] == [()] * 8
    assert told[8] == told[9]  # the second delivery of the interval is not held against its first
    assert told[8][0].startswith("3 rows arrived, usually 1,000")
    found = counts.read_counts(lake, "shop.sales")
    assert [k.batch for k in found] == [*range(8), 9]
    assert found[-1].unusual == tuple(f"shop.sales: {what}" for what in told[9])
    assert found[-1].counts == BatchCounts(3, 3, {"item": 0})


def test_only_the_last_batches_are_kept(tmp_path: Path) -> None:
    lake = LakeLayout(str(tmp_path))
    past = [kept(nth) for nth in range(KEPT)]
    counts.keep(lake, "shop.sales", kept(KEPT, unusual=("odd",)), past)
    found = counts.read_counts(lake, "shop.sales")
    assert (len(found), found[0].batch, found[-1]) == (KEPT, 1, kept(KEPT, unusual=("odd",)))


def test_loads_of_a_dimension_are_distinguished_by_their_batch(tmp_path: Path) -> None:
    lake = LakeLayout(str(tmp_path))
    for batch in (1, 2, 2, 3):
        warnings(lake, verdict(10 * batch), run="r", batch=batch, checked_at=DAY)
    assert [(k.batch, k.counts.rows) for k in counts.read_counts(lake, "shop.sales")] == [
        (1, 10),
        (2, 20),
        (3, 30),
    ]
