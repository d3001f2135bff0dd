"""The next load of a dimension in words, as `sluice plan` shows it."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.position import REBUILD, head
from sluice.dimensions.load import engine_of_load
from sluice.dimensions.source import due, find
from sluice.engine.context import Context
from sluice.engine.planning.next_batch import NextBatch, with_marking
from sluice.errors import UsageError
from sluice.spark.rehearsing import why


def deliveries_ahead(
    project: Project,
    table: Table,
    now: datetime,  # noqa: ARG001
    redefined: Mapping[str, str],
) -> Iterator[NextBatch]:
    """Yield the next load."""
    context = Context.of(project)
    batch = _load(project, context, table, redefined.get(table.id, ""))
    yield with_marking(context, batch, table.key)


def _load(project: Project, context: Context, table: Table, what: str) -> NextBatch:
    try:
        found = find(project, table)
    except UsageError as error:
        return NextBatch(table.id, "load", f"it would fail: {error.message}")
    before = head(found.uri)
    if not what and before and found.is_loaded(before):
        return NextBatch(table.id, "nothing", "the files are those that were loaded")
    wanted = due(found, before, again=bool(what))
    reason = what or "; ".join(wanted.warnings) or "files are new or changed"
    way = REBUILD if what else "load"
    engine = engine_of_load(context, found, wanted, None if what else before)
    said = why(context.settings, engine, wanted.bytes)
    reason, size = "; ".join([reason, *said]), wanted.bytes
    return NextBatch(table.id, way, reason, engine, bytes=size, files=len(wanted.files))
