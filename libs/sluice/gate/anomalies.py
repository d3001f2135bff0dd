"""Anomalies: batches that are far from the batches around them, found without configuration.

A number is unusual if it lies more than six spreads from the median of up to 28 batches nearest in
time. It must also lie clearly farther (by a quarter) than two of them did, because weekends are
usual. The spread is the median distance from the median (MAD), scaled to equal a standard deviation
where numbers are normal. One wild day moves none of this.

The spread is at least the random variation of a count of that size. Nor is it less than a twentieth
of a count or one percent of the rows. So a source that never varied may vary a little. Fewer than
eight batches show nothing, except a column without a single value that always had some.

Small deliveries come in bursts: fewer than a hundred rows are never too many. A source whose
batches are empty more often than not has no usual count.
"""

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from statistics import median
from typing import TYPE_CHECKING

from sluice.delta.places.lake_layout import LakeLayout
from sluice.gate.counts import BatchCounts, KeptCounts, keep, read_counts

if TYPE_CHECKING:
    from sluice.gate.results import Verdict

LEAST_HISTORY, LONGEST_HISTORY = 8, 28
FAR = 6.0  # spreads
NORMAL = 1.4826  # MAD to standard deviation
LEAST_ROWS = 20  # of a column without a value
LEAST_BURST = 100  # rows that are never too many
BEYOND = 1.25  # times as far from the median as two batches were
LEAST_VARIATION, LEAST_SHARE = 0.05, 0.01


@dataclass(frozen=True)
class Usual:
    """Median of a number over several batches, and the range that is not unusual."""

    median: float
    low: float
    high: float
    batches: int

    def covers(self, number: float) -> bool:
        return self.low <= number <= self.high


def warnings(
    lake: LakeLayout,
    verdict: "Verdict",
    *,
    run: str,
    batch: int,
    checked_at: dt.datetime,
    interval_start: dt.datetime | None = None,
    is_absent: bool = False,
) -> tuple[str, ...]:
    """Return what is unusual in a batch among its table's last ones; store its counts, too.

    A batch that may be absent (`is_absent`) is never unusual, but counts for the others.
    Safe to repeat: a batch is never compared with an earlier delivery of the same interval.
    """
    if verdict.counts is None:
        return ()
    new = KeptCounts(verdict.counts, batch, run, checked_at, interval_start)
    past = read_counts(lake, verdict.table)
    odd = [] if is_absent else unusual(new.counts, around(new, past))
    named = tuple(f"{verdict.table}: {what}" for what in odd)
    keep(lake, verdict.table, replace(new, unusual=named), past)
    return tuple(odd)


def around(new: KeptCounts, past: Sequence[KeptCounts]) -> list[BatchCounts]:
    """Return the counts to compare a batch with: its neighbours in time."""
    others = [kept for kept in past if not new.replaces(kept)]
    nearest = sorted(others, key=lambda kept: abs(kept.moment - new.moment))
    return [kept.counts for kept in nearest[:LONGEST_HISTORY]]


def unusual(new: BatchCounts, past: Sequence[BatchCounts]) -> list[str]:
    """Return what is unusual, as text with the numbers.

    Keys are checked only if the row count is usual; otherwise both would report the same.
    """
    rows = list(_count("rows", new.rows, [f.rows for f in past]))
    keys = [f.keys for f in past if f.keys is not None]
    if not rows and new.keys is not None:
        rows = list(_count("different keys", new.keys, keys))
    nulls = _nulls if len(past) >= LEAST_HISTORY else _find_vanished
    return [*rows, *(what for column in new.nulls for what in nulls(column, new, past))]


def usual_count(past: Sequence[int]) -> Usual | None:
    """Return the usual range of counts; None if they are too few, or mostly zero."""
    if len(past) < LEAST_HISTORY or (middle := median(past)) < 1:
        return None
    usual = _usual(past, middle, max(sqrt(middle), LEAST_VARIATION * middle))
    return replace(usual, high=max(usual.high, LEAST_BURST))


def usual_share(past: Sequence[float], of: int) -> Usual | None:
    """Return the usual range of shares, for a batch of `of` rows; None if they are too few."""
    if len(past) < LEAST_HISTORY:
        return None
    middle = median(past)
    likely = (middle * of + 1) / (of + 2)  # never 0 or 1, because other values may occur
    return _usual(past, middle, max(sqrt(likely * (1 - likely) / of), LEAST_SHARE))


def _usual(past: Sequence[float], middle: float, least_spread: float) -> Usual:
    spread = NORMAL * median(abs(number - middle) for number in past)
    far = FAR * max(spread, least_spread)
    ordered = sorted(past)
    below, above = (BEYOND * abs(ordered[nth] - middle) for nth in (1, -2))  # seen twice
    return Usual(middle, max(middle - max(far, below), 0.0), middle + max(far, above), len(past))


def _count(noun: str, number: int, past: Sequence[int]) -> Iterator[str]:
    usual = usual_count(past)
    if usual and not usual.covers(number):
        yield (
            f"{number:,} {noun} arrived, usually {usual.median:,.0f} (median of {usual.batches}"
            f" batches; from {usual.low:,.0f} to {usual.high:,.0f} is not unusual)"
        )


def _nulls(column: str, new: BatchCounts, past: Sequence[BatchCounts]) -> Iterator[str]:
    shares = [f.nulls[column] / f.rows for f in past if f.rows and column in f.nulls]
    usual = usual_share(shares, new.rows) if new.rows else None
    if usual and not usual.covers(share := new.nulls[column] / new.rows):
        yield (
            f"{column} is null in {_percent(share)} of {new.rows:,} rows, usually in"
            f" {_percent(usual.median)} (median of {usual.batches} batches; from"
            f" {_percent(usual.low)} to {_percent(min(usual.high, 1.0))} is not unusual)"
        )


def _find_vanished(column: str, new: BatchCounts, past: Sequence[BatchCounts]) -> Iterator[str]:
    """Report a column that has no value in any of many rows, but had values before."""
    had = all(f.nulls.get(column, f.rows) < f.rows for f in past)
    if past and had and new.nulls[column] == new.rows >= LEAST_ROWS:
        yield f"{column} is null in all of {new.rows:,} rows, and had values in every batch before"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
