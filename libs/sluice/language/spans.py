"""Shortening of many intervals: those that touch each other are one span."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from sluice.language.interval import Interval, Schedule

SHOWN = 3


@dataclass(frozen=True)
class Span:
    """Consecutive intervals without a gap: their bounds, shown in a zone, and their number."""

    interval: Interval
    count: int
    timezone: str = "UTC"

    def __str__(self) -> str:
        noun = "interval" if self.count == 1 else "intervals"
        return f"{self.interval.shown(self.timezone)} ({self.count:,} {noun})"


def spans(intervals: Iterable[Interval], timezone: str = "UTC") -> list[Span]:
    """Merge the intervals into spans, in order."""
    found: list[Span] = []
    for interval in sorted(intervals):
        if found and interval.start <= found[-1].interval.end:
            last = found.pop()
            end = max(last.interval.end, interval.end)
            found.append(Span(Interval(last.interval.start, end), last.count + 1, timezone))
        else:
            found.append(Span(interval, 1, timezone))
    return found


def newest(found: Sequence[Span]) -> str:
    """Return the newest of ordered spans as text, and the number of intervals in the others."""
    others = sum(span.count for span in found[:-SHOWN])
    nouns = "interval" if others == 1 else "intervals"
    earlier = [f"{others:,} earlier {nouns}"] if others else []
    return ", ".join([*earlier, *map(str, found[-SHOWN:])])


def gaps(delivered: Iterable[Interval], schedule: Schedule) -> list[Span]:
    """Return the grid's missing intervals between the first and the last delivered one."""
    known = [span.interval for span in spans(delivered)]
    between = pairwise(known)
    missing = (_within(schedule, before.end, after.start) for before, after in between)
    return spans((i for intervals in missing for i in intervals), schedule.timezone)


def _within(schedule: Schedule, start: datetime, end: datetime) -> list[Interval]:
    """Return today's whole intervals between two moments, which may be from an earlier grid."""
    first = start if schedule.is_on_grid(start) else schedule.next_after(start)
    last = schedule.last_until(end)
    return schedule.intervals(first, last) if first < last else []
