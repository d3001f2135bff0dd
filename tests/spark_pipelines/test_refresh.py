"""`run --refresh` and `--full-refresh` of spark-pipelines projects: which tables run."""

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.spark_pipelines.projects import sluice, write_project

from sluice.cli import runs

TABLES = """
    CREATE TEMPORARY VIEW few AS SELECT * FROM ev;
    CREATE MATERIALIZED VIEW by_g AS SELECT g, count(*) AS n FROM few GROUP BY g;
    CREATE MATERIALIZED VIEW over AS SELECT a.g FROM by_g a JOIN gs b ON a.g = b.g;
    CREATE STREAMING TABLE seen AS SELECT * FROM STREAM ev;
    CREATE STREAMING TABLE long AS SELECT g FROM STREAM over WHERE g <> '';
"""
FILES = """
    from pyspark import pipelines as dp

    @dp.table
    def landed():
        return spark.readStream.schema("id INT").json("landing/landed").where("id > 1")
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    for table in ("ev", "gs"):
        write_deltalake(tmp_path / "warehouse" / table, pa.table({"g": ["a"]}))
    return write_project(tmp_path, a_sql=TABLES, b_py=FILES)


def refreshed(spec: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> set[str]:
    """Return the tables that a refresh would run."""
    found = set[str]()

    def do(_project: object, tables: Iterable[runs.Table], *_: object, **__: object) -> None:
        found.update(table.name for table in tables)

    monkeypatch.setattr(runs, "do", do)
    ran = sluice("run", "--spec", spec, *options)
    assert ran.exit_code == 0, ran.output
    return found


def test_what_reads_from_outside_for_a_table_runs_with_it(
    spec: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for option in ("--refresh", "--full-refresh"):
        of = {
            name: refreshed(spec, monkeypatch, option, name) - {name}
            for name in ("by_g", "over", "seen", "long", "landed")
        }
        assert of == {
            "by_g": {"ev"},
            "over": {"gs"},
            "seen": set(),
            "long": {"over_stream"},
            "landed": {"landed_files"},
        }
    every = {"by_g", "ev", "over", "gs", "seen", "long", "over_stream", "landed", "landed_files"}
    assert refreshed(spec, monkeypatch, "--full-refresh-all") == every


def test_a_table_of_another_pipeline_is_not_refreshed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = "CREATE MATERIALIZED VIEW s AS SELECT 1 AS one"
    for name in ("one", "two"):
        spec = write_project(tmp_path / name, a_sql=table)
        spec.write_text(spec.read_text().replace("name: shop", f"name: {name}"))
    (tmp_path / "config").mkdir()
    specs = [f"../{name}/spark-pipeline.yml" for name in ("one", "two")]
    (tmp_path / "config/sluice.yaml").write_text(f"lake: lake\nspark_pipelines: {specs}\n")
    asked = ("run", "--config", tmp_path / "config", "one", "--full-refresh")
    other = sluice(*asked, "two.s")
    assert other.exit_code == 2
    assert "two.s is not a table of the pipeline one" in other.output
    found = list[str]()
    monkeypatch.setattr(
        runs, "do", lambda _, tables, *__, **___: found.extend(t.id for t in tables)
    )
    for name in ("s", "one.s", "spark_catalog.default.s"):
        assert sluice(*asked, name).exit_code == 0
    assert found == ["one.one_row", "one.s"] * 3
