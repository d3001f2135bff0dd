"""Windows of an event time: tumbling and hopping ones, sessions, and which of them are live.

A window is [start, start + size), aligned in UTC or in a named zone's wall clock. So a day is a
local day, 23 or 25 hours long twice a year. A window of less than a day keeps its length if its
step divides an hour evenly. Sizes in months are calendar months. Rows without an event time are in
no window.

Live windows: those whose end + retention is after the horizon.

The horizon is the greatest event time among the current rows of all inputs. So lateness does not
depend on arrival: any order of the same rows produces the same table. When the horizon rises,
windows expire. When a correction removes the row that sets it, the windows that it had expired
return.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from sluice.changes import WEIGHT
from sluice.declare.table_spec import END, START, Window
from sluice.engine.operator import InputRows, Operator, Retention, names, union
from sluice.language.interval import Duration

TIME = "_time"
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999  # microseconds: years 1 to 9999


def assign(rows: DataFrame, window: Window, time: str) -> DataFrame:
    """Return `rows` with window_start and window_end (TIMESTAMP), once for each window of a row."""
    timed = rows.where(F.col(f"`{time}`").isNotNull())
    size = window.size
    assert size is not None, "sessions are made by `sessions`"
    at = F.col(f"`{time}`").cast("timestamp")
    local = _to_local(at, window.timezone)
    last, zone = _floor(local, window.advance or size), window.timezone
    if _keeps_length(window):
        gone = F.unix_micros(local) - F.unix_micros(last)
        last, local, zone = F.timestamp_micros(F.unix_micros(at) - gone), at, "UTC"
    starts = F.array(last) if window.type == "tumbling" else _hops(last, local, window, zone)
    exploded = timed.withColumn("_local_start", F.explode(starts))
    end = plus(F.col("_local_start"), size)
    return exploded.select(
        "*",
        _readable(_to_utc(F.col("_local_start"), zone)).alias(START),
        _readable(_to_utc(end, zone)).alias(END),
    ).drop("_local_start")


def _keeps_length(window: Window) -> bool:
    """True if clock changes don't affect the windows, because their step divides every hour."""
    size, step = window.size, window.advance or window.size
    if size is None or step is None or size.longest >= timedelta(days=1):
        return False
    return not timedelta(hours=1) % step.timedelta


def sessions(rows: DataFrame, key: Sequence[str], window: Window | None) -> DataFrame:
    """Return `rows` (with TIME, never null) and the bounds of each row's session within its key.

    Rows at most `gap` apart are in one session; window_end is its last row's time + gap.
    """
    gap = window.gap if window else None
    assert gap is not None, "sessions have a gap"
    by_key = Over.partitionBy(*[F.col(f"`{c}`") for c in key])
    in_order = by_key.orderBy(TIME)
    earlier = F.lag(TIME).over(in_order)
    begins = earlier.isNull() | (F.col(TIME) > plus(earlier, gap))
    upto = in_order.rangeBetween(Over.unboundedPreceding, Over.currentRow)
    marked = rows.withColumn("_begins", begins.cast("int"))
    numbered = marked.withColumn("_session", F.sum("_begins").over(upto)).drop(END)
    each = Over.partitionBy(*[F.col(f"`{c}`") for c in key], "_session")
    return numbered.select(
        "*",
        F.min(TIME).over(each).alias(START),
        _readable(plus(F.max(TIME).over(each), gap)).alias(END),
    ).drop("_begins", "_session", TIME)


def _hops(last: Column, local: Column, window: Window, zone: str) -> Column:
    size, advance = window.size, window.advance
    assert size is not None
    assert advance is not None
    count = -(-size.longest // advance.shortest)
    starts = F.transform(F.sequence(F.lit(0), F.lit(count - 1)), lambda i: plus(last, advance, -i))
    return F.filter(
        starts, lambda start: (plus(start, size) > local) & _begins(start, advance, zone)
    )


def _begins(start: Column, advance: Duration, zone: str) -> Column:
    """False if the clock skips `start` to that of a later window, with which it would coincide."""
    if zone == "UTC":
        return F.lit(True)
    real = _to_local(_to_utc(start, zone), zone)
    return (real == start) | (_floor(real, advance) != real)


def _floor(time: Column, size: Duration) -> Column:
    if size.months:
        index = F.year(time) * 12 + F.month(time) - 1 - 1970 * 12
        month = F.floor(index / size.months) * size.months
        first = F.add_months(F.lit("1970-01-01").cast("date"), month.cast("int"))
        return first.cast("timestamp")
    micros = F.unix_micros(time)
    return F.timestamp_micros(
        micros - F.pmod(micros, F.lit(_micros(size.timedelta)).cast("bigint"))
    )


def alone(window: Window) -> Column:
    """Return the end of a session that holds only the row with TIME."""
    assert window.gap is not None
    return plus(F.col(TIME), window.gap)


def plus(time: Column, size: Duration, times: Column | int = 1) -> Column:
    """Return `time` plus so many lengths; months by the calendar."""
    if size.months:
        return time + F.make_interval(months=F.lit(times) * size.months)
    micros = F.lit(_micros(size.timedelta)).cast("bigint")
    return F.timestamp_micros(F.unix_micros(time) + F.lit(times) * micros)


def _readable(bound: Column) -> Column:
    """Return a window's bound; an error ends the batch if Python can't represent it."""
    words = "the window of an event time is not within the years 1 to 9999"
    micros = F.unix_micros(bound)
    return F.when(micros.between(_FIRST, _LAST), bound).otherwise(F.raise_error(F.lit(words)))


def _to_local(time: Column, timezone: str) -> Column:
    return time if timezone == "UTC" else F.from_utc_timestamp(time, timezone)


def _to_utc(time: Column, timezone: str) -> Column:
    return time if timezone == "UTC" else F.to_utc_timestamp(time, timezone)


def _micros(length: timedelta) -> int:
    return length // timedelta(microseconds=1)


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
        if end == START:  # compared with a literal, by which a scan skips files
            earliest = self.retention.keep.before(horizon)
            return F.col(end) > F.lit(earliest)
        return plus(F.col(f"`{end}`"), self.retention.keep) > F.lit(horizon)


def latest_time(snapshots: InputRows, retention: Retention) -> DataFrame:
    """Return the greatest event time of all inputs' rows: one row, one column (TIMESTAMP)."""
    each = [
        rows.select(F.max(F.col(f"`{column}`").cast("timestamp")).alias("horizon"))
        for name, rows in snapshots.items()
        for column in retention.times.get(name, ())
    ]
    return union(each).agg(F.max("horizon").alias("horizon"))


LATE = "late"


def late_of_change(prepared: Iterable[DataFrame], alive: Column) -> DataFrame:
    """Count late rows of a prepared net change; a row counts in every window it would be in.

    The result is one row with the one column LATE, which is null if there are none.
    """
    came = union(list(prepared)).where((F.col(WEIGHT) > 0) & ~alive)
    return came.agg(F.sum(WEIGHT).alias(LATE))
