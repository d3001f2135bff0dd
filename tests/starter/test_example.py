"""What `sluice init --example` writes runs from an installed wheel, in an empty folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.support.wheel import UV, built

from sluice.cli.main import main
from sluice.declare.project import load
from sluice.read.lake import Lake
from sluice.starter import EXAMPLES

ROOT = Path(__file__).parents[2]
DAY = ("--start", "2017-05-10", "--end", "2017-05-11")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which the wheel was installed."""
    wheel, site = built(tmp_path_factory.mktemp("dist")), tmp_path_factory.mktemp("site")
    run([UV, "pip", "install", "--offline", "--no-deps", "--target", str(site), wheel], ROOT)
    return site


def run(command: list[str], folder: Path, **more: str) -> str:
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **more}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_example_runs_from_an_installed_wheel(
    tmp_path: Path, installed: Path, remote: str
) -> None:
    more = {"PYTHONPATH": str(installed), "SPARK_REMOTE": remote}
    code = "import sluice; print(sluice.__file__)"
    assert Path(run([sys.executable, "-c", code], tmp_path, **more).strip()).parts[:-2] == (
        installed.parts
    )
    sluice = [sys.executable, "-m", "sluice.cli.main"]
    said = run([*sluice, "init", "--example", "retail"], tmp_path, **more).splitlines()
    assert said[-1].endswith("`sluice run retail --start 2017-05-08 --end 2017-05-15`")
    run([sys.executable, "tools/landing.py", *DAY], tmp_path, **more)
    run([*sluice, "run", "retail", *DAY], tmp_path, **more)
    lake = Lake(load(tmp_path / "config"))
    assert sum(row["rank"] == 1 for row in lake.table("top_products").read()) > 10
    assert len(list(lake.table("baskets").read())) > 100


def test_an_example_is_the_repositorys_own_and_comes_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = CliRunner().invoke(main, ["init", "--example", "retail", "--from", "data"])
    assert (refused.exit_code, list(tmp_path.iterdir())) == (2, [])
    assert "leave out the files" in refused.output
    assert CliRunner().invoke(main, ["init", "--example", "retail"]).exit_code == 0
    for path in EXAMPLES["retail"]:
        assert (tmp_path / path).read_text() == (ROOT / path).read_text()
    again = CliRunner().invoke(main, ["init", "--example", "retail"])
    assert "exists already" in again.output
