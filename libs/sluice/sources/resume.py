"""Choice of an operator after lost history: rows stay, and reading continues elsewhere."""

import uuid
from dataclasses import replace

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.position import head
from sluice.delta.places.lake_layout import layout
from sluice.delta.writing.commit import commit_position
from sluice.engine.advance import Run
from sluice.engine.batch_report import BatchReport, Clock
from sluice.errors import UsageError
from sluice.sources.foreign.resume import moved as moved_in_table
from sluice.sources.ingest import check_source
from sluice.sources.kafka.resume import moved as moved_in_topic
from sluice.sources.spec import is_topic


def resume(project: Project, table: Table, run: Run, *, latest: bool) -> BatchReport:
    """Continue at the newest end, or the oldest. The gap is noted in the commit; no row changes.

    Raises UsageError if nothing was read yet.
    """
    before = head(layout(project).uri(table.delivered_to))
    check_source(project, table, before)
    if before is None or before.position is None or not before.position.topic:
        raise UsageError(
            f"{table.id} has read nothing yet", hint=f"`sluice ingest {table.id}` reads the first"
        )
    moved = moved_in_topic if is_topic(table) else moved_in_table
    place, gaps = moved(project, table, before, latest=latest)
    position = replace(
        before.position,
        batch=before.next_batch,
        attempt=uuid.uuid4().hex,
        kind="resume",
        run=run.id,
        topic=place,
    )
    clock = Clock()
    with clock.phase("commit"):
        done = commit_position(before, position)
    warnings = tuple(f"{table.id}: {gap}" for gap in gaps)
    report = BatchReport.of(table.delivered_to, "source", done, clock)
    return replace(report, batch=position.batch, strategy="resume", warnings=warnings)
