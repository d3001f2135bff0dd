"""One setting chooses where Spark runs: what spark-submit is told for each kind of master."""

import json
from contextlib import suppress
from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowException

from sluice.airflow.commands import Command
from sluice.airflow.graph import Task, TaskKind
from sluice.airflow.tasks import SubmittedJob

from .conftest import SHOP, Configured

RECORDER = """#!/bin/sh
printf '%s\\n' "$@" > {file}
"""


def told(config: Path, folder: Path, master: str) -> list[str]:
    """The arguments of a spark-submit that only notes them."""
    program, noted = folder / "spark-submit", folder / "arguments"
    program.write_text(RECORDER.format(file=noted), "utf-8")
    program.chmod(0o755)
    work = Task("advance.sums", TaskKind.ADVANCE, "shop", ("shop.sums",))
    task = SubmittedJob(task_id=work.id, work=work, config=config, master=master)
    task.binary = str(program)
    # Of a driver in client mode the provider hears no exit code from Kubernetes, and says that it
    # failed. A task goes by the job's report.
    with suppress(AirflowException):
        task.launch(Command(folder / "advance.py", ("shop.sums; rm -rf /", "$(id)")), {})
    return noted.read_text("utf-8").splitlines()


@pytest.mark.parametrize(
    "master",
    ["local[2]", "spark://10.0.0.1:7077", "yarn", "k8s://https://10.0.0.1:6443"],
)
def test_the_master_of_the_settings_is_where_it_is_submitted_to(
    configured: Configured, tmp_path: Path, master: str
) -> None:
    settings = {"engine": "submit", "master": master, "conf": {"spark.executor.memory": "3g"}}
    arguments = told(configured(json.dumps({"spark": settings}), shop=SHOP), tmp_path, master)
    assert arguments[arguments.index("--master") + 1] == master
    assert arguments[arguments.index("--name") + 1] == "shop.advance.sums"
    confs = {arguments[n + 1] for n, word in enumerate(arguments) if word == "--conf"}
    assert "spark.executor.memory=3g" in confs
    # A driver on loopback would be out of reach for executors elsewhere.
    assert ("spark.driver.host=127.0.0.1" in confs) == master.startswith("local")
    assert arguments[-3:] == [str(tmp_path / "advance.py"), "shop.sums; rm -rf /", "$(id)"]
