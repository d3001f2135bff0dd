"""The first batch of a large cogroup: one shuffle brings its groups together and files them."""

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable
from tests.support.in_duckdb import wrong
from tests.support.lake import Lake

from sluice.delta.writing.filing import is_in_order, slices_of
from sluice.engine.operator import union
from sluice.engine.plan import nodes_of
from sluice.kinds.cogroup.batch import LEAST_RANGES, groups_behind
from sluice.kinds.cogroup.operator import STREAM, CogroupState, pack_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DECLARED = """
sources:
  sales: &source
    path: "sales/{interval_start:%Y-%m-%d}/"
    key: [id]
    schema: "id INT, k INT, at TIMESTAMP, f DOUBLE"
  returns: *source
views:
  found:
    kind: cogroup
    key: [k]
    streams:
      sold:
        from: sales
        aggregates:
          n: count(*)
          total: sum(id)
          mean: avg(id)
          odd: sum(id) FILTER (WHERE id % 2 = 1)
          last: last(id ORDER BY at)
      back: {from: returns, aggregates: {most: max(id), ids: collect_list(id ORDER BY id)}}
  by_hour:
    kind: cogroup
    key: [k]
    window: {type: tumbling, time: at, size: 1 hour}
    retention: 2 days
    streams: {sold: {from: sales, aggregates: {n: "count(*)"}}}
  by_session:
    kind: cogroup
    key: [k]
    window: {type: session, time: at, gap: 6 hours}
    streams: {sold: {from: sales, aggregates: {n: "count(*)"}}}
  by_float: {kind: cogroup, key: [f], streams: {sold: {from: sales, aggregates: {n: "count(*)"}}}}
"""
HOUR = 3_600_000_000


def made(folder: Path, spark: "SparkSession") -> Lake:
    lake = Lake(folder, DECLARED, spark, small_changelog=0)
    return lake.limit(read_here_bytes=0, file_rows=100)


@pytest.fixture
def lake(tmp_path: Path, spark: "SparkSession") -> Lake:
    return made(tmp_path, spark)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory, real_spark: "SparkSession") -> Lake:
    """A lake whose first batch had a thousand groups."""
    lake = made(tmp_path_factory.mktemp("many"), real_spark)
    return filled(lake.limit(computed_here_bytes=-1), 1000)


def filled(lake: Lake, groups: int) -> Lake:
    for name, rows in {"sales": 1200, "returns": 600}.items():
        keys = [None if i % 100 == 0 else i * 7919 % groups for i in range(rows)]
        at = [1_704_100_000_000_000 + i * HOUR // 20 for i in range(rows)]
        each = zip(keys, at, strict=True)
        lake.put(name, *({"id": i, "k": k, "at": t, "f": 0.5} for i, (k, t) in enumerate(each)))
    lake.advance()
    return lake


@pytest.mark.usefixtures("real_spark")
def test_many_groups_are_filed_by_the_shuffle_that_brings_them_together(many: Lake) -> None:
    for view, column in {"found__state": "k", "by_hour__state": "window_start"}.items():
        (whole,) = slices_of(DeltaTable(many.uri(view)))
        assert LEAST_RANGES <= len(whole.paths) <= whole.row_count / 50
        assert is_in_order(many.uri(view), whole.paths, column)
    assert wrong(many) == {}, "sessions too, which are no columns until a key's rows are together"


@pytest.mark.usefixtures("real_spark")
def test_what_is_shuffled_is_narrow(lake: Lake) -> None:
    """Equal arguments of a stream are one column, those of streams that are alike share theirs."""
    for name in ("sales", "returns"):
        lake.put(name)
    node = nodes_of(lake.table("found"), lake.project.graph)[0]
    state = node.operator
    assert isinstance(state, CogroupState)
    inputs = {i: lake.session.read.format("delta").load(lake.uri(i[5:])) for i in state.inputs}
    used = {i: rows.select(*state.columns(i)) for i, rows in inputs.items()}
    prepared = {i: state.prepare(i, rows) for i, rows in used.items()}
    rows, arguments = pack_rows(union(list(prepared.values())), state.accumulators)
    assert arguments.keys() == {a.name for a in state.accumulators}
    assert sorted(set(rows.columns) - {"k", STREAM}) == [
        "_struct<o0:int,k0:int,v:int>_0",
        "_struct<o0:timestamp,k0:int,v:int>_0",
        "_struct<v:int>_0",
        "_struct<v:int>_1",
        "_struct<v:int>_2",
    ]


@pytest.mark.usefixtures("real_spark")
def test_few_groups_and_keys_that_spark_would_shuffle_again_are_added_up_first(lake: Lake) -> None:
    filled(lake, 20)
    assert len(DeltaTable(lake.uri("found__state")).file_uris()) == 1
    assert len(DeltaTable(lake.uri("by_float__state")).file_uris()) == 1
    assert wrong(lake) == {}


@pytest.mark.parametrize("groups", [50, 5_000, 1_000_000])
def test_groups_are_estimated_by_a_sample(groups: int) -> None:
    random = Random(groups)
    met = len({random.randrange(groups) for _ in range(50_000)})
    assert groups_behind(50_000, met, most=100_000_000) == pytest.approx(groups, rel=0.15)
    assert groups_behind(100, 100, most=700) == 700, "each row a group of its own"
