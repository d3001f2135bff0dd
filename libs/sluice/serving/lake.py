"""The lake of a project, read without Spark.

Every handle is pinned to the table version that it was opened at; open it again for a newer one.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from sluice.errors import UsageError
from sluice.serving.dimension_view import JoinedTable
from sluice.serving.keyed import KeyedTable
from sluice.serving.order import Span
from sluice.serving.ranking import Partition, Ranking, Ranks
from sluice.serving.snapshot import Snapshot, open_delta, refuse_unreadable
from sluice.serving.window import WindowStore, visible_span
from sluice.specs import dimension, topk, window_store
from sluice.specs.project import Project, load
from sluice.specs.table import Table
from sluice.storage.lake import layout
from sluice.storage.lineage import position_at
from sluice.storage.position import positions

BUILD = {"source": "sluice ingest", "dimension": "sluice load"}


class Lake:
    """The tables of one project."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._layout = layout(project)

    def table(
        self, name: str, *, version: int | None = None, backward_iteration: bool = False
    ) -> KeyedTable | JoinedTable:
        """Any table as a key-value store; also a source's `<source>__quarantine` and the like.

        With `backward_iteration`, a range from a later to an earlier key is the same range with the
        last first; otherwise it is empty.
        """
        base, _, suffix = name.partition("__")
        table = self.project.graph.table(base)
        if suffix:
            uri = self._layout.uri(table.id, suffix)
            return KeyedTable(Snapshot.open(name, uri, version, build=build_command(table)), ())
        if isinstance(table.spec, dimension.DimensionView):
            joined = self._joined(table, table.spec, version)
            return replace(joined, backward_iteration=backward_iteration)
        return self._stored(table, version, backward_iteration=backward_iteration)

    def ranking(self, name: str, *, version: int | None = None) -> Ranking:
        """A top-k as rankings."""
        table = self.project.graph.table(name)
        if not isinstance(table.spec, topk.TopK):
            raise _wrong_kind(table, "topk", "top")
        return Ranking(self._stored(table, version), table.spec)

    def top(
        self,
        name: str,
        partition: Mapping[str, Any] | None = None,
        *,
        version: int | None = None,
    ) -> Ranks | dict[Partition, Ranks]:
        """The map rank -> row of one partition, or partition -> rank -> row."""
        return self.ranking(name, version=version).top(partition)

    def window(self, name: str, *, version: int | None = None) -> WindowStore:
        """A window store, read by key and time."""
        table = self.project.graph.table(name)
        if not isinstance(table.spec, window_store.WindowStore):
            raise _wrong_kind(table, "window_store", "fetch")
        stored = self._stored(table, version)
        newest = partial(self.window, name)
        return WindowStore(stored, table.spec.key, table.spec.backward_iteration, newest)

    def uri(self, table: Table) -> str:
        """Where the table lies."""
        return self._layout.uri(table.id)

    def knows_run(self, run: str) -> bool:
        """Whether any table's log has a commit of that run."""
        stored = (self.uri(t) for t in self.project.graph.tables.values() if t.is_stored)
        built = (uri for uri in stored if DeltaTable.is_deltatable(uri))
        return any(found.run == run for uri in built for _, found in positions(uri))

    def _stored(
        self, table: Table, version: int | None, *, backward_iteration: bool = False
    ) -> KeyedTable:
        uri = self.uri(table)
        snapshot = Snapshot.open(table.name, uri, version, build=build_command(table))
        has_history = isinstance(table.spec, dimension.Dimension) and table.spec.history
        current = "is_current" if has_history else None
        newest = partial(self._stored, table, None, backward_iteration=backward_iteration)
        alive = self._alive(table, snapshot)
        return KeyedTable(snapshot, table.key, alive, current, backward_iteration, newest)

    def _alive(self, table: Table, snapshot: Snapshot) -> tuple[Span, ...]:
        """What a retention leaves visible at that version."""
        if not isinstance(table.spec, window_store.WindowStore) or table.spec.retention is None:
            return ()
        position = position_at(snapshot.uri, snapshot.version)
        return visible_span(position.horizon if position else None, table.spec.retention)

    def _joined(
        self, table: Table, spec: dimension.DimensionView, version: int | None
    ) -> JoinedTable:
        if version is not None:
            raise UsageError(
                f"{table.name!r} is a view over dimensions and has no versions of its own",
                hint=f"read its dimensions at a version: {', '.join(table.inputs)}",
            )
        return self._resolved(table, spec, {})

    def _resolved(
        self, table: Table, spec: dimension.DimensionView, opened: dict[str, DeltaTable]
    ) -> JoinedTable:
        """A view over dimensions; each is opened once, whoever joins it."""
        found: dict[str, DeltaTable | JoinedTable] = {}
        inputs = self.project.graph.inputs(table.id)
        for t in inputs:
            if isinstance(t.spec, dimension.DimensionView):
                found[t.name] = self._resolved(t, t.spec, opened)
            else:
                found[t.name] = opened[t.id] = opened.get(t.id) or self._dimension(t)
        history = frozenset(t.name for t in inputs if getattr(t.spec, "history", False))
        return JoinedTable(spec, found, history, table.key)

    def _dimension(self, table: Table) -> DeltaTable:
        opened = open_delta(table.name, self.uri(table), build=build_command(table))
        refuse_unreadable(table.name, opened)
        return opened


def open_lake(config: Path | str = "config") -> Lake:
    """The lake that a folder of configuration declares."""
    return Lake(load(config))


def build_command(table: Table) -> str:
    """The command that makes the table."""
    if table.kind in BUILD:
        bounds = " --start T --end T" if table.kind == "source" else ""
        return f"{BUILD[table.kind]} {table.name}{bounds}` or `sluice run {table.pipeline}"
    return f"sluice run {table.pipeline}"


def _wrong_kind(table: Table, kind: str, command: str) -> UsageError:
    return UsageError(
        f"{command} reads a {kind}; {table.name!r} is a {table.kind}",
        hint=f"use `sluice read {table.name}`, `get` or `range`",
    )
