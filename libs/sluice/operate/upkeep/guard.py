"""Oldest version of a table that may still be read; upkeep deletes nothing that it needs.

A view's position names the versions of its inputs that it reflects. Its next batch reads the feeds
from there, and `verify` reads their rows as of then. A view whose rows keep the dimension
versions of their batches names each of those until it is rebuilt. An environment is compared with
the versions that it began with.
"""

from collections.abc import Iterator
from dataclasses import replace

from sluice.declare.project import Project
from sluice.delta.log.position import REBUILD, Head, Position, head_as_found, positions
from sluice.delta.places.environments import read
from sluice.delta.places.lake_layout import LakeLayout, layout
from sluice.engine.planning.node import Node
from sluice.engine.planning.nodes import nodes_of


def oldest_named(project: Project, table_id: str, at: Head) -> int:
    """Return the oldest version that a consumer names; the table's head if none names one."""
    named = [version for _, version in consumers(project, table_id, at.table)]
    began = read(layout(project).root) if project.environment else None
    first = began.tables.get(table_id) if began else None
    if first and first.table == at.table:
        named.append(first.version)
    return min(named, default=at.version)


def oldest_logged(project: Project, table_id: str, at: Head) -> int:
    """Return the oldest version whose commit is needed: by a consumer, or by the table itself.

    A batch was computed from an earlier version, and the log shows what came between. A table whose
    rows keep dimension versions needs the commits of all batches since it was rebuilt.
    """
    assert at.position is not None, "only tables with a position are maintained"
    own = at.position.after or 0
    if at.position.references:
        rebuilt = (v for v, position in positions(at.uri) if position.kind == REBUILD)
        own = min(own, next(rebuilt, 0))
    return min(own, oldest_named(project, table_id, at))


def consumers(project: Project, table_id: str, delta_id: str) -> Iterator[tuple[str, int]]:
    """Yield the consumers of a table, and the versions that they name."""
    lake = layout(project)
    for table in project.graph.tables.values():
        for node in nodes_of(table, project.graph):
            for position in _positions(lake, node):
                pin = {**position.references, **position.inputs}.get(table_id)
                if pin and pin.table == delta_id:
                    yield node.id, pin.version


def _positions(lake: LakeLayout, node: Node) -> Iterator[Position]:
    """Yield the node's own position, and those of its batches whose references still count.

    If the log was cleaned, nobody knows their versions: it might be any.
    """
    at = head_as_found(lake.uri(node.id))
    if at is None or at.position is None:
        return
    yield at.position
    if not at.position.references:
        return
    known = positions(at.uri)
    for _, position in known:
        yield replace(position, inputs={})
        if position.kind == REBUILD:
            return
    if known[-1][0] > 0:
        every = {i: replace(pin, version=0) for i, pin in at.position.references.items()}
        yield replace(at.position, references=every)
