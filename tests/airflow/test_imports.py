"""What reading the DAG files costs: nothing heavy is imported, and mistakes are readable."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from .conftest import Configured

DAGS = Path(__file__).parents[2] / "dags"
HEAVY = ("pyspark", "pandas", "great_expectations", "pyarrow", "deltalake", "numpy")
READ = f"""
import json, os, sys
try:
    from airflow.dag_processing.dagbag import DagBag
except ImportError:  # Airflow 3.1
    from airflow.models.dagbag import DagBag
for variables in json.loads(sys.argv[1]):
    if os.fork():  # Airflow is imported once, for all readings
        os.wait()
        continue
    os.environ.update(variables)
    bag = DagBag({str(DAGS)!r})
    heavy = [name for name in {HEAVY!r} if name in sys.modules]
    parsing = [name for name in ("sqlglot", "ruamel") if name in sys.modules]
    told = {{"dags": sorted(bag.dags), "heavy": heavy, "parsing": parsing}}
    print("@" + json.dumps(told | {{"errors": list(bag.import_errors.values())}}), flush=True)
    os._exit(0)
"""


def read_dags(config: Path, *further: dict[str, str]) -> list[dict[str, Any]]:
    """What Airflow makes of the project's DAG files, in one process after the other.

    `further`: variables of the environment in further processes.
    """
    tracebacks = "AIRFLOW__CORE__DAGBAG_IMPORT_ERROR_TRACEBACKS"
    run = subprocess.run(
        [sys.executable, "-c", READ, json.dumps([{}, *further])],
        env={**os.environ, "SLUICE_CONFIG": str(config), tracebacks: "False"},
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line[1:]) for line in run.stdout.splitlines() if line.startswith("@")]


def test_second_readings_find_what_the_first_kept(configured: Configured) -> None:
    first, second, changed = read_dags(configured(), {}, {"SLUICE_SHOPS": "sales"})
    assert "sqlglot" in first["parsing"]
    assert second["parsing"] == []
    assert "sqlglot" in changed["parsing"]
    assert first["dags"] == ["news", "shop", "sluice_maintenance", "sluice_verify"]
    assert (first["heavy"], first["errors"]) == ([], [])


def test_a_mistake_is_one_import_error_with_file_and_line(configured: Configured) -> None:
    shop = (configured() / "pipelines" / "shop.yaml").read_text("utf-8")
    bad = shop.replace("pipeline: shop", "pipeline: bad").replace("kind: topk", "kind: top")
    (read,) = read_dags(configured(shop=shop, bad=bad))
    assert read["dags"] == ["news", "shop", "sluice_maintenance", "sluice_verify"]
    (error,) = read["errors"]
    assert "Traceback" not in error
    assert "pipelines/bad.yaml:" in error
    assert "unknown kind 'top'" in error
