"""Quarantine of a delivery: this process writes few rows, Spark many; then both are counted.

The quarantine of an interval is replaced whole, so a delivery without bad rows empties it.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import DataFrame

from sluice.declare.stores import takes_spark
from sluice.declare.table import Table
from sluice.delta.notes.intervals import NO_INTERVAL
from sluice.delta.notes.note_tables import count_rows, create_empty, delete_rows, replace_rows
from sluice.delta.places.failpoint import passing
from sluice.delta.reading.spark_reads import replace_where
from sluice.engine.context import Context
from sluice.gate.outcomes import quarantine
from sluice.gate.outcomes.verdict import Verdict
from sluice.language.hidden_columns import INTERVAL
from sluice.language.internal import QUARANTINE


@dataclass(frozen=True)
class JudgedBatch:
    """Batch under check, as results and quarantine name it.

    `is_added`: its quarantined rows join those of earlier batches instead of replacing them.
    `is_replayed`: its rows come from the quarantine, which keeps them until the good ones are
    committed. `is_absent`: it has no files, as its source declares, so its count is not unusual.
    """

    run: str
    number: int
    start: datetime | None
    end: datetime | None
    is_added: bool = False
    is_replayed: bool = False
    is_absent: bool = False

    @property
    def within(self) -> str:
        """SQL condition for its rows in quarantine."""
        start, end = (time or NO_INTERVAL for time in (self.start, self.end))
        last = f"< '{end.isoformat()}'" if self.end else f"<= '{end.isoformat()}'"
        own = f" AND batch = {self.number}" if self.is_added else ""
        return f"{INTERVAL} >= '{start.isoformat()}' AND {INTERVAL} {last}{own}"


def put_in_quarantine(
    context: Context, table: Table, split: DataFrame, verdict: Verdict, batch: JudgedBatch
) -> None:
    """Replace the quarantine of a delivery, and check that no row of the delivery is missing."""
    uri = context.lake.uri(table.id, QUARANTINE)
    if not verdict.rows_quarantined:
        delete_rows(uri, batch.within)
        passing("quarantined", table.id)
        return
    bad = quarantine.rows(
        split,
        interval_start=batch.start or NO_INTERVAL,
        batch=batch.number,
        run=batch.run,
        quarantined_at=datetime.now(UTC),
    )
    limits, size = context.limits, verdict.bytes_quarantined
    is_few = verdict.rows_quarantined <= limits.quarantined_rows
    if (is_few and size <= limits.quarantined_bytes) or not takes_spark(uri):
        replace_rows(uri, bad.toArrow(), batch.within)
    else:
        create_empty(uri, bad.limit(0).toArrow().schema)
        replace_where(uri, bad, batch.within)
    passing("quarantined", table.id)
    _check_balance(verdict, count_rows(uri, batch.within))


def _check_balance(verdict: Verdict, quarantined: int) -> None:
    """Raise AssertionError unless rows read = rows accepted + rows in quarantine."""
    if verdict.rows_read != verdict.rows_accepted + quarantined:
        raise AssertionError(
            f"{verdict.table}: {verdict.rows_read} rows read are not {verdict.rows_accepted}"
            f" accepted and {quarantined} quarantined"
        )
