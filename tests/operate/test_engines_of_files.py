"""`sluice plan` names the engine that reads a delivery's files, and the reason."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.support.lake import Row
from tests.support.landed import Landed, day

from sluice.engine.next_batch import NextBatch
from sluice.operate.explain import explain

pytestmark = pytest.mark.usefixtures("real_spark")

DECLARED = """
sources:
  events: {path: "landing/events/{interval_start:%Y-%m-%d}/", SOURCE}
dimensions:
  things: {path: landing/things/, DIMENSION}
"""
SCHEMA = 'schema: "id INT, who STRING", key: [id]'
ROWS: list[Row] = [{"id": n, "who": "ann"} for n in range(3)]
CSV = "id,who\n1,ann\n2,bob\n"
SOURCES: Mapping[str, tuple[str, str]] = {
    f"format: json, {SCHEMA}": ("a_json", "process"),
    'format: json, schema: "id INT, who STRING"': ("a_json", "process"),
    f"format: csv, {SCHEMA}": ("a_csv", "process"),
    f"format: parquet, {SCHEMA}": ("a_parquet", "process"),
    f"format: json, {SCHEMA}, options: {{multiLine: true}}": ("a_json", "process"),
    f"format: json, {SCHEMA}, options: {{encoding: UTF-8}}": (
        "a_json",
        "spark: JSON with `encoding`",
    ),
    f"format: csv, {SCHEMA}, options: {{sep: ';;'}}": (
        "a_csv",
        "spark: CSV with a `sep` of several characters",
    ),
    f"format: csv, {SCHEMA}, options: {{comment: '#'}}": ("a_csv", "spark: CSV with `comment`"),
    f"format: json, {SCHEMA}, expect: [{{type: expect_column_values_to_not_be_null, column: who, "
    "row_condition: \"soundex(who) <> 'x'\"}]": ("a_json", "spark: the function soundex"),
}


def lake_of(folder: Path, spark: SparkSession, source: str, dimension: str = "") -> Landed:
    dimension = dimension or f"format: json, {SCHEMA}"
    text = DECLARED.replace("SOURCE", source).replace("DIMENSION", dimension)
    return Landed(folder, text, spark)


def land(lake: Landed, folder: str, file: str) -> None:
    sep = ";;" if ";;" in lake.declared else ","
    rows = json.dumps(ROWS) if "multiLine" in lake.declared else ROWS
    lake.land(folder, **{file: CSV.replace(",", sep) if file.endswith("csv") else rows})


def planned(lake: Landed, name: str, nth: int = 0) -> NextBatch:
    return explain(lake.project, lake.table(name), day(nth).end)[0]


@pytest.mark.parametrize("declared", SOURCES)
def test_deliveries_take_planned_engines(
    tmp_path: Path, spark: SparkSession, declared: str
) -> None:
    file, engine = SOURCES[declared]
    lake = lake_of(tmp_path, spark, declared)
    for nth in range(2):  # the first one creates the table
        land(lake, f"events/2024-01-0{nth + 1}", file)
        step = planned(lake, "events", nth)
        assert (step.next, step.engine, step.files) == ("ingest", engine, 1)
        assert lake.deliver(nth)[0].engine == engine


@pytest.mark.parametrize("declared", SOURCES)
def test_loads_take_the_planned_engine(tmp_path: Path, spark: SparkSession, declared: str) -> None:
    file, engine = SOURCES[declared]
    key = "" if "key" in declared else ", key: [id]"
    lake = lake_of(tmp_path, spark, declared, f"{declared}{key}")
    for name in ("a", "b"):  # the first load creates the table
        land(lake, "things", file.replace("a", name, 1))
        step = planned(lake, "things")
        assert (step.next, step.engine) == ("load", engine)
        assert lake.load().engine == engine


def test_deliveries_for_spark_meet_no_own_table(tmp_path: Path, spark: SparkSession) -> None:
    lake = lake_of(
        tmp_path, spark, 'format: json, schema: "id INT, at MAP<STRING, DOUBLE>", key: [id]'
    )
    for nth in range(2):  # the first one creates the table
        rows = [{"id": 1, "at": {"x": -0.0}}, {"id": 2, "at": {"x": 0.5, "y": nth}}]
        lake.land(f"events/2024-01-0{nth + 1}", a_json=rows)
        reports = lake.deliver(nth)
        assert [r.warnings for r in reports] == [()] * len(reports)
        assert "spark: maps as keys" in {r.engine for r in reports}


def test_the_largest_delivery_decides(tmp_path: Path, spark: SparkSession) -> None:
    lake = lake_of(tmp_path, spark, f"format: json, {SCHEMA}").limit(computed_here_bytes=800)
    land(lake, "events/2024-01-01", "a_json")
    lake.land("events/2024-01-02", a_json=ROWS * 5)
    assert planned(lake, "events").engine == "process"
    step = planned(lake, "events", 1)
    assert step.engine == "spark: 0.0 MB are read at once"
    assert step.reason.endswith("; by Spark: 0.0 MB are read at once")
    assert step.files == 2


def test_a_plan_reads_no_file(tmp_path: Path, spark: SparkSession) -> None:
    lake = lake_of(tmp_path, spark, f"format: json, {SCHEMA}")
    land(lake, "events/2024-01-01", "a_json")
    (file,) = lake.landing.rglob("*.json")
    before = planned(lake, "events")
    file.write_bytes(b"\0" * file.stat().st_size)
    assert planned(lake, "events") == before
    assert before.engine == "process"


def test_a_source_with_nothing_new_has_no_engine(tmp_path: Path, spark: SparkSession) -> None:
    lake = lake_of(tmp_path, spark, f"format: json, {SCHEMA}")
    land(lake, "events/2024-01-01", "a_json")
    lake.deliver()
    assert (planned(lake, "events").next, planned(lake, "events").engine) == ("nothing", "")
