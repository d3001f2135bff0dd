"""The contract of views holds while rows are looked up in indexes of large tables."""

import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.kinds.cogroup.cases import CASES as COGROUPS
from tests.kinds.join.cases import CASES as JOINS
from tests.kinds.lookup.cases import CASES as LOOKUPS
from tests.kinds.over.cases import CASES as OVERS
from tests.kinds.topk.cases import CASES as RANKINGS
from tests.kinds.ways import MARKED, NARROWED
from tests.sources.cases import CASES as SOURCES
from tests.support.contract import Case, hold
from tests.support.indexing import index_all
from tests.support.lake import Lake

from sluice.delta.reading.live import LiveRows
from sluice.files.reading import OP, POSITION
from sluice.language.names import ID, INTERVAL
from sluice.operate.maintain import maintain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES = [RANKINGS[0], COGROUPS[4], LOOKUPS[4], SOURCES[1], JOINS[3], OVERS[5]]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rows_that_are_looked_up_give_the_same_views(
    case: Case, spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sluice.kinds.over.operator.LEAST_ROWS", 0)
    looked_up = index_all(monkeypatch, tmp_path / "cache")
    hold(replace(case, ways=({**MARKED, **NARROWED},)), spark, steps=4)
    assert looked_up()


KEYED = 'key: [id], schema: "id BIGINT, k BIGINT, v BIGINT"}'
DECLARED = f"""
sources:
  a: {{path: "a/{{interval_start:%Y}}/", {KEYED}
  b: {{path: "b/{{interval_start:%Y}}/", {KEYED}
"""
ROWS, CHANGED = 3_000, 10
FOLLOWING = {
    "a source with a key": "",
    "cogroup": "{kind: cogroup, key: [k], streams: {s: {from: a, aggregates: {most: max(v)}}}}",
    "cogroup by an expression": "{kind: cogroup, key: [g], streams: "
    "{s: {from: a, key: [k % 900], aggregates: {total: sum(v)}}}}",
    "join": "{kind: join, left: a, right: b, on: a.k = b.k, select: {o: b.id, v: a.v}}",
    "over": "{kind: over, from: a, partition_by: [k], order_by: [v], select: {s: sum(v) OVER p}}",
    "topk": "{kind: topk, from: a, partition_by: [k], order_by: [v desc], limit: 1}",
}


@pytest.mark.parametrize("of", FOLLOWING)
def test_a_batch_of_scattered_changes_scans_no_large_table(
    of: str, new_lake: Callable[..., Lake], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once files have an index, only the changes are read, and no table from end to end."""
    looked_up = index_all(monkeypatch, tmp_path / "cache")
    monkeypatch.setattr("sluice.kinds.over.operator.LEAST_ROWS", 0)
    monkeypatch.setattr("sluice.delta.reading.local.KEPT_BYTES", -1)
    view = FOLLOWING[of]
    lake = new_lake(DECLARED + (f"views:\n  out: {view}\n" if view else ""))
    lake.limit(read_here_bytes=-1, **MARKED)
    source, scanned, draw = "a" if view else "a__deliveries", set[str](), random.Random(7)

    def put(ids: Iterable[int], nth: int) -> None:
        rows = [{"id": i, "k": i % (ROWS // 3), "v": draw.randrange(10**6)} for i in ids]
        if not view:
            rows = [{**row, **delivered(nth, row["id"])} for row in rows]
        lake.put(source, *rows)

    def noting(read: Callable[..., Any]) -> Callable[..., Any]:
        def noted(rows: LiveRows, *given: Any, **named: Any) -> Any:
            scanned.update(rows.dataset.files)
            return read(rows, *given, **named)

        return noted

    put(range(ROWS), 0)
    lake.put("b", *({"id": i, "k": i % 500, "v": 1} for i in range(ROWS)))
    for nth in range(1, 6):
        put(draw.sample(range(ROWS), CHANGED), nth)
        if nth == 5:
            for read in ("to_batches", "to_table"):
                monkeypatch.setattr(LiveRows, read, noting(getattr(LiveRows, read)))
        before = looked_up()
        lake.advance()
    assert (scanned, looked_up() > before) == (set(), True)


def test_upkeep_indexes_the_tables_that_a_batch_has_searched(
    new_lake: Callable[..., Lake], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up = index_all(monkeypatch, tmp_path / "cache")
    lake = new_lake(f"{DECLARED}views:\n  out: {FOLLOWING['cogroup']}\n")
    lake.limit(read_here_bytes=-1, **MARKED)
    for value in (1, 2):
        lake.put("a", *({"id": i, "k": i, "v": value} for i in range(20)))
        lake.advance()
    before = looked_up()
    done = maintain(lake.spark, lake.project, [lake.table("out")])
    assert [(one.table, one.done) for one in done if one.files] == [
        ("shop.out", "index"),
        ("shop.out__state", "index"),
    ]
    assert looked_up() == before == 0
    lake.put("a", {"id": 3, "k": 3, "v": 3})
    lake.advance()
    assert looked_up() >= 2


def delivered(nth: int, id_: int) -> dict[str, Any]:
    """What a row has besides, among the deliveries of a source."""
    at = datetime(2024, 1, 1 + nth, tzinfo=UTC)
    return {INTERVAL: at, ID: f"{nth}-{id_}", POSITION: id_, OP: "insert"}
