"""What is said where Spark does not start, and that it says nothing where it does."""

import os
import socket
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from py4j.protocol import Py4JJavaError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from sluice.declare.project import SparkSettings
from sluice.errors import MissingDependency, Retryable
from sluice.spark import starting
from sluice.spark.session import Spark, open_session
from sluice.spark.starting import check_server, lasting, start_or_explain

START = """
from sluice.spark.session import Spark
from sluice.declare.project import SparkSettings
MODE = "spark.sql.sources.partitionOverwriteMode"
conf = {"spark.driver.memory": "600m", MODE: "dynamic"}
spark = Spark(SparkSettings(master="local[1]", conf=conf))
print(spark.session.conf.get(MODE))
print(spark.session.sql("SELECT sum(id) FROM range(10)").collect()[0][0])
try:
    spark.session.sql("SELECT id / (id - id) FROM range(10)").collect()
except Exception as error:
    print(type(error).__name__)
beans = spark.session._jvm.java.lang.management.ManagementFactory
rooms = [pool for pool in beans.getMemoryPoolMXBeans() if "Code" in pool.getName()]
print(sum(pool.getUsage().getMax() for pool in rooms) // 2**20)
spark.stop()
"""

SHORT = "SELECT length(repeat('x', 1500000000))"
THEN_KILLED = """
import os, signal, sys
from sluice.errors import Retryable
from sluice.spark.session import with_spark
from sluice.spark.starting import lasting
from sluice.declare.project import SparkSettings
def work(spark):
    session = spark.session
    try:
        with lasting():
            session.sql(sys.argv[1]).collect()
    except Retryable as error:
        print(error)
    java = session.sparkContext._gateway.proc
    os.kill(java.pid, signal.SIGKILL)
    java.wait()
    session.range(3).count()
with_spark(SparkSettings(master="local[1]", conf={"spark.driver.memory": "600m"}), work)
"""
ENDED = """import threading, time
    def end():
        while not session.sparkContext.statusTracker().getActiveJobsIds():
            time.sleep(0.1)
        os.kill(java.pid, signal.SIGTERM)
    threading.Thread(target=end).start()
    session.sql("SELECT reflect('java.lang.Thread', 'sleep', 600000L) FROM range(1)").collect()"""


def run(script: str, *arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    """In a process of its own, which is to start its own Spark."""
    given = {k: v for k, v in {**os.environ, **environ}.items() if k != "SPARK_REMOTE"}
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, env=given, capture_output=True, text=True, check=False)


def test_a_server_that_is_not_there_is_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        check_server(f"sc://127.0.0.1:{port}/;token=secret")
    monkeypatch.setenv("SPARK_REMOTE", f"sc://127.0.0.1:{port}/;token=secret")
    with pytest.raises(
        Retryable, match=r"no Spark Connect server answers at 127\.0\.0\.1"
    ) as raised:
        open_session(SparkSettings())
    assert "secret" not in str(raised.value)


def test_a_master_that_is_not_there_is_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        master = f"spark://127.0.0.1:{taken.getsockname()[1]}"
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    with pytest.raises(Retryable, match=r"no Spark master answers at 127\.0\.0\.1"):
        open_session(SparkSettings(master=master))


def test_a_master_that_takes_no_application_is_named() -> None:
    class Refusal(Py4JJavaError):  # type: ignore[misc]
        def __init__(self) -> None: ...

        def __str__(self) -> str:
            return "Cannot call methods on a stopped SparkContext.\n\tat org.apache.spark"

    def start() -> None:
        raise Refusal

    with pytest.raises(
        MissingDependency, match=r"^spark://m:7077 answers, but takes no appl"
    ) as no:
        start_or_explain(start, Path("/jdk"), "spark://m:7077")
    assert "\tat" not in str(no.value)


class WorkersPage(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'<span class="version" style="margin-right: 15px;">4.1.3</span>')

    def log_message(self, *_: object) -> None: ...


@pytest.mark.parametrize("is_shown", [True, False])
def test_executors_of_another_spark_are_named(
    is_shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with HTTPServer(("127.0.0.1", 0), WorkersPage) as page:
        Thread(target=page.serve_forever, daemon=True).start()
        if not is_shown:
            page.shutdown()
            page.server_close()
        context = Mock(master="spark://m:7077")
        executors = context._jsc.sc().statusStore().executorList(True)
        executors.size.return_value = 1
        logs = f"http://127.0.0.1:{page.server_port}/logPage/?appId=1 http://w"
        executors.apply(0).executorLogs().values().mkString.return_value = logs
        monkeypatch.setattr(SparkContext, "_active_spark_context", context)
        monkeypatch.setattr(starting, "version", lambda _: "4.2.0")
        with pytest.raises(MissingDependency) as raised, lasting():
            raise RuntimeError("java.io.InvalidClassException: RDD; local class incompatible: 1")
        if is_shown:
            page.shutdown()
    theirs = "Spark 4.1.3" if is_shown else "another Spark"
    said, hint = str(raised.value).splitlines()
    assert said == (
        f"executors of spark://m:7077 run {theirs}, which can't read tasks of Spark 4.2.0"
    )
    assert hint.startswith("hint: run Spark 4.2 ")
    assert ("pip install 'pyspark==4.1.3' 'pyspark-client==4.1.3'" in hint) is is_shown


def test_a_java_that_ends_at_once_is_named(tmp_path: Path) -> None:
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho no luck >&2\nexit 1\n")
    java.chmod(0o755)
    (tmp_path / "jdk" / "release").write_text('JAVA_VERSION="17.0.1"\n')
    done = run(START, JAVA_HOME=str(tmp_path / "jdk"))
    assert "no luck" in done.stderr
    assert (
        f"{MissingDependency.__name__}: Spark did not start: the Java at {tmp_path}" in done.stderr
    )


@pytest.mark.usefixtures("own_spark")
def test_a_heap_that_can_not_be_had_is_asked_about() -> None:
    done = run(START.replace("600m", "900000g"))
    assert "Spark did not start: the Java at " in done.stderr
    assert "memory that spark.driver.memory in sluice.yaml requests" in done.stderr


@pytest.mark.usefixtures("own_spark")
def test_spark_says_nothing_but_what_it_raises() -> None:
    done = run(START)
    assert done.stderr == ""
    mode, total, raised, room = done.stdout.split()
    assert (total, raised, room) == ("45", "ArithmeticException", "512"), "room for compiled code"
    assert mode == "static", "a table that is replaced is so whole, whatever the project sets"


@pytest.mark.usefixtures("own_spark")
def test_a_java_that_ends_by_itself_at_work_is_named_like_one_that_was_killed() -> None:
    """Its own hooks stop Spark first: the job that runs is cancelled before the process is gone."""
    work = THEN_KILLED.replace("os.kill(java.pid, signal.SIGKILL)\n    java.wait()", ENDED)
    assert work != THEN_KILLED
    done = run(work, "SELECT 1")
    assert "Retryable: Spark's Java process ended during the work" in done.stderr
    assert "Py4JJavaError" not in done.stderr.rpartition("Retryable: ")[2]


@pytest.mark.parametrize("fault", [None, Py4JNetworkError("no answer"), ConnectionResetError()])
def test_an_error_of_a_spark_that_stops_is_the_end_of_its_java(
    fault: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the error says: Java has a second to live, and has stopped Spark or is silent."""
    java = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1); exit(7)"])
    context = Mock()
    context._jsc.sc().isStopped.configure_mock(return_value=True, side_effect=fault)
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=java))
    monkeypatch.setattr(SparkContext, "_active_spark_context", context)
    with pytest.raises(Retryable, match=r"ended during the work \(exit code 7\)"), lasting():
        raise RuntimeError("Cannot invoke anything")


def test_a_java_that_takes_long_to_end_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    java, context = subprocess.Popen([sys.executable, "-c", "input()"], stdin=-1), Mock()
    context._jsc.sc().isStopped.return_value = True
    monkeypatch.setattr(starting, "ENDING", 0.1)
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=java))
    monkeypatch.setattr(SparkContext, "_active_spark_context", context)
    with pytest.raises(Retryable, match=r"ended during the work\n"), lasting():
        raise RuntimeError("Cannot invoke anything")
    java.communicate(b"\n")


def test_errors_of_a_spark_that_goes_on_are_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    java = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    context = Mock()
    context._jsc.sc().isStopped.return_value = False
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=java))
    monkeypatch.setattr(SparkContext, "_active_spark_context", context)
    with pytest.raises(RuntimeError, match="division by zero"), lasting():
        raise RuntimeError("division by zero")
    assert java.poll() is None, "it was not waited for"
    java.communicate(b"\n")


@pytest.mark.parametrize(
    ("fault", "said"),
    [("no rows", "no rows"), ("java.io: local class incompatible", "executors run another Spark")],
)
def test_errors_are_raised_where_only_the_client_is_installed(
    fault: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starting, "is_installed", lambda _: False)
    monkeypatch.setitem(sys.modules, "py4j.protocol", None)
    monkeypatch.delattr("pyspark.SparkContext")
    with pytest.raises((RuntimeError, MissingDependency)) as raised, lasting():
        raise RuntimeError(fault)
    assert said in str(raised.value)


def test_a_client_alone_ends_its_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluice.extras.is_installed", lambda _: False)
    monkeypatch.setitem(sys.modules, "py4j.protocol", None)
    spark = Spark(SparkSettings(engine="connect", remote="sc://cluster:15002"))
    spark.__dict__["_session"] = session = Mock()
    spark.stop()
    session.stop.assert_called_once_with()


@pytest.mark.usefixtures("own_spark")
def test_memory_that_does_not_suffice_and_a_java_that_is_killed_at_work_are_named() -> None:
    done = run(THEN_KILLED, SHORT)
    assert done.stdout.startswith("Spark ran out of memory\nhint: nothing is half-written")
    assert "raise spark.driver.memory under spark: conf: in sluice.yaml" in done.stdout
    assert "Retryable: Spark's Java process ended during the work" in done.stderr
    assert done.stderr.rstrip().endswith("in sluice.yaml")
