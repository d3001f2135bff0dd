"""Counts of days that the gate has kept."""

import datetime as dt

from sluice.gate.counts import BatchCounts, KeptCounts

DAY = dt.datetime(2017, 3, 1, tzinfo=dt.UTC)


def kept(nth: int, rows: int = 100, unusual: tuple[str, ...] = ()) -> KeptCounts:
    start = DAY + dt.timedelta(days=nth)
    return KeptCounts(BatchCounts(rows, None, {}), nth, f"run-{nth}", start, start, unusual)
