"""Choice of an operator after lost history: rows stay, and reading continues elsewhere."""

import uuid
from dataclasses import replace

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.position import head
from sluice.delta.writing.commit import commit_position
from sluice.engine.advance import Run
from sluice.engine.report import BatchReport, Clock
from sluice.errors import UsageError
from sluice.sources.ingest import check_source
from sluice.sources.kafka.broker import Brokers
from sluice.sources.kafka.messages import Read
from sluice.sources.kafka.place import Place
from sluice.sources.spec import is_topic

GAP = "partition {}: the messages from offset {} to {} are passed over"


def resume(project: Project, table: Table, run: Run, *, latest: bool) -> BatchReport:
    """Continue at the topic's end or beginning. The gap is noted in the commit; no row changes.

    Raises UsageError if it is no topic, or if nothing was read yet.
    """
    if not is_topic(table):
        raise UsageError(f"{table.id} is no Kafka topic: --from is about offsets")
    source = Read.of(project, table)
    before = head(source.uri)
    check_source(project, table, before)
    place = Place.of(before)
    if before is None or before.position is None or place is None:
        raise UsageError(
            f"{table.id} has read nothing of {source.topic.topic} yet",
            hint="`kafka.start` says where its first batch begins",
        )
    found = Brokers.of(table.id, source.topic).describe()
    moved = place.moved_to(found, latest=latest)
    position = replace(
        before.position,
        batch=before.next_batch,
        attempt=uuid.uuid4().hex,
        kind="resume",
        run=run.id,
        topic=moved.plain(),
    )
    clock = Clock()
    with clock.phase("commit"):
        done = commit_position(before, position)
    warnings = tuple(f"{table.id}: {GAP.format(*g)}" for g in moved.gaps[len(place.gaps) :])
    report = BatchReport.of(source.stored_as, "source", done, clock)
    return replace(report, batch=position.batch, strategy="resume", warnings=warnings)
