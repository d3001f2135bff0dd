"""One setting chooses where Spark runs: what a job's driver gets for each kind of master."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import SHOP, Configured

RECORDER = """#!/bin/sh
printf '%s\\n' "$@" > {file}
exit 1
"""
BY_SPARK = """
import sys
from sluice.declare.project import load
from sluice.errors import SluiceError
from sluice.spark.session import open_session
try:
    open_session(load(sys.argv[1]).spark)
except SluiceError:
    pass
"""


def told(config: Path, folder: Path) -> list[str]:
    """The arguments of a spark-submit that only notes them."""
    program, noted = folder / "spark" / "bin" / "spark-submit", folder / "arguments"
    program.parent.mkdir(parents=True)
    program.write_text(RECORDER.format(file=noted), "utf-8")
    program.chmod(0o755)
    environ = {**os.environ, "SPARK_HOME": str(folder / "spark"), "SLUICE_APP_NAME": "shop.sums"}
    environ.pop("SPARK_REMOTE", None)
    command = [sys.executable, "-c", BY_SPARK, str(config)]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return noted.read_text("utf-8").splitlines()


@pytest.mark.parametrize(
    "master", ["local[2]", "spark://10.0.0.1:7077", "yarn", "k8s://https://10.0.0.1:6443"]
)
def test_the_master_of_the_settings_is_where_a_driver_is_started_for(
    configured: Configured, tmp_path: Path, master: str
) -> None:
    settings = {"engine": "submit", "master": master, "conf": {"spark.executor.memory": "3g"}}
    arguments = told(configured(json.dumps({"spark": settings}), shop=SHOP), tmp_path)
    confs = {arguments[n + 1] for n, word in enumerate(arguments) if word == "--conf"}
    assert {f"spark.master={master}", "spark.app.name=shop.sums"} <= confs
    assert "spark.executor.memory=3g" in confs
    # A driver on loopback would be out of reach for executors elsewhere.
    assert ("spark.driver.host=127.0.0.1" in confs) == master.startswith("local")
