"""What reading the DAG files costs: nothing heavy is imported, and mistakes are readable."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from .conftest import Configured

DAGS = Path(__file__).parents[2] / "dags"
HEAVY = ("pyspark", "pandas", "great_expectations", "pyarrow", "deltalake", "numpy")
READ = f"""
import json, sys, time
from airflow.dag_processing.dagbag import DagBag
began = time.monotonic()
bag = DagBag({str(DAGS)!r})
heavy = [name for name in {HEAVY!r} if name in sys.modules]
parsing = [name for name in ("sqlglot", "ruamel") if name in sys.modules]
told = {{"dags": sorted(bag.dags), "heavy": heavy, "parsing": parsing}}
print("@" + json.dumps(told | {{"errors": list(bag.import_errors.values())}}))
"""


def read_dags(config: Path, **variables: str) -> dict[str, Any]:
    """What Airflow makes of the project's DAG files, in a process of its own."""
    run = subprocess.run(
        [sys.executable, "-c", READ],
        env=_environ(config) | variables,
        capture_output=True,
        text=True,
        check=True,
    )
    (line,) = (line for line in run.stdout.splitlines() if line.startswith("@"))
    read: dict[str, Any] = json.loads(line[1:])
    return read


def _environ(config: Path) -> dict[str, str]:
    import os

    tracebacks = "AIRFLOW__CORE__DAGBAG_IMPORT_ERROR_TRACEBACKS"
    return {**os.environ, "SLUICE_CONFIG": str(config), tracebacks: "False"}


def test_a_second_reading_finds_what_the_first_has_kept_until_something_changes(
    configured: Configured,
) -> None:
    config = configured()
    assert "sqlglot" in read_dags(config)["parsing"]
    assert read_dags(config)["parsing"] == []
    assert "sqlglot" in read_dags(config, SLUICE_SHOPS="sales")["parsing"]


def test_dag_files_import_nothing_heavy(configured: Configured) -> None:
    read = read_dags(configured())
    assert read["dags"] == ["news", "shop", "sluice_maintenance", "sluice_verify"]
    assert (read["heavy"], read["errors"]) == ([], [])


def test_a_mistake_is_one_import_error_with_file_and_line(configured: Configured) -> None:
    shop = (configured() / "pipelines" / "shop.yaml").read_text("utf-8")
    bad = shop.replace("pipeline: shop", "pipeline: bad").replace("kind: topk", "kind: top")
    read = read_dags(configured(shop=shop, bad=bad))
    assert read["dags"] == ["news", "shop", "sluice_maintenance", "sluice_verify"]
    (error,) = read["errors"]
    assert "Traceback" not in error
    assert "pipelines/bad.yaml:" in error
    assert "unknown kind 'top'" in error
