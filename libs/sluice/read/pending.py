"""News of a table: its inputs' changes that it does not reflect, found without Spark.

`status`, `run --changed` and DAGs find here what is pending; `plan`, which also chooses versions
that fit together, compares by the same function. What lies outside the lake (files, messages,
tables that others write) is looked at by the table's kind.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, runtime_checkable

from sluice.declare.project import Project
from sluice.declare.registry import kind
from sluice.declare.table import Table
from sluice.delta.log.continuity import is_past, is_unfilled, redefinitions, unreflected_versions
from sluice.delta.log.position import Head, head
from sluice.delta.places.lake_layout import LakeLayout, layout
from sluice.language.interval import Interval
from sluice.language.names import declared_id

Range = tuple[int | None, int]  # (from, to] versions; from is None if nothing was read yet


@dataclass(frozen=True)
class Unread:
    """A topic's partition: the messages that were not read yet, and the time of the oldest one.

    For a followed Delta table, `partition` is None and `messages` counts versions.
    """

    partition: int | None
    messages: int
    since: datetime | None
    what: str = "message"

    @property
    def shown(self) -> str:
        """Words for what was not read."""
        if self.partition is None:
            return f"{self.messages:,} {self.what}{'' if self.messages == 1 else 's'}"
        return f"partition {self.partition}: {self.messages:,}"


@dataclass(frozen=True)
class Outside:
    """Intervals of one source that a run would deliver, in order.

    An interval is `due` if it ended and was not delivered. It has `changed` if its files differ
    from the delivered ones, and is `gone` if it has no files any more.
    """

    due: tuple[Interval, ...] = ()
    changed: tuple[Interval, ...] = ()
    gone: tuple[Interval, ...] = ()

    @property
    def every(self) -> frozenset[Interval]:
        return frozenset((*self.due, *self.changed, *self.gone))


@runtime_checkable
class Lagging(Protocol):
    """Kind whose rows arrive over time, and may not have been read yet."""

    def unread(self, project: Project, table: Table) -> tuple[Unread, ...]:
        """Return the partitions of its topic, or its table; nothing if it has none. Asks them."""

    def outside(self, project: Project, table: Table, now: datetime) -> Outside:
        """Return the intervals that it does not reflect; none unless it is delivered by them."""


@runtime_checkable
class Landed(Protocol):
    """Kind whose rows are delivered from outside."""

    def nothing_new(self, project: Project, table: Table, interval: Interval | None) -> str | None:
        """Return the reason to do nothing for the table, in words; None if it may have work.

        `interval`: the time whose delivery is requested, if the run has one.
        """


def nothing_new(project: Project, table: Table, interval: Interval | None) -> str | None:
    """Return the reason to do nothing for the table, in words; None if it may have work."""
    landed = kind(table.kind)
    if isinstance(landed, Landed):
        return landed.nothing_new(project, table, interval)
    return None if pending(project, table) else f"{table.id} reflects all of its inputs"


def unread(project: Project, table: Table) -> tuple[Unread, ...]:
    """Return the partitions of its topic, or the table that it follows; nothing if it has none.

    Raises HistoryLost if that can't be read on, and other errors if nobody answers.
    """
    lagging = _lagging(table)
    return lagging.unread(project, table) if lagging else ()


def news_of(project: Project, table: Table, now: datetime) -> frozenset[Interval]:
    """Return the intervals that a source does not reflect; none of any other table."""
    lagging = _lagging(table)
    return lagging.outside(project, table, now).every if lagging else frozenset()


def _lagging(table: Table) -> Lagging | None:
    lagging = kind(table.kind)
    return lagging if isinstance(lagging, Lagging) else None


@dataclass
class Heads:
    """Heads of a lake's tables, each read once."""

    lake: LakeLayout
    _known: dict[str, Head | None] = field(default_factory=dict)

    def of(self, table_id: str) -> Head | None:
        if table_id not in self._known:
            self._known[table_id] = head(self.lake.uri(table_id))
        return self._known[table_id]


def pending(project: Project, table: Table) -> dict[str, Range]:
    """Return the versions of inputs that the table does not reflect yet; empty if up to date.

    A view with an input that is not built yet also has nothing to do. One whose definition has
    changed has everything to do, so that the run reports it.
    """
    return pending_by(project, table, Heads(layout(project)))


def pending_by(project: Project, table: Table, heads: Heads) -> dict[str, Range]:
    """Return the same as `pending`, by heads that may be known."""
    at = heads.of(table.id)
    is_new = at is None or at.position is None or is_unfilled(at)
    if at is None or is_new or first_redefinition(table, heads):
        if any(not_filled(project, table, heads)):
            return {}
        found = {i: heads.of(i) for i in project.graph.stored(table.inputs)}
        return {i: (None, h.version) for i, h in found.items() if h}
    return dict(_behind(table.id, at, heads))


def first_redefinition(table: Table, heads: Heads) -> str:
    """Return what differs in the first of a view's tables that another definition built; or ''."""
    return next(iter(redefinitions(table, heads.of).values()), "") if table.is_view else ""


def not_filled(project: Project, table: Table, heads: Heads) -> Iterator[str]:
    """Yield the stored tables that it reads and that no batch has filled yet."""
    for input_id in project.graph.stored(table.inputs):
        if is_unfilled(heads.of(input_id)):
            yield input_id


def _behind(table_id: str, at: Head, heads: Heads) -> Iterator[tuple[str, Range]]:
    """Yield the inputs that changed since the position, and an internal input's own inputs."""
    assert at.position is not None
    for input_id, pin in at.position.inputs.items():
        newest = heads.of(input_id)
        if newest is None:
            yield input_id, (None, 0)
            continue
        if not is_past(newest, pin):
            yield input_id, (None, newest.version)
        elif versions := unreflected_versions(newest, pin):
            yield input_id, versions
        if declared_id(input_id) == table_id and newest.position:
            yield from _behind(table_id, newest, heads)
