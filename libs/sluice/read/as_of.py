"""Versions of a lake's tables at a moment that reflect the same state of their shared sources.

At any moment, some tables are ahead of others: a view lags behind its source, or behind another
view. So the newest versions are taken back, table by table, until all reflect one state. A table
reflects a state if the rows that it was made from are those that its inputs have at that state.
Cost: every commit of each table from now back to the versions that are chosen.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime

from deltalake.exceptions import DeltaError

from sluice.declare.table import Graph
from sluice.delta.log.actions import Log
from sluice.delta.log.files import active_files
from sluice.delta.log.opened import exists
from sluice.delta.log.position import Frontier, Pin, Position, oldest
from sluice.delta.places.lake_layout import LakeLayout
from sluice.errors import HistoryLost, UsageError
from sluice.language.interval import parse_time, show
from sluice.read.stored.commits import Past
from sluice.read.stored.snapshot import open_delta


@dataclass
class AsOf:
    """State of a lake at a moment: the newest one common to all tables that existed then.

    A table without any version at a state that others share is left out; reading it is an error.
    """

    lake: LakeLayout
    moment: datetime
    state: Frontier = field(default_factory=dict)
    _pasts: dict[str, Past | None] = field(default_factory=dict)
    _reflected: dict[tuple[str, int], Frontier | None] = field(default_factory=dict)

    @classmethod
    def of(cls, lake: LakeLayout, graph: Graph, moment: str | datetime) -> "AsOf":
        """Find the state. Raises UsageError for an invalid or future time."""
        then = parse_time(moment)
        if then > datetime.now(UTC):
            raise UsageError(
                f"{show(then)} is in the future: the tables of that time are unknown",
                hint="a time without a zone is in UTC",
            )
        found = cls(lake, then)
        found._settle([t.id for t in graph.tables.values() if t.is_stored])
        return found

    def version(self, table_id: str) -> int | None:
        """Return the table's version at the state; None if there is no such table now.

        Raises HistoryLost if it is gone, or none is at that state, and NotBuilt if the table was
        made later. A table that records no position has its newest version of that moment.
        """
        past = self._past(table_id)
        if past is None:
            return None
        chosen = self._newest(table_id) if past.has_positions else (past.version, {})
        if chosen is None or chosen[0] is None or not self._agrees(chosen[1]):
            raise past.absence() or self._no_version(past.name)
        version = past.skip_upkeep(chosen[0]) if past.has_positions else chosen[0]
        self._check_files(past, version)
        return version

    def _settle(self, tables: list[str]) -> None:
        """Lower the state until every table has a version at it, or is left out."""
        while True:
            found = {t: chosen[1] for t in tables if (chosen := self._newest(t))}
            is_short = self.state and len(found) < len(tables)
            state = {} if is_short else oldest(found.values())  # start again without some tables
            if state == self.state:
                return
            tables, self.state, self._reflected = list(found), state, {}

    def _agrees(self, reflected: Frontier) -> bool:
        return all(self.state.get(s, version) == version for s, version in reflected.items())

    def _newest(self, table_id: str) -> tuple[int, Frontier] | None:
        """Return a table's newest version that is not ahead of the state, and what it reflects."""
        past = self._past(table_id)
        for version, position in past.walk_positions() if past else ():
            reflected = self._reflects(table_id, version, position)
            if reflected is not None:
                return version, reflected
        return None

    def _reflects(self, table_id: str, version: int, position: Position) -> Frontier | None:
        """Return the newest state that the rows of a version reflect; None if it is ahead."""
        if (table_id, version) not in self._reflected:
            self._reflected[table_id, version] = self._found(table_id, version, position)
        return self._reflected[table_id, version]

    def _found(self, table_id: str, version: int, position: Position) -> Frontier | None:
        past = self._past(table_id)
        if past and not position.inputs:
            made = past.data_version(version)
            return {table_id: made} if made <= self.state.get(table_id, made) else None
        parts = [self._through(name, pin) for name, pin in position.inputs.items()]
        known = [part for part in parts if part is not None]
        return oldest(known) if len(known) == len(parts) else None

    def _through(self, table_id: str, pin: Pin) -> Frontier | None:
        """Return the newest state at which an input has the rows that were read of it."""
        past = self._past(table_id)
        if past is None or not past.holds(pin):
            return None
        every = (self._reflects(table_id, *made) for made in past.alike(pin.version))
        return next((found for found in every if found is not None), None)

    def _past(self, table_id: str) -> Past | None:
        """Return a table's past; None if there is no such table, or its log can't be read."""
        if table_id not in self._pasts:
            uri, name = self.lake.uri(table_id), table_id.partition(".")[2]
            try:
                self._pasts[table_id] = Past(name, uri, self.moment) if exists(uri) else None
            except DeltaError:  # reads of that table report it
                self._pasts[table_id] = None
        return self._pasts[table_id]

    def _check_files(self, past: Past, version: int) -> None:
        table = open_delta(past.name, past.uri, version)
        if not Log(past.uri).has_files(active_files(table)["path"].to_pylist()):
            raise HistoryLost(
                f"{past.name!r} can't be shown as of {show(self.moment)}: files of its version "
                f"{version} were vacuumed",
                hint="a later time can be shown",
            )

    def _no_version(self, name: str) -> HistoryLost:
        return HistoryLost(
            f"{name!r} can't be shown as of {show(self.moment)}: no version of it reflects the "
            "same state of its sources as the other tables then did",
            hint=f"`--version` reads {name!r} alone; `sluice status` shows which tables lag",
        )
