"""`sluice plan` names the engine of the batch that a run then takes, and the reason."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from tests.support.lake import Lake, Row

from sluice.delta.log import opened
from sluice.engine import BatchReport
from sluice.engine.next_batch import NextBatch
from sluice.operate.explain import explain

SOURCES = """
sources:
  sales:
    {path: "s/{interval_start:%Y}/", key: [id], schema: "id INT, g STRING, v INT, at TIMESTAMP"}
dimensions:
  groups: {path: g/, schema: "g STRING, name STRING", key: [g]}
views:
"""
GROUPS = "[{dimension: groups, on: g = groups.g}]"
WHERE = "where: \"TEXT <> 'x'\""
SELECT = 'select: {id: id, text: "TEXT"}'
VIEWS = {
    "topk": f"topk, from: sales, {WHERE}, partition_by: [g], order_by: [v desc], limit: 2",
    "cogroup": "cogroup, key: [g], "
    f"streams: {{s: {{from: sales, {WHERE}, aggregates: {{n: count(*), most: max(v)}}}}}}",
    "lookup": f"lookup, from: sales, join: {GROUPS}, {SELECT}",
    "refreshed lookup": f"lookup, from: sales, join: {GROUPS}, {SELECT}, refresh: true",
    "window store": f"window_store, from: sales, key: [g], time: at, {SELECT}, retention: 30 days",
    "join": f"join, left: sales, right: groups, on: sales.g = groups.g, {SELECT}".replace(
        "id: id", "id: sales.id"
    ),
    "select": f"select, from: sales, {SELECT}",
    "union": f"union, from: [{{table: sales, {SELECT}}}, {{table: sales, {SELECT}}}]",
    "over": f"over, from: sales, partition_by: [TEXT], order_by: [v], {SELECT}".replace(
        "id: id", "id: id, nth: row_number() OVER w"
    ).replace("[TEXT]", "[g]"),
    "sql": 'sql, sql: "SELECT TEXT AS text, count(*) AS n FROM sales GROUP BY TEXT"',
    "expectation": "select, from: sales, select: {id: id, g: g}, "
    "expect: [{type: expect_column_values_to_not_be_null, column: g, "
    "row_condition: \"TEXT <> 'x'\"}]",
}
FUNCTION, PATTERN = "soundex(g)", "regexp_replace(g, '[[:alpha:]]', '')"
REASONS = {FUNCTION: "spark: the function soundex", PATTERN: "spark: the pattern '[[:alpha:]]'"}
BY_SPARK = [*((kind, FUNCTION) for kind in VIEWS), ("select", PATTERN), ("expectation", PATTERN)]


def sale(id_: int, g: str, v: int) -> Row:
    return {"id": id_, "g": g, "v": v, "at": datetime(2024, 1, id_, tzinfo=UTC)}


def lake_of(folder: Path, session: SparkSession, kind: str, text: str) -> Lake:
    text = text.replace("(g", "(sales.g") if kind == "join" else text
    view = f"  seen: {{kind: {VIEWS[kind].replace('TEXT', text)}}}\n"
    lake = Lake(folder, SOURCES + view, session)
    lake.put("groups", {"g": "a", "name": "A"}, {"g": "b", "name": "B"})
    lake.put("sales", sale(1, "a", 3), sale(2, "b", 4), sale(3, "a", 5))
    return lake


def change(lake: Lake) -> None:
    lake.put("sales", sale(4, "a", 1), sale(2, "a", 4), gone=[sale(1, "a", 3)])


def planned(lake: Lake) -> list[NextBatch]:
    return [step for step in explain(lake.project, lake.table("seen")) if step.engine]


def engines(done: Iterable[NextBatch | BatchReport]) -> Mapping[str, str]:
    return {one.table: one.engine for one in done if one.engine}


@pytest.mark.parametrize("kind", VIEWS)
def test_batches_are_computed_here_as_planned(
    tmp_path: Path, spark: SparkSession, kind: str
) -> None:
    take_planned(lake_of(tmp_path, spark, kind, "upper(g)"), "process")


@pytest.mark.usefixtures("real_spark")
@pytest.mark.parametrize(("kind", "text"), BY_SPARK)
def test_batches_are_computed_by_spark_as_planned(
    tmp_path: Path, spark: SparkSession, kind: str, text: str
) -> None:
    take_planned(lake_of(tmp_path, spark, kind, text), REASONS[text])


def take_planned(lake: Lake, engine: str) -> None:
    for _ in range(2):  # a build, then a change
        steps = planned(lake)
        reports = engines(lake.advance("seen"))
        assert steps
        assert engines(steps) == {step.table: reports[step.table] for step in steps}
        assert steps[0].engine == engine
        change(lake)


def test_reasons_say_why_a_table_is_computed_so(tmp_path: Path, spark: SparkSession) -> None:
    lake = lake_of(tmp_path, spark, "select", "soundex(g)")
    (by_function,) = planned(lake)
    assert by_function.reason.endswith("; by Spark: the function soundex")
    (by_size,) = planned(lake.limit(computed_here_bytes=10))
    assert by_size.engine == "spark: 0.0 MB are read at once"
    assert by_size.reason.endswith("; by Spark: 0.0 MB are read at once")


@pytest.mark.usefixtures("real_spark")
def test_reports_name_the_size_that_was_too_large(tmp_path: Path, spark: SparkSession) -> None:
    lake = lake_of(tmp_path, spark, "select", "upper(g)").limit(computed_here_bytes=10)
    take_planned(lake, "spark: 0.0 MB are read at once")


def test_settings_for_spark_are_the_reason(tmp_path: Path, spark: SparkSession) -> None:
    lake = lake_of(tmp_path, spark, "select", "upper(g)")
    lake.project = with_settings(lake, small_batches="spark")
    (step,) = planned(lake)
    assert step.engine == "spark"
    assert step.reason.endswith(
        "by Spark: the project's `spark` settings leave small batches to it"
    )


def with_settings(lake: Lake, **settings: Any) -> Any:
    changed = lake.project.spark.model_copy(update=settings)
    return lake.project.model_copy(update={"spark": changed})


@pytest.mark.parametrize("kind", VIEWS)
def test_a_plan_opens_each_table_once_and_reads_no_rows(
    tmp_path: Path, spark: SparkSession, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = lake_of(tmp_path, spark, kind, "upper(g)")
    lake.advance("seen")
    change(lake)
    opened._tables.clear()
    found: list[str] = []
    make = DeltaTable.__init__

    def counting(self: DeltaTable, uri: str, *arguments: Any, **named: Any) -> None:
        found.append(uri)
        make(self, uri, *arguments, **named)

    monkeypatch.setattr(DeltaTable, "__init__", counting)
    steps = planned(lake)
    assert steps
    assert len(found) == len({*found}) > 0
    for file in Path(lake.folder / "lake").rglob("*.parquet"):
        file.write_bytes(b"no rows can be read of this")
    assert planned(lake) == steps
