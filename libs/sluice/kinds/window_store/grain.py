"""Lengths of the time slices in which a window store files its rows: hour to year.

A read of the newest rows opens the newest slice, and a read of a rare key opens every one. Expired
rows leave a whole slice at a time. Slices are therefore as short as possible without becoming too
many.
"""

from datetime import timedelta
from enum import IntEnum

from sluice.language.duration import Duration

MOST = 100  # slices in a retention: each is a file that a read of a rare key opens
LEAST_WINDOWS = 24  # windows that share a slice
DAY = timedelta(days=1)


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
