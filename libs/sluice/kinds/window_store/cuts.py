"""Periods that a store without a retention cuts into finer slices, because they have many rows.

A year is one slice until it has many rows. From then on, its rows go into slices of months, and
those of a full month into slices of days. Rows stay in the slice that they were filed in. So there
are few slices of few rows, and none grows far beyond a batch more than the limit.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from sluice.kinds.window_store.grain import Grain

LAST_YEAR, LAST_MONTH = 9999, 999912  # the greatest slice numbers of these lengths
FIRST_DAY = 10_000_000


@dataclass(frozen=True)
class Cuts:
    """Numbers of the years and months that are cut."""

    years: frozenset[int] = field(default_factory=frozenset)
    months: frozenset[int] = field(default_factory=frozenset)

    @classmethod
    def of(cls, stored: Mapping[int, int], arriving: Mapping[int, int], most: int) -> "Cuts":
        """Return the cuts of a store: periods with finer slices, or with more than `most` rows.

        `stored`: rows by slice. `arriving`: a large batch's rows by month.
        """
        finer = {_month(number) for number in stored if number > LAST_MONTH}
        in_months = {n: rows for n, rows in stored.items() if LAST_YEAR < n <= LAST_MONTH}
        in_years = {n: rows for n, rows in stored.items() if n <= LAST_YEAR}
        by_year = Counter[int]()
        for month, rows in arriving.items():
            by_year[_year(month)] += rows
        years = {_year(month) for month in (*finer, *in_months)}
        return cls(
            frozenset(years | _full(in_years, by_year, most)),
            frozenset(finer | _full(in_months, arriving, most)),
        )

    def at(self, grain: Grain) -> frozenset[int]:
        """Return the periods of a length that are cut."""
        return {Grain.YEAR: self.years, Grain.MONTH: self.months}.get(grain, frozenset())


def in_time(number: int) -> int:
    """Return the start of a slice, by which slices of any length can be sorted."""
    while 0 < number < FIRST_DAY:
        number *= 100
    return number


def _full(stored: Mapping[int, int], arriving: Mapping[int, int], most: int) -> set[int]:
    together = Counter(stored)
    together.update(arriving)
    return {number for number, rows in together.items() if rows > most}


def _month(day: int) -> int:
    return day // 100


def _year(month: int) -> int:
    return month // 100
