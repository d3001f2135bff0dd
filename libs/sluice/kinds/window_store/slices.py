"""Slices of time in which a window store files its rows.

A read of the newest rows opens the newest slice, and a read of a rare key opens every one. Expired
rows leave a whole slice at a time. Slices are therefore as short as possible without becoming too
many: by the retention, or, without one, finer where a period has many rows.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import IntEnum

from sluice.language.wall_clock import Duration

MOST = 100  # slices in a retention: each is a file that a read of a rare key opens
LEAST_WINDOWS = 24  # windows that share a slice
DAY = timedelta(days=1)

LAST_YEAR, LAST_MONTH = 9999, 999912  # the greatest slice numbers of these lengths
FIRST_DAY = 10_000_000


class Grain(IntEnum):
    """Length of a slice; its value is how many calendar parts form a slice's number."""

    YEAR = 1
    MONTH = 2
    DAY = 3
    HOUR = 4

    @classmethod
    def of(cls, window: Duration | None, retention: Duration | None) -> "Grain":
        """Return the shortest grain with at most 100 slices in the retention.

        Without a retention, return a day, or the shortest longer grain that holds 24 windows; at
        most a year.
        """
        if retention:
            fits = (g for g in reversed(cls) if retention.longest <= MOST * g.shortest)
        else:
            length = window.longest if window else timedelta()
            fits = (g for g in (cls.DAY, cls.MONTH) if LEAST_WINDOWS * length <= g.longest)
        return next(iter(fits), cls.YEAR)

    @property
    def shortest(self) -> timedelta:
        """Least time that a slice spans."""
        return {1: 365 * DAY, 2: 28 * DAY, 3: DAY, 4: timedelta(hours=1)}[self.value]

    @property
    def longest(self) -> timedelta:
        """Most time that a slice spans."""
        return {1: 366 * DAY, 2: 31 * DAY}.get(self.value, self.shortest)


@dataclass(frozen=True)
class Cuts:
    """Numbers of the years and months that a store without a retention cuts into finer slices.

    A year is one slice until it has many rows. From then on, its rows go into slices of months, and
    those of a full month into slices of days. Rows stay in the slice that they were filed in. So
    there are few slices of few rows, and none grows far beyond a batch more than the limit.
    """

    years: frozenset[int] = field(default_factory=frozenset)
    months: frozenset[int] = field(default_factory=frozenset)

    @classmethod
    def of(cls, stored: Mapping[int, int], arriving: Mapping[int, int], most: int) -> "Cuts":
        """Return the cuts of a store: periods with finer slices, or with more than `most` rows.

        `stored`: rows by slice. `arriving`: a large batch's rows by month.
        """
        # Without its last two digits, the number of a day is its month's, and that its year's.
        finer = {number // 100 for number in stored if number > LAST_MONTH}
        in_months = {n: rows for n, rows in stored.items() if LAST_YEAR < n <= LAST_MONTH}
        in_years = {n: rows for n, rows in stored.items() if n <= LAST_YEAR}
        by_year = Counter[int]()
        for month, rows in arriving.items():
            by_year[month // 100] += rows
        years = {month // 100 for month in (*finer, *in_months)}
        return cls(
            frozenset(years | _find_full(in_years, by_year, most)),
            frozenset(finer | _find_full(in_months, arriving, most)),
        )

    def at(self, grain: Grain) -> frozenset[int]:
        """Return the periods of a length that are cut."""
        return {Grain.YEAR: self.years, Grain.MONTH: self.months}.get(grain, frozenset())


def in_time(number: int) -> int:
    """Return the start of a slice, by which slices of any length can be sorted."""
    while 0 < number < FIRST_DAY:
        number *= 100
    return number


def _find_full(stored: Mapping[int, int], arriving: Mapping[int, int], most: int) -> set[int]:
    together = Counter(stored)
    together.update(arriving)
    return {number for number, rows in together.items() if rows > most}
