"""Records of expectations that pages show."""

import datetime as dt
import json
from typing import Any

from sluice.declare.registry import kind
from sluice.declare.table import Table
from sluice.gate.counts import BatchCounts, KeptCounts
from sluice.read.status import LastBatch, TableStatus
from sluice.report.summary import TableRecord

NOW = dt.datetime(2017, 3, 9, 12, tzinfo=dt.UTC)
EVIL = '"><script>alert("x")</script>&'


def day(nth: int) -> dt.datetime:
    return dt.datetime(2017, 3, nth, tzinfo=dt.UTC)


def result(nth: int, success: bool = True, **changed: Any) -> dict[str, Any]:
    details = {
        "unexpected_rows": [] if success else [{"id": 7, "note": EVIL, "quantity": -1}],
        "unexpected_percent": 0.0 if success else 2.0,  # half of the values are null
    }
    config = {"kwargs": {"column": "quantity"}}
    row = {
        "interval_start": day(nth),
        "checked_at": NOW,
        "expectation": "column values to be between (quantity)",
        "says": "quantity is at least 0",
        "on_failure": "warn",
        "success": success,
        "element_count": 100,
        "unexpected_count": 0 if success else 1,
        "observed": "fine" if success else "1 of 100",
        "result": json.dumps({"expectation_config": config, "result": details}),
    }
    return row | changed


def interval(nth: int, read: int, quarantined: int) -> dict[str, Any]:
    return {
        "interval_start": day(nth),
        "rows_read": read,
        "rows_accepted": read - quarantined,
        "rows_quarantined": quarantined,
    }


def aside(reason: str, raw: str, file: str | None) -> dict[str, Any]:
    return {"_sluice_interval": day(2), "reason": reason, "raw": raw, "file": file}


def record(pipeline: str, name: str, of: str = "source", **more: Any) -> TableRecord:
    """A table's record; `stands`: what is known of its status."""
    table = Table(name, pipeline, of, {}, (), kind(of).model.model_construct())
    return TableRecord(table, TableStatus(table.id, of, **more.pop("stands", {})), **more)


RECORD = record(
    "retail",
    "sales",
    stands={
        "version": 3,
        "rows": 1234,
        "last": LastBatch(2, "batch", "r", NOW - dt.timedelta(hours=2)),
    },
    columns=(("id", "INT"), (EVIL, "STRING")),
    results=(result(1), result(2, success=False)),
    batches=(
        KeptCounts(
            BatchCounts(3), 2, "r", NOW, day(2), ("retail.sales: 3 rows arrived, usually 9",)
        ),
    ),
    intervals=(interval(1, 100, 0), interval(2, 100, 1)),
    quarantine=(
        aside("does not parse", EVIL, "file:///landing/part.json"),
        aside("price is at least 0", '{"id": 7, "price": null}', None),
    ),
)
