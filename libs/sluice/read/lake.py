"""The lake of a project, read without Spark, as it is or as of a moment.

Every handle is pinned to the table version at which it was opened. Open it again for a newer one.

At any moment, some tables are ahead of others: a view lags behind its source, or behind another
view. So a read as of a moment takes the newest versions back, table by table, until all reflect one
state. A table reflects a state if the rows that it was made from are those that its inputs have at
that state. Cost: every commit of each table from now back to the versions that are chosen.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, TypeVar, runtime_checkable

from deltalake.exceptions import DeltaError

from sluice.declare.project import Project, load_sound
from sluice.declare.registry import Kind, kind, kinds
from sluice.declare.table import Graph, Table
from sluice.declare.table_spec import TableSpec
from sluice.delta.log import Log
from sluice.delta.log.files import active_files
from sluice.delta.log.opened import exists
from sluice.delta.log.position import Frontier, Pin, Position, oldest, positions
from sluice.delta.places.delta_rs import is_table
from sluice.delta.places.lake_layout import LakeLayout, layout
from sluice.errors import HistoryLost, UsageError
from sluice.language.interval import parse_time, show
from sluice.language.names import MARK, internal
from sluice.read.commits import Past
from sluice.read.keyed import KeyedTable, KeyValues
from sluice.read.snapshot import Snapshot, open_delta

S = TypeVar("S", bound=TableSpec)
NO_VERBS: Mapping[str, Callable[..., Any]] = MappingProxyType({})


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


@dataclass(frozen=True)
class Pinned:
    """Versions of some tables, which a lake shows; of all others, it shows the newest."""

    versions: Mapping[str, int]

    def version(self, table_id: str) -> int | None:
        """Return the version of that table; None means the newest."""
        return self.versions.get(table_id)


class Lake:
    """Tables of one project.

    Kinds of views add ways to read theirs, as methods. `verbs`: further ones, which take the lake
    first.
    """

    def __init__(
        self,
        project: Project,
        as_of: AsOf | Pinned | None = None,
        verbs: Mapping[str, Callable[..., Any]] = NO_VERBS,
        place: LakeLayout | None = None,
    ) -> None:
        self.project = project
        self._verbs = verbs
        self._layout, self._as_of = place or layout(project), as_of

    def at(self, moment: str | datetime) -> "Lake":
        """Return the lake as of a moment: all tables at versions that reflect one state.

        It is the newest state that all tables then had in common. Handles of this lake never get
        newer. Raises UsageError for an invalid or future time.
        """
        return Lake(self.project, AsOf.of(self._layout, self.project.graph, moment), self._verbs)

    def pinned(self, versions: Mapping[str, int]) -> "Lake":
        """Return the lake with these versions of stored tables, by their ids."""
        return Lake(self.project, Pinned(versions), self._verbs, self._layout)

    def table(
        self, name: str, *, version: int | None = None, backward_iteration: bool = False
    ) -> Any:
        """Return any table as a key-value store, including `<source>__quarantine` and the like.

        With `backward_iteration`, a range from a later to an earlier key is the same range,
        reversed. Otherwise it is empty.
        """
        base, _, suffix = name.partition(MARK)
        table = self.project.graph.table(base)
        if suffix:
            uri = self._layout.uri(table.id, suffix)
            version = self.version_of(internal(table.id, suffix)) if version is None else version
            return KeyedTable(Snapshot.open(name, uri, version, build=build_command(table)), ())
        return self._open(table, version, backward_iteration=backward_iteration)

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        """Return a way to read that a kind of table adds, or the caller who opened the lake."""
        if not verb.startswith("_") and verb in self._verbs:
            return partial(self._verbs[verb], self)
        for each in () if verb.startswith("_") else kinds():
            if verb in (verbs := verbs_of(each)):
                return partial(verbs[verb], self)
        raise AttributeError(f"a lake has no {verb!r}")

    def of_kind(self, name: str, model: type[S], command: str) -> tuple[Table, S]:
        """Return that table and its declaration. Raises UsageError if it is of another kind."""
        table = self.project.graph.table(name)
        if not isinstance(table.spec, model):
            raise UsageError(
                f"{command} reads tables of kind {model.KIND}; {table.name!r} is of kind "
                f"{table.declared_kind}",
                hint=f"`sluice read {table.name}` shows its rows",
            )
        return table, table.spec

    def uri(self, table: Table) -> str:
        """Return the table's location."""
        return self._layout.uri(table.id)

    def version_of(self, table_id: str) -> int | None:
        """Return the version that this lake shows of a stored table; None means the newest.

        Raises HistoryLost or NotBuilt if the table can't be shown as of the lake's moment.
        """
        return self._as_of.version(table_id) if self._as_of else None

    def knows_run(self, run: str) -> bool:
        """True if any table's log has a commit of that run."""
        stored = (self.uri(t) for t in self.project.graph.tables.values() if t.is_stored)
        built = (uri for uri in stored if is_table(uri))
        return any(found.run == run for uri in built for _, found in positions(uri))

    def stored(
        self,
        table: Table,
        version: int | None = None,
        *,
        backward_iteration: bool = False,
        current: str | None = None,
        first: tuple[str, ...] = (),
    ) -> KeyedTable:
        """Return a stored table; `first` names the columns shown before the key."""
        version = self.version_of(table.id) if version is None else version
        snapshot = Snapshot.open(table.name, self.uri(table), version, build=build_command(table))
        newest = partial(
            self.stored, table, backward_iteration=backward_iteration, current=current, first=first
        )
        return KeyedTable(snapshot, table.named_key, current, backward_iteration, newest, first)

    def _open(self, table: Table, version: int | None, *, backward_iteration: bool) -> KeyValues:
        if (opener := _opener_of(kind(table.kind))) is None:
            return self.stored(table, version, backward_iteration=backward_iteration)
        return opener.open_table(self, table, version, backward_iteration=backward_iteration)


@runtime_checkable
class Opener(Protocol):
    """Kind that opens its tables itself."""

    def open_table(
        self, lake: "Lake", table: Table, version: int | None, *, backward_iteration: bool
    ) -> KeyValues:
        """Return the table as a key-value store, at that version or its head."""


@runtime_checkable
class Reading(Protocol):
    """Kind whose tables are read in further ways."""

    def verbs(self) -> Mapping[str, Callable[..., Any]]:
        """Return further ways to read. Each takes the lake first, and becomes a method of it."""


@cache  # the look at a kind takes long
def _opener_of(kind: Kind) -> Opener | None:
    return kind if isinstance(kind, Opener) else None


@cache
def verbs_of(kind: Kind) -> Mapping[str, Callable[..., Any]]:
    """Return the ways to read that a kind adds."""
    return kind.verbs() if isinstance(kind, Reading) else NO_VERBS


def open_lake(
    config: Path | str = "config",
    as_of: str | None = None,
    verbs: Mapping[str, Callable[..., Any]] = NO_VERBS,
) -> Lake:
    """Return the lake that a folder of configuration declares, now or as of a moment.

    Pipelines with mistakes are left out of it; a table of theirs raises these mistakes.
    """
    lake = Lake(load_sound(config)[0], verbs=verbs)
    return lake if as_of is None else lake.at(as_of)


def build_command(table: Table) -> str:
    """Return the command that makes the table."""
    if not table.is_delivered:
        return f"sluice run {table.pipeline}"
    bounds = " --start T --end T" if table.spec.is_by_interval else ""
    return f"sluice {table.spec.STEP} {table.name}{bounds}` or `sluice run {table.pipeline}"
