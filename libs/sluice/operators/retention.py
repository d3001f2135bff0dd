"""Which windows still live: those whose end + retention is after the horizon.

The horizon is the greatest event time among the current rows of all inputs, so lateness does not
depend on arrival: any order of the same rows ends in the same table. When the horizon rises,
windows expire; when the row that it comes from is corrected away, those that it had expired return.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from sluice.operators import windows
from sluice.operators.operator import Operator, Retention, Rows, names, union
from sluice.specs.duration import Duration


@dataclass(frozen=True)
class Horizon:
    """Where time stands before and after a batch; None: nothing has a time yet.

    `stored_from`: window starts before it are not stored, because upkeep has dropped their slices.
    """

    keep: Duration
    before: datetime | None
    now: datetime | None
    stored_from: datetime | None = None

    @property
    def has_fallen(self) -> bool:
        """Whether windows may come back."""
        return self.before is not None and (self.now is None or self.now < self.before)

    @property
    def stored_from_now(self) -> datetime | None:
        """As `stored_from`, after the batch: slices come back whose rows are visible again."""
        if self.stored_from is None or self.now is None:
            return None
        return min(self.stored_from, first_visible(self.now, self.keep))

    @property
    def brings_back(self) -> bool:
        """Whether rows return that upkeep has dropped."""
        return self.stored_from_now != self.stored_from

    def is_stored(self) -> Column:
        """Of rows with window_start."""
        if self.stored_from_now is None:
            return F.expr("true")
        return F.col(windows.START) >= F.lit(self.stored_from_now)

    def is_alive(self) -> Column:
        """Of rows with window_end."""
        return _outlives(self.keep, windows.END, self.now)

    def expired_groups(self, operator: Operator, current: DataFrame) -> DataFrame:
        """Groups that the table has and that don't live any more."""
        return current.where(~self.is_alive()).select(*names(operator.group))

    def returning_groups(self, operator: Operator, prepared: Rows) -> DataFrame:
        """Groups that had expired and live again."""
        lived = _outlives(self.keep, windows.END, self.before)
        return union(
            [
                rows.where(self.is_alive() & ~lived).select(*names(operator.group))
                for rows in prepared.values()
            ]
        )


def first_visible(horizon: datetime, keep: Duration) -> datetime:
    """The earliest window start that a store which keeps windows so long shows."""
    return keep.before(horizon) + timedelta(microseconds=1)


def latest_time(snapshots: Rows, retention: Retention) -> DataFrame:
    """One row, one column: the greatest event time of all inputs' rows (TIMESTAMP)."""
    each = [
        rows.select(F.max(F.col(f"`{column}`").cast("timestamp")).alias("horizon"))
        for name, rows in snapshots.items()
        for column in retention.times.get(name, ())
    ]
    return union(each).agg(F.max("horizon").alias("horizon"))


def _outlives(keep: Duration, end: str, horizon: datetime | None) -> Column:
    if horizon is None:
        return F.expr("true")
    return windows.plus(F.col(end), keep) > F.lit(horizon)
