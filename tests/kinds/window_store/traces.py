"""A window store of traces, which expire after a week."""

from datetime import UTC, datetime, timedelta

from tests.support.in_duckdb import wrong
from tests.support.lake import Lake, Row, counted, folded, repeated

NOON = datetime(2024, 1, 10, 12, tzinfo=UTC)
DECLARED = """
sources:
  traces:
    path: "traces/{interval_start:%Y-%m-%d}/"
    key: [id]
    time: at
    schema: "id INT, service STRING, at TIMESTAMP, duration INT"
views:
  recent: {kind: window_store, from: traces, key: [service], time: at, duplicates: true,
    retention: 7 days}
"""
LENGTHS = """\
  lengths: {kind: cogroup, key: [service],
    streams: {traces: {from: recent, aggregates: {traces: count(*), longest: max(duration)}}}}
"""


def trace(number: int, days: float = 0, service: str = "web") -> Row:
    at = NOON + timedelta(days=days)
    return {"id": number, "service": service, "at": at, "duration": number * 10}


def check(lake: Lake) -> None:
    """The views are their queries, and the feed amounts to the store."""
    assert wrong(lake) == {}
    assert folded(lake.feed("recent")) == counted(lake.stored("recent"))
    assert not repeated(lake.feed("recent"))
