"""`verify` recomputes small tables in this process, as batches do, and leaves the rest to Spark."""

import uuid
from dataclasses import replace

import pyarrow as pa
import pytest
from tests.support.lake import Lake, NewLake, Row

from sluice.changes import CHANGE
from sluice.delta.places.delta_rs import open_table
from sluice.delta.writing.commit import commit_arrow
from sluice.errors import MissingDependency

DECLARED = """
sources:
  sales: {path: "s/{interval_start:%Y}/", key: [id], schema: "id INT, g STRING, v INT"}
views:
  totals: {kind: cogroup, key: [g], streams: {s: {from: sales, aggregates: {v: sum(v)}}}}
  best: {kind: topk, from: totals, order_by: [v desc], limit: 2}
"""
SOUNDS = '  sounds: {kind: select, from: sales, select: {id: id, sound: "soundex(g)"}}\n'


def build(lake: Lake) -> Lake:
    lake.put("sales", *({"id": n, "g": g, "v": n} for n, g in enumerate("abcd", 1)))
    lake.advance()
    return lake


def tamper(lake: Lake, name: str, *changes: Row) -> None:
    """Commit changes to a view that its inputs don't give it, as a batch of its own would."""
    at, key = lake.head(name), lake.table(name).key
    assert at.position is not None
    schema = pa.schema(open_table(at.uri).schema().to_arrow()).append(pa.field(CHANGE, pa.string()))
    known = {tuple(row[c] for c in key): row for row in lake.stored(name)}
    rows = [{**known.get(tuple(c[k] for k in key), {}), **c} for c in changes]
    position = replace(at.position, batch=at.next_batch, attempt=uuid.uuid4().hex)
    commit_arrow(at, pa.Table.from_pylist(rows, schema), key, position, lake.limits)


def shows_what_differs(lake: Lake, engine: str) -> None:
    assert {(v.is_sound, v.engine) for v in lake.verdicts()} == {(True, engine)}
    tamper(
        lake,
        "best",
        {"g": "c", "v": 30, CHANGE: "update"},
        {"g": "d", CHANGE: "delete"},
        {"g": "x", "v": 1, CHANGE: "insert"},
    )
    (verdict,) = (v for v in lake.verdicts("best") if v.table == "shop.best")
    assert (verdict.missing, verdict.extra, verdict.different) == (1, 1, 1)
    assert {(row["g"], row["v"], row[CHANGE]) for row in verdict.differences} == {
        ("c", 3, "update"),
        ("d", 4, "insert"),
        ("x", 1, "delete"),
    }


def test_small_tables_are_verified_in_this_process(new_lake: NewLake) -> None:
    lake = build(new_lake(DECLARED))
    shows_what_differs(lake, "process")
    assert not lake.spark.is_started


@pytest.mark.usefixtures("real_spark")
def test_large_tables_are_verified_by_spark(new_lake: NewLake) -> None:
    lake = build(new_lake(DECLARED)).limit(computed_here_bytes=-1)
    shows_what_differs(lake, "spark: 0.0 MB are read at once")


@pytest.mark.usefixtures("real_spark")
def test_what_only_spark_computes_is_left_to_it(new_lake: NewLake) -> None:
    lake = build(new_lake(DECLARED + SOUNDS))
    (verdict,) = lake.verdicts("sounds")
    assert (verdict.is_sound, verdict.engine) == (True, "spark: the function soundex")


def test_errors_name_what_needs_spark(new_lake: NewLake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = build(new_lake(DECLARED))
    monkeypatch.setattr("sluice.extras.is_installed", lambda extra: extra != "spark")
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    assert all(verdict.is_sound for verdict in lake.verdicts())
    with pytest.raises(MissingDependency) as refused:
        lake.limit(computed_here_bytes=1).verdicts("best")
    assert refused.value.message == (
        "a recompute of shop.best__state (0.0 MB are read at once) needs Spark, "
        "which is not installed"
    )
