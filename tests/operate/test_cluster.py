"""`doctor --spark`: what a cluster lacks is named item by item, with the command that mends it."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from tests.support.java import LEAN

from daemons import Daemons
from ports import free_port
from sluice.cli.main import main
from sluice.declare.project import SparkSettings
from sluice.delta.places.lake_layout import FORMAT
from sluice.errors import MissingDependency
from sluice.operate import doctor
from sluice.spark import session, starting
from sluice.spark.connect_server import ConnectServer
from sluice.spark.session import STATIC_CONF, Spark
from spark_cluster import Cluster

ROOT = Path(__file__).parents[2]
LAKES = ROOT / "tests" / "delta" / "lakes"
PIPELINE = """
pipeline: shop
schedule: "@daily"
start_date: 2024-01-01
sources:
  sales: {path: "landing/{interval_start:%Y-%m-%d}/", format: json, schema: id INT}
"""
MISSING = "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: delta.\n\tat org.apache.spark"
Shown = dict[str, dict[str, str]]


class Server:
    """A session of a server that has these settings, and no Delta unless `has_delta`."""

    def __init__(self, version: str, settings: dict[str, str], *, has_delta: bool) -> None:
        self.version, self.settings, self.has_delta = version, dict(settings), has_delta
        self.conf = SimpleNamespace(get=self.settings.get, set=self.settings.__setitem__)
        self.read = SimpleNamespace(format=lambda _: SimpleNamespace(load=self.load))

    def load(self, _: str) -> SimpleNamespace:
        raise RuntimeError("[DELTA_TABLE_NOT_FOUND] no table" if self.has_delta else MISSING)

    def createDataFrame(self, *_: Any) -> SimpleNamespace:  # noqa: N802 - PySpark's name
        raise RuntimeError(
            "\n  Python in worker has different version 3.9 than that in driver 3.11"
        )

    def stop(self) -> None: ...


def begin(folder: Path, settings: str) -> None:
    (folder / "config" / "pipelines").mkdir(parents=True)
    (folder / "config" / "sluice.yaml").write_text(f"spark: {{{settings}}}\n", "utf-8")
    (folder / "config" / "pipelines" / "shop.yaml").write_text(PIPELINE, "utf-8")


@pytest.fixture
def examine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Server], Any]:
    """Run `doctor --spark` on a project of such a server."""
    begin(tmp_path, "engine: connect, remote: 'sc://cluster:15002'")
    monkeypatch.chdir(tmp_path)

    def run(server: Server) -> Any:
        monkeypatch.setattr("sluice.cli.views.open_session", lambda _: server)
        done = CliRunner().invoke(main, ["doctor", "--spark", "--json"])
        assert done.stdout, done.output
        return done

    return run


def shown(text: str) -> Shown:
    return {row["item"]: row for row in map(json.loads, text.splitlines())}


def test_an_older_cluster_is_named_and_nothing_else_is_asked(
    examine: Callable[[Server], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "version", lambda _: "4.2.0")
    done = examine(Server("4.1.3", {}, has_delta=False))
    assert done.exit_code == 2
    ((item, row),) = shown(done.stdout).items()
    assert (item, row["found"]) == ("version of sc://cluster:15002", "Spark 4.1.3")
    assert row["repair"].startswith(
        "run Spark 4.2 there, or install its release here: pip install 'pyspark==4.1.3' "
        "'pyspark-client==4.1.3'"
    )


def test_what_a_server_lacks_is_named_with_its_repair(examine: Callable[[Server], Any]) -> None:
    done = examine(Server(doctor.version("pyspark-client"), {}, has_delta=False))
    assert done.exit_code == 2
    rows = shown(done.stdout)
    assert rows["spark.sql.extensions"]["found"] == "not set"
    assert rows["spark.sql.extensions"]["repair"] == (
        "restart it with `--conf spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension`, "
        "or by `sluice connect start`"
    )
    assert rows["jars of Delta"]["found"].startswith("[DATA_SOURCE_NOT_FOUND] Failed to find")
    assert "python -m sluice.spark.jars" in rows["jars of Delta"]["repair"]
    assert rows["Python of executors"]["found"].startswith("Python in worker has different")
    assert "PYSPARK_PYTHON" in rows["Python of executors"]["repair"]
    assert "\tat org.apache" not in done.output


def test_of_a_workers_trace_its_error_is_shown() -> None:
    trace = (
        "\n  An exception was thrown from the Python worker. Please see the stack trace below.\n"
        "[PYTHON_EXCEPTION] An exception was thrown: Traceback (most recent call last):\n"
        '  File "worker.py", line 3569, in main\n    check_python_version(infile)\n'
        "pyspark.errors.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has 3.10\n"
        "Please check environment variables\n"
    )
    shown = (
        "pyspark.errors.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has 3.10"
    )
    assert doctor._words(RuntimeError(trace)) == shown


def test_several_extensions_are_not_a_fault(examine: Callable[[Server], Any]) -> None:
    more = {"spark.sql.extensions": f"a.B,{STATIC_CONF['spark.sql.extensions']}"}
    done = examine(Server(doctor.version("pyspark-client"), more, has_delta=True))
    rows = shown(done.stdout)
    assert rows["spark.sql.extensions"]["repair"] == rows["jars of Delta"]["repair"] == ""


def test_the_docs_table_has_every_item(examine: Callable[[Server], Any]) -> None:
    done = examine(Server(doctor.version("pyspark-client"), {}, has_delta=False))
    page = (ROOT / "docs" / "cluster.md").read_text("utf-8")
    listed = {
        name
        for cell in re.findall(r"^\| (.+?) \|", page, re.MULTILINE)
        for name in cell.split(", ")
    }
    items = {re.sub(r"(version of|access to) .*", r"\1 …", item) for item in shown(done.stdout)}
    assert {*items, "pyspark of executors", "pyarrow of executors"} <= {
        name.replace("`", "") for name in listed
    }


def test_a_batch_names_an_older_server(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server("3.5.9", {}, has_delta=True)
    monkeypatch.setattr(session, "open_session", lambda *_, **__: server)
    monkeypatch.setattr(session, "has_no_jvm", lambda _: True)
    monkeypatch.setattr(starting, "version", lambda _: "4.2.0")
    spark = Spark(SparkSettings(engine="connect", remote="sc://cluster:15002"))
    with pytest.raises(MissingDependency, match=r"sc://cluster:15002 is Spark 3\.5\.9, older than"):
        assert spark.session


# What a notebook's Spark SQL reads, as docs/other_engines.md shows it. Like the command, it is a
# process of its own: beside a regular session, which other tests have, PySpark opens no remote one.
ASK = """
import json, sys
from pyspark.sql import SparkSession

session = SparkSession.Builder().remote(sys.argv[1]).create()
towns = f"SELECT town, sum(sum) FROM delta.`{sys.argv[2]}` GROUP BY town ORDER BY town"
print(json.dumps([tuple(row) for row in session.sql(towns).collect()]))
session.stop()
"""


def run(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Warning" not in done.stderr
    return done.stdout


@pytest.mark.usefixtures("own_spark")
def test_a_real_server_has_all_that_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ConnectServer(free_port())
    begin(tmp_path, f"engine: connect, remote: '{server.remote}'")
    for name, value in {**LEAN, "XDG_STATE_HOME": str(tmp_path / "state")}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    lake = tmp_path / "lake"
    shutil.copytree(LAKES / str(FORMAT) / "lake", lake)
    server.start(SparkSettings(conf={"spark.driver.memory": "700m"}))
    try:
        totals = json.loads(run("-c", ASK, server.remote, str(lake / "trips" / "towns")))
        rows = shown(run("-m", "sluice.cli.main", "doctor", "--spark", "--json"))
    finally:
        server.stop()
    assert {row["repair"] for row in rows.values()} == {""}
    assert rows["jars of Delta"]["found"] == "found"
    assert rows["pyarrow of executors"]["found"]
    assert rows[f"access to {lake.resolve()}"]["found"] == "read"
    assert totals == [["Bern", 12], ["Graz", 1], ["Rome", 5]]


@pytest.mark.usefixtures("own_spark")
def test_a_real_master_is_asked_by_a_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in LEAN.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    daemons = Daemons(tmp_path / "daemons")
    cluster = Cluster(daemons)
    own = "spark.driver.host: 127.0.0.1, spark.driver.bindAddress: 127.0.0.1"
    conf = f"{{{own}, spark.driver.memory: 700m, spark.executor.memory: 600m}}"
    begin(tmp_path, f"master: '{cluster.url}', conf: {conf}")
    try:
        cluster.start(1)
        rows = shown(run("-m", "sluice.cli.main", "doctor", "--spark", "--json"))
    finally:
        daemons.stop()
    assert {row["repair"] for row in rows.values()} == {""}
    assert rows[f"version of {cluster.url}"]["found"] == f"Spark {version('pyspark')}"
    assert rows["pyspark of executors"]["found"] == version("pyspark")
