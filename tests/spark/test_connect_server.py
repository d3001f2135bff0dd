"""A server that `sluice connect` starts: a run uses it, and it is there until it is stopped."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner
from tests.support.java import LEAN

from ports import free_port
from sluice.cli.main import main
from sluice.spark.connect_server import ConnectServer

PIPELINE = """
pipeline: shop
schedule: "@daily"
start_date: 2024-01-01
sources:
  sales:
    path: "landing/{interval_start:%Y-%m-%d}/"
    format: json
    schema: id INT, paid INT
"""


@pytest.fixture
def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """A project of one sale whose engine is a server on that port."""
    found, day = free_port(), tmp_path / "landing" / "2024-01-01"
    (tmp_path / "config" / "pipelines").mkdir(parents=True)
    settings = f"engine: connect, remote: 'sc://127.0.0.1:{found}', small_batches: spark"
    conf = "conf: {spark.driver.memory: 700m}"
    (tmp_path / "config" / "sluice.yaml").write_text(f"spark: {{{settings}, {conf}}}\n", "utf-8")
    (tmp_path / "config" / "pipelines" / "shop.yaml").write_text(PIPELINE, "utf-8")
    day.mkdir(parents=True)
    (day / "a.json").write_text(json.dumps({"id": 1, "paid": 5}), "utf-8")
    for name, value in {**LEAN, "XDG_STATE_HOME": str(tmp_path / "state")}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return found


def sluice(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sluice.cli.main", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.usefixtures("own_spark")
def test_a_run_uses_the_server_until_it_is_stopped(port: int) -> None:
    remote = f"sc://127.0.0.1:{port}"
    assert sluice("connect", "status").returncode == 1
    day = ("run", "shop", "--start", "2024-01-01", "--end", "2024-01-02", "--json")
    assert "`sluice connect start` starts one" in sluice(*day).stderr
    try:
        started = sluice("connect", "start")
        assert started.stdout == f"{remote} runs\n", started.stderr
        assert sluice("connect", "start").stdout == f"{remote} runs already\n"
        keeper = ConnectServer(port).keeper()
        assert f"{remote} runs, kept by process {keeper}" in sluice("connect", "status").stdout
        ran = sluice(*day)
        assert '"inserted": 1' in ran.stdout, ran.stderr
        (java,) = (p for p in psutil.Process(keeper).children(recursive=True) if p.name() == "java")
        heard = {c.laddr.ip for c in java.net_connections("tcp") if c.status == "LISTEN"}
        assert {ip.removeprefix("::ffff:") for ip in heard} == {"127.0.0.1"}
    finally:
        stopped = sluice("connect", "stop")
    assert stopped.stdout == f"{remote} has stopped\n", stopped.stderr
    assert not java.is_running()
    assert sluice("connect", "stop").stdout == f"{remote} does not run\n"


def test_a_port_that_another_program_has_is_refused(port: int) -> None:
    with socket.create_server(("127.0.0.1", port)):
        done = CliRunner().invoke(main, ["connect", "start"])
    assert done.exit_code == 2
    assert f"another program listens at 127.0.0.1:{port}" in done.stderr


def test_a_server_of_another_machine_is_not_started_here(port: int) -> None:
    file = Path("config/sluice.yaml")
    file.write_text(file.read_text("utf-8").replace("127.0.0.1", "spark.internal"), "utf-8")
    done = CliRunner().invoke(main, ["connect", "stop"])
    assert done.exit_code == 2
    assert "which is not this machine" in done.stderr


def test_a_note_of_a_server_that_was_killed_is_of_none(port: int) -> None:
    note = Path(os.environ["XDG_STATE_HOME"], "sluice", f"connect-{port}.json")
    note.parent.mkdir(parents=True)
    note.write_text(json.dumps({"pid": os.getpid()}), "utf-8")
    assert ConnectServer(port).keeper() is None
    assert not ConnectServer(port).stop()
