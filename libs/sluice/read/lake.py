"""The lake of a project, read without Spark.

Every handle is pinned to the table version at which it was opened. Open it again for a newer one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, TypeVar, runtime_checkable

from sluice.declare.project import Project, load_sound
from sluice.declare.registry import Kind, kind, kinds
from sluice.declare.table import Table
from sluice.declare.table_spec import TableSpec
from sluice.delta.log.position import positions
from sluice.delta.places.delta_rs import is_table
from sluice.delta.places.lake_layout import LakeLayout, layout
from sluice.errors import UsageError
from sluice.language.names import MARK, internal
from sluice.read.as_of import AsOf
from sluice.read.ordered.keyed import KeyedTable, KeyValues
from sluice.read.stored.snapshot import Snapshot

S = TypeVar("S", bound=TableSpec)
NO_VERBS: Mapping[str, Callable[..., Any]] = MappingProxyType({})


@runtime_checkable
class Reader(Protocol):
    """Kind that opens its tables itself."""

    def open_table(
        self, lake: "Lake", table: Table, version: int | None, *, backward_iteration: bool
    ) -> KeyValues:
        """Return the table as a key-value store, at that version or its head."""
        ...

    def verbs(self) -> Mapping[str, Callable[..., Any]]:
        """Return further ways to read. Each takes the lake first, and becomes a method of it."""
        ...


@cache
def reader_of(kind: Kind) -> Reader | None:
    """Return a kind as one that opens its tables itself; None if it does not."""
    return kind if isinstance(kind, Reader) else None  # which takes long


def verbs_of(kind: Kind) -> Mapping[str, Callable[..., Any]]:
    """Return the ways to read that a kind adds."""
    reader = reader_of(kind)
    return reader.verbs() if reader else NO_VERBS


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
        if (reader := reader_of(kind(table.kind))) is None:
            return self.stored(table, version, backward_iteration=backward_iteration)
        return reader.open_table(self, table, version, backward_iteration=backward_iteration)


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
