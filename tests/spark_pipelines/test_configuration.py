"""Specs that `sluice.yaml` names, beside pipelines in YAML; expectations beside the spec."""

import json
import subprocess
from datetime import UTC, datetime
from html import unescape
from os import environ
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.spark_pipelines.projects import land, read_here, rows_of, sluice, write_project

from sluice.airflow import blueprint
from sluice.declare import spark_specs
from sluice.declare.project import load, load_sound
from sluice.declare.project_cache import Noting
from sluice.errors import ConfigError
from sluice.pages import html
from sluice.report import Visit
from sluice.report.pages import overview, tables
from sluice.report.pages import table as table_page
from sluice.report.publish import publish
from sluice.serve import app

VISIT = Visit(
    root="",
    airflow=None,
    environment="",
    reports=(),
    now=datetime(2024, 5, 2, tzinfo=UTC),
    sees=lambda _: True,
    has_run=lambda *_: False,
)

NUMBERS = """
    CREATE MATERIALIZED VIEW odd AS SELECT id FROM numbers WHERE id % 2 = 1;
"""
RAW = """
    from pyspark import pipelines as dp

    @dp.table
    def numbers():
        return spark.readStream.schema("id BIGINT").json("landing/numbers")
"""
SLUICE = "lake: ../lake\nspark_pipelines: [../etl/spark-pipeline.yml]\n"
YAML = """
pipeline: sums
schedule: assets
views:
  total:
    kind: sql
    sql: SELECT sum(id) AS total FROM shop.odd
"""
RAW_IN_YAML = """
sources:
  raw: {path: landing/raw, format: json, delivery: stream, schema: id BIGINT}
"""


def configure(folder: Path) -> tuple[Path, Path]:
    """Write a project of both; return the folder of its configuration, and the spec."""
    spec = write_project(folder / "etl", numbers_sql=NUMBERS, raw_py=RAW)
    config = folder / "config"
    (config / "pipelines").mkdir(parents=True)
    (config / "sluice.yaml").write_text(SLUICE)
    (config / "pipelines" / "sums.yaml").write_text(YAML)
    return config, spec


def test_the_settings_file_in_place_of_its_folder_names_the_folder(tmp_path: Path) -> None:
    config, _ = configure(tmp_path)
    found = sluice("validate", "--config", config / "sluice.yaml")
    assert found.exit_code == 2
    assert f"sluice.yaml:1: this file is found by its folder: --config {config}" in found.output


def test_pipelines_of_both_are_one_project_and_one_has_dags_like_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLUICE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "airflow"))
    config, spec = configure(tmp_path)
    land(tmp_path / "etl/landing/numbers", "1.json", *({"id": n} for n in range(6)))
    for pipeline in ("shop", "sums"):
        ran = sluice("run", pipeline, "--config", config)
        assert ran.exit_code == 0, ran.output
    assert rows_of(config, "total") == [{"total": 9}]
    dags = {made.name: made for made in blueprint.site(config).pipelines}
    assert {*dags} == {"shop", "sums"}

    def table_ids() -> set[str]:
        noting = Noting(environ)
        found = load(config, environ=noting)
        assert noting.folders == {str(spec.parent)}
        return {*found.graph.tables}

    assert table_ids() == {"shop.numbers", "shop.odd", "sums.total"}
    even = "CREATE MATERIALIZED VIEW even AS SELECT id FROM numbers WHERE id % 2 = 0"
    (spec.parent / "transformations/even.sql").write_text(even)
    assert table_ids() == {"shop.numbers", "shop.odd", "shop.even", "sums.total"}


def test_a_project_with_a_mistake_is_left_out_and_the_others_run(tmp_path: Path) -> None:
    config, spec = configure(tmp_path)
    alone = YAML.replace("sums", "alone").partition("views:")[0] + RAW_IN_YAML
    (config / "pipelines" / "sums.yaml").write_text(alone)
    (spec.parent / "transformations/broken.py").write_text("import nowhere_at_all")
    project, mistakes = load_sound(config)
    assert {*project.graph.tables} == {"alone.raw"}
    assert mistakes is not None
    assert "/etl/transformations/broken.py:1: ModuleNotFoundError" in mistakes.mistakes[0]
    with pytest.raises(ConfigError):
        load_sound(spec)


def test_a_table_of_another_spec_is_named_with_both_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_specs, "_run", lambda path, _: read_here(path, monkeypatch))
    config, _ = configure(tmp_path)
    reads = "CREATE MATERIALIZED VIEW twice AS SELECT id * 2 AS id FROM {}odd;"
    texts = reads.format(""), reads.format("shop.").replace("twice", "again")
    another_odd = "CREATE MATERIALIZED VIEW odd AS SELECT 1 AS x"  # which sums.total can't read
    other = write_project(tmp_path / "other", a_sql="\n".join(texts), b_sql=another_odd)
    (config / "sluice.yaml").write_text(
        "spark_pipelines: [../etl/spark-pipeline.yml, ../other/spark-pipeline.yml]"
    )
    with pytest.raises(ConfigError) as caught:
        load(config)
    (mistake,) = caught.value.mistakes
    assert "'shop' is declared in" in mistake

    other.write_text(other.read_text().replace("name: shop", "name: more"))
    (other.parent / "transformations/b.sql").unlink()
    left_out = load(config).graph.left_out
    assert left_out is not None
    for line, (name, reason) in enumerate(zip(("twice", "again"), left_out.mistakes, strict=True)):
        place = f"{config}/../other/transformations/a.sql:{line + 1}"
        of = f"{config}/../etl/spark-pipeline.yml"
        assert reason.startswith(f"{place}: {name}: it reads odd of {of}, and a spec's tables")


def test_the_file_beside_a_spec_has_its_schedule_and_expectations(tmp_path: Path) -> None:
    spec = write_project(tmp_path, numbers_sql=NUMBERS, raw_py=RAW)
    beside = tmp_path / "sluice.yml"
    rule = "{type: expect_column_values_to_not_be_null, column: id, on_failure: quarantine}"
    beside.write_text(
        f"schedule: '@daily'\nstart_date: 2024-01-01\nexpect:\n  numbers:\n    - {rule}\n"
    )
    found = load(spec)
    assert found.pipelines["shop"].schedule.expression == "@daily"
    assert [e.kwargs["column"] for e in found.graph.table("numbers").expect] == ["id"]
    assert found.lake == str(tmp_path / "lake")

    beside.write_text("expect:\n  nowhere: []\n  odd:\n    - {type: nothing}\nlake: x\n")
    with pytest.raises(ConfigError) as caught:
        load(spec)
    shown = [mistake.removeprefix(f"{tmp_path}/") for mistake in caught.value.mistakes]
    assert shown[0].startswith("sluice.yml:2: expect.nowhere: the project defines no table")
    assert shown[1].startswith("sluice.yml:4: views.odd.expect")
    assert shown[2].startswith("sluice.yml:5: lake: unknown key 'lake'")


def test_a_view_that_is_computed_whole_is_named_and_strict_refuses_it(tmp_path: Path) -> None:
    whole = (
        "CREATE MATERIALIZED VIEW pairs AS\nSELECT a.id FROM numbers a\nJOIN odd b ON a.id > b.id"
    )
    spec = write_project(tmp_path, numbers_sql=NUMBERS, raw_py=RAW, whole_sql=whole)
    planned = sluice("plan", "--spec", spec)
    assert planned.exit_code == 0, planned.output
    assert "computed whole: shop.pairs: every batch computes the whole query" in planned.stderr
    assert f"{tmp_path}/transformations/whole.sql:3" in planned.stderr
    assert sluice("plan", "--spec", spec, "--strict").exit_code == 2

    notice = f"every batch computes the whole query, because of {tmp_path}/transformations/whole"
    assert f"computed whole: shop.pairs: {notice}" in sluice("status", "--spec", spec).stdout
    project = load(spec)
    report = publish(project).parent
    pages = [(report / name).read_text() for name in ("index.html", "shop.pairs.html")]
    pairs = project.graph.table("pairs")
    pages.append(html(table_page(VISIT, project, pairs)))
    pages.append(html(overview(VISIT, [(project.pipelines["shop"], tables(project, [pairs]))])))
    assert [notice in unescape(page) for page in pages] == [True] * 4
    assert notice not in (report / "shop.odd.html").read_text()


@pytest.mark.parametrize(
    ("query", "is_read_again"),
    [("SELECT nowhere FROM numbers", False), ("SELECT * FROM comes_later", True)],
)
def test_a_part_that_is_left_out_is_looked_at_again_only_if_others_may_mend_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str, is_read_again: bool
) -> None:
    monkeypatch.setenv("SLUICE_CACHE", str(tmp_path / "cache"))
    broken = f"CREATE MATERIALIZED VIEW broken AS {query}"
    spec = write_project(tmp_path / "etl", broken_sql=broken, raw_py=RAW)
    reads, run = list[Path](), spark_specs._run
    monkeypatch.setattr(spark_specs, "_run", lambda path, *_: reads.append(path) or run(path, *_))
    for _ in range(2):
        left_out = load(spec).graph.left_out
        assert left_out is not None
        assert "broken.sql:1: broken: " in left_out.mistakes[0]
    assert len(reads) == (2 if is_read_again else 1)


@pytest.mark.parametrize("named_by", ["the spec", "the folder that names it"])
def test_a_changed_definition_is_compared_with_a_revision(tmp_path: Path, named_by: str) -> None:
    config, spec = configure(tmp_path)
    write_deltalake(spec.parent / "warehouse/trips", pa.table({"id": [1]}))
    (spec.parent / "transformations/trips.sql").write_text(
        "CREATE MATERIALIZED VIEW of_trips AS SELECT id FROM trips"
    )
    (tmp_path / ".gitignore").write_text("warehouse\n")
    who = ("-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "commit.gpgsign=false")
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run(["git", "-C", tmp_path, *who, *words], check=True)
    odd = spec.parent / "transformations/numbers.sql"
    odd.write_text(NUMBERS.replace("% 2 = 1", "% 2 = 0"))
    of = ("--spec", spec) if named_by == "the spec" else ("--config", config)
    found = sluice("plan", "--against", "HEAD", *of, "--format", "json")
    assert found.exit_code == 0, found.output
    rows = [json.loads(line) for line in found.stdout.splitlines()]
    ways = {row["table"]: row["next"] for row in rows if "__" not in row["table"]}
    of_both = {"sums.total": "untouched"} if named_by != "the spec" else {}
    assert ways == {
        "shop.numbers": "untouched",
        "shop.odd": "rebuild",
        "shop.of_trips": "untouched",
        "shop.trips": "untouched",
        **of_both,
    }


def test_a_changed_definition_of_a_spec_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLUICE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(app, "LOOK", 0.0)
    config, spec = configure(tmp_path)
    both = app.Served(spec), app.Served(config)
    assert not any("shop.even" in served.lake.project.graph.tables for served in both)
    even = "CREATE MATERIALIZED VIEW even AS SELECT id FROM numbers WHERE id % 2 = 0"
    (spec.parent / "transformations/even.sql").write_text(even)
    assert all("shop.even" in served.lake.project.graph.tables for served in both)
