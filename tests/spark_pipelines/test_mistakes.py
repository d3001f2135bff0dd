"""What is wrong with a project's files: one message each, with file and line, and nothing runs."""

import subprocess
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.spark_pipelines.projects import read_here, sluice, write_project

from sluice.declare import spark_specs

IMPORTS = "from pyspark import pipelines as dp\n"
TOO_LONG = f"it took more than {spark_specs.LONGEST_S} seconds"
VIEW = IMPORTS + "@dp.materialized_view\ndef numbers():\n    return "


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a_py": IMPORTS + "def (\n"}, "a.py:2: can't read this as Python"),
        ({"a_py": "import nowhere_at_all\n"}, "a.py:1: ModuleNotFoundError"),
        ({"a_py": VIEW + "5\n"}, "a.py:2: numbers returns no DataFrame, but int"),
        ({"a_py": VIEW + "spark.range(3).collect()\n"}, "a.py:4: a definition only describes rows"),
        (
            {"a_py": VIEW + "spark.range(3).select(spark.range(3).columns)\n"},
            "a.py:4: a definition",
        ),
        (
            {"a_py": VIEW + "spark.range(3)\nspark.conf.set('a', 'b')\n"},
            "a.py:5: [SESSION_MUTATION",
        ),
        ({"a_py": VIEW + "spark.sql('DROP TABLE t')\n"}, "a.py:4: a definition only describes"),
        ({"a_py": "raise SystemExit(3)\n"}, "a.py:1: SystemExit: 3"),
        ({"a_py": "\nraise KeyboardInterrupt\n"}, "a.py:2: KeyboardInterrupt"),
        ({"a_sql": "SELECT 1"}, "a.sql:1: a definition file has CREATE MATERIALIZED VIEW"),
        ({"a_sql": "\nCREATE TABLE t AS SELECT 1"}, "a.sql:2: a definition file has"),
        ({"a_sql": "CREATE MATERIALIZED VIEW v\nAS"}, "a.sql:2: a query is expected after AS"),
        ({"a_sql": "SET spark.sql.ansi.enabled = false"}, "a.sql:1: spark.sql.ansi.enabled"),
        ({"a_sql": "SET TIME ZONE 'Europe/Berlin'"}, "a.sql:1: spark.sql.session.timeZone"),
        ({"a_txt": "hello"}, "a.txt:1: a definition is a .py or a .sql file"),
        (
            {
                "a_py": VIEW + "spark.range(3)\n",
                "b_sql": "CREATE MATERIALIZED VIEW numbers AS SELECT 1",
            },
            "b.sql:1: 'numbers' is defined in transformations/a.py:2 already",
        ),
        (
            {
                "a_sql": "CREATE MATERIALIZED VIEW a AS SELECT id FROM b;\n"
                "CREATE MATERIALIZED VIEW b AS SELECT id FROM a"
            },
            "a.sql:1: a cycle: a -> b -> a",
        ),
        (
            {
                "a_sql": "CREATE MATERIALIZED VIEW `a-b` AS SELECT 1 AS x;\n"
                "CREATE MATERIALIZED VIEW a_b AS SELECT 2 AS x"
            },
            "a.sql:2: its table is named 'a_b', and so is that of 'default.a-b' in ",
        ),
        (
            {
                "a_sql": "CREATE MATERIALIZED VIEW other.t AS SELECT 1 AS x;\n"
                "CREATE MATERIALIZED VIEW other_t AS SELECT 2 AS x"
            },
            "a.sql:2: its table is named 'other_t', and so is that of 'other.t' in",
        ),
        (
            {"a_sql": "CREATE FLOW f AS INSERT INTO nowhere BY NAME SELECT * FROM STREAM t"},
            "a.sql:1: the flow 'f' has an unknown target 'nowhere'",
        ),
    ],
)
def test_a_mistake_has_its_file_and_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], message: str
) -> None:
    found = read_here(write_project(tmp_path, **files), monkeypatch)
    shown = [f"{file.rpartition('/')[2]}:{line}: {what}" for file, line, what in found["mistakes"]]
    assert len(shown) == 1, shown
    assert shown[0].startswith(message), shown


def test_a_glob_that_leaves_the_project_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = write_project(tmp_path / "project")
    (tmp_path / "outside.py").write_text("raise ValueError")
    spec.write_text(spec.read_text().replace("transformations/**", "../outside.py"))
    found = read_here(spec, monkeypatch)
    assert [(file, line) for file, line, _ in found["mistakes"]] == [("spark-pipeline.yml", 1)]
    assert "leaves the project's folder" in found["mistakes"][0][2]


def test_a_mistake_ends_the_run_before_anything_is_committed(tmp_path: Path) -> None:
    spec = write_project(tmp_path, a_py=VIEW + "spark.range(3)\n", b_py="import nowhere_at_all\n")
    ran = sluice("run", "--spec", spec)
    assert ran.exit_code == 2
    assert f"{tmp_path}/transformations/b.py:1: ModuleNotFoundError" in ran.output
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ("name: shop\nstorages: x\n", 1, "storages"),
        ("name: shop\nlibraries: [\n", 3, "can't read this as YAML"),
        ("name: shop\nstorage: file:///lake\n", 1, "no file of its `libraries` defines a table"),
    ],
)
def test_an_unreadable_spec_is_one_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, at: int, message: str
) -> None:
    spec = write_project(tmp_path)
    spec.write_text(text)
    ((file, line, problem),) = read_here(spec, monkeypatch)["mistakes"]
    assert (file, line) == ("spark-pipeline.yml", at)
    assert message in problem


def test_a_file_that_ends_the_process_is_named(tmp_path: Path) -> None:
    spec = write_project(tmp_path, a_py=VIEW + "spark.range(3)\n", b_py="import os\nos._exit(0)\n")
    found = sluice("validate", "--spec", spec)
    assert found.exit_code == 2
    ended = "the process that reads the definitions ended"
    assert f"{tmp_path}/transformations/b.py:1: {ended}" in found.output


def test_a_file_that_never_ends_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process is stopped after LONGEST_S; here, as if it had read the file for so long."""
    spec = write_project(tmp_path, a_py=VIEW + "spark.range(3)\n", b_py="while True: pass\n")

    def run(command: list[str], *, timeout: int, **_: object) -> None:
        Path(f"{command[-1]}.reading").write_text("transformations/b.py")
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(spark_specs.subprocess, "run", run)
    found = sluice("validate", "--spec", spec)
    assert found.exit_code == 2
    ended = f"the process that reads the definitions ended: {TOO_LONG}"
    assert f"{tmp_path}/transformations/b.py:1: {ended}" in found.output


@pytest.mark.parametrize("method", ["max", "min", "sum", "avg"])
def test_an_aggregate_that_asks_for_types_leaves_only_its_table_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    text = VIEW + f"spark.range(3).groupBy('id').{method}('id')\n"
    text += "@dp.materialized_view\ndef others():\n    return spark.range(3)\n"
    found = read_here(write_project(tmp_path, a_py=text), monkeypatch)
    assert found["mistakes"] == []
    ((file, line, problem, _),) = found["left_out"]
    assert (file, line) == ("transformations/a.py", 4)
    assert problem.startswith(f"numbers: {method} of groups asks for the columns' types: write agg")
    assert [*found["sections"]["views"]] == ["others"]


def test_a_table_that_can_not_be_declared_leaves_out_all_that_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = pa.table({"id": [1], "m": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))})
    write_deltalake(tmp_path / "maps", rows)
    read = f'spark.read.format("delta").load("{tmp_path}/maps")'
    views = "".join(
        f"@dp.materialized_view\ndef {name}():\n    return {read}.select('id')\n" for name in "ab"
    )
    project = write_project(tmp_path, a_py=f"from pyspark import pipelines as dp\n{views}")
    found = read_here(project, monkeypatch)
    assert [line for _, line, *_ in found["left_out"]] == [2, 5]
