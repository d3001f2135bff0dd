"""News of a table: its inputs' changes that it does not reflect, found without Spark.

A delivered table also asks its landing folder, through the module `pending` of its kind.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, cast

from sluice.declare.meaning.definition import definition
from sluice.declare.project import Project
from sluice.declare.registry import kind
from sluice.declare.table import Table
from sluice.delta.log.continuity import is_past
from sluice.delta.log.position import Head, head
from sluice.delta.places.lake import LakeLayout, layout
from sluice.language.internal import declared
from sluice.language.interval import Interval

Range = tuple[int | None, int]  # (from, to] versions; from is None if nothing was read yet


@dataclass(frozen=True)
class Unread:
    """A topic's partition: the messages that were not read yet, and the time of the oldest one.

    Of a table that is followed, there is no partition, and `what` is counted are its versions.
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


class Lagging(Protocol):
    """Module `lag` of a kind whose rows may come from a topic or another's table."""

    def unread(self, project: Project, table: Table) -> tuple[Unread, ...]:
        """Return the partitions of its topic, or its table; nothing if it has none. Asks them."""
        ...


class Landed(Protocol):
    """Module `pending` of a kind whose rows are delivered from outside."""

    def nothing_new(self, project: Project, table: Table, interval: Interval | None) -> str | None:
        """Return the reason to do nothing for the table, in words; None if it may have work.

        `interval`: the time whose delivery is requested, if the run has one.
        """
        ...


def nothing_new(project: Project, table: Table, interval: Interval | None) -> str | None:
    """Return the reason to do nothing for the table, in words; None if it may have work."""
    landed = cast(Landed | None, kind(table.kind).part("pending"))
    if landed is not None:
        return landed.nothing_new(project, table, interval)
    return None if pending(project, table) else f"{table.id} reflects all of its inputs"


def unread(project: Project, table: Table) -> tuple[Unread, ...]:
    """Return the partitions of its topic, or the table that it follows; nothing if it has none.

    Raises HistoryLost if that can't be read on, and other errors if nobody answers.
    """
    lagging = cast(Lagging | None, kind(table.kind).part("lag"))
    return lagging.unread(project, table) if lagging else ()


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
    changed has everything to do, so that somebody hears of it.
    """
    return pending_by(project, table, Heads(layout(project)))


def pending_by(project: Project, table: Table, heads: Heads) -> dict[str, Range]:
    """Return the same as `pending`, by heads that may be known."""
    at = heads.of(table.id)
    is_filled = at is not None and at.position is not None and at.is_filled
    if at is None or not is_filled or redefined_part(table, heads):
        return _unread(project, table, heads)
    return dict(_behind(table.id, at, heads))


def redefined_part(table: Table, heads: Heads) -> tuple[Table, Head] | None:
    """Return the first of a view's parts that another definition than its present one built."""
    for part in (table.parts or (table,)) if table.is_view else ():
        at = heads.of(part.id)
        if at and at.position and at.position.definition not in ("", definition(part)):
            return part, at
    return None


def _unread(project: Project, table: Table, heads: Heads) -> dict[str, Range]:
    """Return everything, once all that the table reads is there."""
    if any(not_filled(project, table, heads)):
        return {}
    found = {i: heads.of(i) for i in project.graph.stored(table.inputs)}
    return {i: (None, h.version) for i, h in found.items() if h}


def not_filled(project: Project, table: Table, heads: Heads) -> Iterator[str]:
    """Yield the stored tables that it reads and that no batch has filled yet."""
    for input_id in project.graph.stored(table.inputs):
        at = heads.of(input_id)
        if at is None or not at.is_filled:
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
        elif newest.data_version > pin.version:
            yield input_id, (pin.version, newest.version)
        if declared(input_id) == table_id and newest.position:
            yield from _behind(table_id, newest, heads)
