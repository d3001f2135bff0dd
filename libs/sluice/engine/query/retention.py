"""Live windows: those whose end + retention is after the horizon.

The horizon is the greatest event time among the current rows of all inputs. So lateness does not
depend on arrival: any order of the same rows produces the same table. When the horizon rises,
windows expire. When a correction removes the row that sets it, the windows that it had expired
return.
"""

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from sluice.engine.query import windows
from sluice.engine.query.operator import InputRows, Operator, Retention, names, union


@dataclass(frozen=True)
class Horizon:
    """Horizon before and after a batch; None if no row has a time yet."""

    retention: Retention
    before: datetime | None
    now: datetime | None

    @property
    def has_fallen(self) -> bool:
        """True if windows may return."""
        return self.before is not None and (self.now is None or self.now < self.before)

    def is_alive(self) -> Column:
        """Condition on rows with the end of their window: true if they are alive."""
        return self._outlives(self.retention.end, self.now)

    def expired_groups(self, operator: Operator, current: DataFrame) -> DataFrame:
        """Return the table's groups that are no longer alive."""
        return current.where(~self.is_alive()).select(*names(operator.group))

    def returning_groups(self, operator: Operator, prepared: InputRows) -> DataFrame:
        """Return the groups that had expired and are alive again."""
        lived = self._outlives(self.retention.first_end or self.retention.end, self.before)
        return union(
            [
                rows.where(self.is_alive() & ~lived).select(*names(operator.group))
                for rows in prepared.values()
            ]
        )

    def _outlives(self, end: str, horizon: datetime | None) -> Column:
        if horizon is None:
            return F.expr("true")
        if end == windows.START:  # compared with a literal, by which a scan skips files
            earliest = self.retention.keep.before(horizon)
            return F.col(end) > F.lit(earliest)
        return windows.plus(F.col(f"`{end}`"), self.retention.keep) > F.lit(horizon)


def latest_time(snapshots: InputRows, retention: Retention) -> DataFrame:
    """Return the greatest event time of all inputs' rows: one row, one column (TIMESTAMP)."""
    each = [
        rows.select(F.max(F.col(f"`{column}`").cast("timestamp")).alias("horizon"))
        for name, rows in snapshots.items()
        for column in retention.times.get(name, ())
    ]
    return union(each).agg(F.max("horizon").alias("horizon"))
