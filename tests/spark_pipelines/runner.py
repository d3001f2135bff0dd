"""PySpark's own runner of spark-pipelines projects, with Delta's tables; and rows compared."""

import fcntl
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyspark
from deltalake import DeltaTable
from tests.support.java import LEAN

from sluice.spark.jars import classpath
from sluice.spark.java import environment

CONF = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.ui.enabled": "false",
}


def run_by_spark(spec: Path) -> None:
    """Run a project from its beginning: the runner's catalog ends with its process."""
    for folder in ("spark-warehouse", "spark-storage"):
        shutil.rmtree(spec.parent / folder, ignore_errors=True)
    theirs = spec.with_name("theirs.yml")
    text = spec.read_text().replace(f"{spec.parent}/lake", f"{spec.parent}/spark-storage")
    theirs.write_text(text.replace("spark.sql.warehouse.dir", "spark.of.no.meaning"))
    home = Path(pyspark.__file__).parent
    env = {**os.environ, **environment(), **LEAN, "SPARK_LOCAL_IP": "127.0.0.1"}
    env |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOG_LEVEL": "ERROR", "SPARK_HOME": str(home)}
    env["SPARK_DIST_CLASSPATH"] = os.pathsep.join(map(str, classpath()))
    settings = spec.parent / "spark-conf"
    settings.mkdir(exist_ok=True)
    lines = (f"{name} {value}\n" for name, value in CONF.items())
    (settings / "spark-defaults.conf").write_text("".join(lines))
    env["SPARK_CONF_DIR"] = str(settings)
    with Path(tempfile.gettempdir(), "spark-pipelines.lock").open("w") as alone:
        fcntl.flock(alone, fcntl.LOCK_EX)  # its server listens at the same port each time
        ran = subprocess.run(
            [home / "bin" / "spark-pipelines", "run", "--spec", theirs],
            cwd=spec.parent,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
    assert ran.returncode == 0, (ran.stdout + ran.stderr)[-5000:]


def run_by_sluice(spec: Path) -> None:
    """Run a project in a process of its own, which may start Spark and ends it."""
    command = [sys.executable, "-m", "sluice.cli.main", "run", "--spec", spec]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def bag(rows: list[dict[str, Any]]) -> Counter[tuple[tuple[str, str], ...]]:
    """Rows with their numbers; columns by name in lower case, times as texts."""
    return Counter(tuple(sorted((k.lower(), shown(v)) for k, v in r.items())) for r in rows)


def shown(value: Any) -> str:
    if isinstance(value, float | Decimal):  # a command's JSON has both as numbers
        return "nan" if math.isnan(value) else f"{float(value):.9g}"
    return str(value).replace("T", " ").removesuffix("Z").removesuffix("+00:00")


def tables(spec: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Each table of PySpark's runner with its rows."""
    for folder in sorted((spec.parent / "spark-warehouse").iterdir()):
        if (folder / "_delta_log").exists():
            found = DeltaTable(folder).to_pyarrow_table()
        else:
            found = ds.dataset([*map(str, folder.glob("*.parquet"))]).to_table()
        yield folder.name, found.to_pylist()
