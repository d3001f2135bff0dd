"""`make dist`: its wheel, in an empty environment with each extra alone, from the registry."""

import os
import shutil
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest
from tests.support.java import LEAN
from tests.support.wheel import ROOT, UV, run

from ports import free_port
from sluice.cache import cache_folder
from sluice.extras import DISTRIBUTION, MODULES

SALES = "id,at,item\n1,2024-01-01 10:00:00,tea\n2,2024-01-02 11:00:00,rye\n"
EXPECTED = "    expect: [{type: expect_column_values_to_not_be_null, column: item}]\n"
TOPIC = """\
pipeline: letters
schedule: "@daily"
start_date: 2024-01-01
sources:
  letters:
    kafka: {topic: letters, connection: post}
    value: {format: json}
    schema: id BIGINT
"""
PLUGIN = (
    "from importlib.metadata import entry_points as found;"
    "(one,) = [e for e in found(group='airflow.plugins') if e.name == 'sluice'];"
    "print(one.load().name)"
)
MOST_MB = 530  # of an installation without extras, before Python compiles it: docs/install.md


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with what `make dist` builds."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-d", str(folder), cwd=ROOT)
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with data to begin from."""
    deliver(tmp_path)
    return tmp_path


def deliver(folder: Path) -> None:
    (folder / "data").mkdir()
    (folder / "data" / "sales.csv").write_text(SALES, "utf-8")


@dataclass(frozen=True)
class Bare:
    """An environment without extras, which has run a project: Python has compiled what that needs.

    `size`: its bytes before.
    """

    wheel: Path
    folder: Path
    size: int

    @property
    def sluice(self) -> str:
        return str(self.folder / "venv" / "bin" / "sluice")

    def with_extra(self, extra: str, folder: Path, *before: str) -> str:
        """The `sluice` of a copy of it with this extra, after these packages without theirs."""
        shutil.copytree(self.folder / "venv", folder / "venv", symlinks=True, copy_function=os.link)
        wanted = f"{DISTRIBUTION}[{extra}] @ {self.wheel.as_uri()}"
        install = (UV, "pip", "install", "-q", "--python", str(folder / "venv"))
        if before:
            run(*install, "--no-deps", *before, cwd=folder)
        run(*install, wanted, cwd=folder)
        return str(folder / "venv" / "bin" / "sluice")


@pytest.fixture(scope="module")
def bare(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Bare:
    (wheel,) = dist.glob("*.whl")
    folder = tmp_path_factory.mktemp("bare")
    run(UV, "venv", "--quiet", "--relocatable", str(folder / "venv"), cwd=folder)
    run(UV, "pip", "install", "-q", "--python", str(folder / "venv"), str(wheel), cwd=folder)
    size = sum(f.lstat().st_size for f in (folder / "venv").rglob("*") if not f.is_symlink())
    bare = Bare(wheel, folder, size)
    deliver(folder)
    run(bare.sluice, "run", begin(bare.sluice, folder).stem, cwd=folder)
    return bare


def asked_until_served(address: str) -> bytes:
    """The answer to a GET, once the server takes it."""
    for _ in range(100):
        try:
            with urlopen(address, timeout=10) as answer:
                read: bytes = answer.read()
                return read
        except HTTPError:
            raise
        except URLError:
            time.sleep(0.2)
    raise AssertionError(f"nothing answers at {address}")


def begin(sluice: str, folder: Path) -> Path:
    """The pipeline's file of a project begun from the folder's data."""
    run(sluice, "init", "--from", "data/*.csv", cwd=folder)
    (file,) = (folder / "config" / "pipelines").glob("*.yaml")
    return file


@pytest.mark.usefixtures("long")
def test_the_archives_hold_licence_types_and_metadata_and_nothing_of_the_tests(dist: Path) -> None:
    (wheel,), (archive,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
        (metadata,) = [opened.read(n).decode() for n in names if n.endswith("/METADATA")]
    assert {"sluice/py.typed"} < set(names)
    assert any(n.endswith(".dist-info/licenses/LICENSE") for n in names)
    assert {f"Name: {DISTRIBUTION}", "License-Expression: Apache-2.0"} < set(metadata.splitlines())
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for extra in declared["optional-dependencies"]:
        assert f"Provides-Extra: {extra}" in metadata
    assert MODULES.keys() < declared["optional-dependencies"].keys()
    with tarfile.open(archive) as opened_archive:
        tops = {n.split("/")[1] for n in opened_archive.getnames()}
    assert {"LICENSE", "README.md", "pyproject.toml", "libs"} <= tops
    assert not tops & {"tests", "docs", ".ci", "requirements.lock"}


@pytest.mark.usefixtures("long")
def test_without_extras_a_project_runs_and_its_size_is_that_of_the_docs(bare: Bare) -> None:
    assert bare.size / 1e6 < MOST_MB
    assert "rye" in run(bare.sluice, "read", "newest_sales", cwd=bare.folder)
    assert run(f"{bare.sluice}-views", "--version", cwd=bare.folder).startswith("sluice, version")


@pytest.mark.usefixtures("long")
def test_the_source_archive_builds_the_same_wheel(dist: Path, tmp_path: Path) -> None:
    (wheel,), (archive,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    build = ("-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "built"))
    run(sys.executable, *build, cwd=source)
    (again,) = (tmp_path / "built").iterdir()
    assert again.read_bytes() == wheel.read_bytes()


@pytest.mark.usefixtures("long", "own_spark")
def test_spark_alone_computes_a_large_batch(bare: Bare, project: Path) -> None:
    """By the PySpark of this checkout, whose wheel uv has kept.

    A newer one is 450 MB to fetch and to build; `make matrix` tries newer ones.
    """
    sluice = bare.with_extra("spark", project, f"pyspark=={version('pyspark')}")
    pipeline = begin(sluice, project)
    settings = "lake: lake\nspark: {small_batches: spark}\n"
    (project / "config" / "sluice.yaml").write_text(settings, "utf-8")
    run(sluice, "run", pipeline.stem, cwd=project, **LEAN, SLUICE_CACHE=str(cache_folder()))
    assert "rye" in run(sluice, "read", "newest_sales", cwd=project)


@pytest.mark.usefixtures("long")
def test_quality_alone_checks_expectations(bare: Bare, project: Path) -> None:
    sluice = bare.with_extra("quality", project)
    pipeline = begin(sluice, project)
    with pipeline.open("a", encoding="utf-8") as file:
        file.write(EXPECTED)
    assert "not checked" not in run(sluice, "validate", cwd=project)
    run(sluice, "run", pipeline.stem, cwd=project)
    assert "rye" in run(sluice, "read", "newest_sales", cwd=project)


@pytest.mark.usefixtures("long")
def test_airflow_alone_finds_the_plugin_and_the_factory(bare: Bare, project: Path) -> None:
    sluice = bare.with_extra("airflow", project)
    begin(sluice, project)
    home = {"AIRFLOW_HOME": str(project / "home"), "SLUICE_CONFIG": str(project / "config")}
    assert "sluice" in run(str(project / "venv/bin/python"), "-c", PLUGIN, cwd=project, **home)


@pytest.mark.usefixtures("long")
def test_kafka_alone_asks_a_broker(bare: Bare, tmp_path: Path) -> None:
    sluice = bare.with_extra("kafka", tmp_path)
    (tmp_path / "config" / "pipelines").mkdir(parents=True)
    (tmp_path / "config" / "pipelines" / "letters.yaml").write_text(TOPIC, "utf-8")
    post = {"AIRFLOW_CONN_POST": '{"conn_type": "kafka", "host": "127.0.0.1", "port": 9}'}
    assert "the brokers of the connection 'post' don't answer" in run(
        sluice, "run", "letters", cwd=tmp_path, code=3, **post
    )


@pytest.mark.usefixtures("long")
def test_dbt_alone_imports_a_project(bare: Bare, tmp_path: Path) -> None:
    sluice = bare.with_extra("dbt", tmp_path)
    manifest = ROOT / "tests" / "dbt" / "bakery" / "manifest.json"
    run(sluice, "import", "dbt", str(manifest), cwd=tmp_path)
    assert (tmp_path / "config" / "pipelines" / "bakery.yaml").is_file()


@pytest.mark.usefixtures("long")
def test_serve_alone_answers_with_rows(bare: Bare, project: Path) -> None:
    sluice = bare.with_extra("serve", project)
    pipeline = begin(sluice, project)
    run(sluice, "run", pipeline.stem, cwd=project)
    port = str(free_port())
    address = f"http://127.0.0.1:{port}/v1/tables/newest_sales/rows"
    with subprocess.Popen([sluice, "serve", "--port", port], cwd=project) as server:
        try:
            assert b"rye" in asked_until_served(address)
        finally:
            server.terminate()


@pytest.mark.usefixtures("long")
def test_lineage_alone_writes_events(bare: Bare, project: Path) -> None:
    sluice = bare.with_extra("lineage", project)
    pipeline = begin(sluice, project)
    log = project / "events.jsonl"
    to_file = {"TYPE": "file", "LOG_FILE_PATH": str(log), "APPEND": "true"}
    settings = {f"OPENLINEAGE__TRANSPORT__{name}": value for name, value in to_file.items()}
    run(sluice, "run", pipeline.stem, cwd=project, **settings)
    assert '"COMPLETE"' in log.read_text("utf-8")
