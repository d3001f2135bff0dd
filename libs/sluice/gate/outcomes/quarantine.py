"""The quarantine table: every rejected row, whole, with its reason.

Each such row gives one row here, so read = accepted + quarantined. A row that parsed is kept as
JSON, any other as its text. Rows are replaced per interval like the source's: a later good delivery
of an interval leaves none of its rows here.
"""

import datetime as dt

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from sluice.declare.delivered_row import FILE
from sluice.gate.counting.tally import ACCEPTED, REASONS, whole
from sluice.language.hidden_columns import INTERVAL

SCHEMA = (
    f"{INTERVAL} TIMESTAMP, reason STRING, expectation STRING, raw STRING, file STRING,"
    " batch BIGINT, run STRING, quarantined_at TIMESTAMP"
)


def rows(
    split: DataFrame,
    *,
    interval_start: dt.datetime,
    batch: int,
    run: str,
    quarantined_at: dt.datetime,
) -> DataFrame:
    """Return a split batch's rows for the quarantine (see `gate`), in SCHEMA; times are aware."""
    columns = [
        _timestamp(interval_start).alias(INTERVAL),
        _joined("reason").alias("reason"),
        _joined("expectation").alias("expectation"),
        F.expr(whole(split)).alias("raw"),
        F.expr(FILE if FILE in split.columns else "CAST(NULL AS STRING)").alias("file"),
        F.lit(batch).cast("bigint").alias("batch"),
        F.lit(run).alias("run"),
        _timestamp(quarantined_at).alias("quarantined_at"),
    ]
    return split.filter(f"NOT ({ACCEPTED})").select(*columns)


def _timestamp(time: dt.datetime) -> Column:
    """Return an instant, independent of the session's time zone."""
    micros = round(time.timestamp() * 1_000_000)
    return F.expr(f"timestamp_micros({micros}L)")


def _joined(field: str) -> Column:
    """Return all of a row's reasons; null without the field (a reader's reason has no rule)."""
    return F.expr(f"nullif(array_join({REASONS}.{field}, '; '), '')")
