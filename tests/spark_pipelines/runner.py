"""PySpark's own runner of spark-pipelines projects, with Delta's tables; and rows compared.

It computes in the Spark of the tests' process, in a database of the project's own.
"""

import math
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds
from deltalake import DeltaTable
from tests.support.engines import address_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPEC = """\
name: theirs
storage: file://{folder}/spark-storage
catalog: spark_catalog
database: {database}
libraries:
  - glob:
      include: transformations/**
"""


def run_by_spark(spec: Path, spark: "SparkSession") -> None:
    """Run a project from its beginning. That Spark works in another folder: paths are whole."""
    folder, database = spec.parent, f"of_{spec.parent.name}"
    spark.sql(f"DROP DATABASE IF EXISTS {database} CASCADE")
    for name in ("spark-warehouse", "spark-storage", "theirs"):
        shutil.rmtree(folder / name, ignore_errors=True)
    spark.sql(f"CREATE DATABASE {database} LOCATION '{folder}/spark-warehouse'")
    libraries = folder / "theirs" / "transformations"
    libraries.mkdir(parents=True)
    for file in (f for f in (folder / "transformations").iterdir() if f.is_file()):
        text = file.read_text()
        for inputs in ("inputs/", "landing/"):
            text = text.replace(f'"{inputs}', f'"{folder}/{inputs}')
        (libraries / file.name).write_text(text)
    theirs = folder / "theirs" / "spark-pipeline.yml"
    theirs.write_text(SPEC.format(folder=folder, database=database))
    ran = subprocess.run(
        [sys.executable, "-m", "pyspark.pipelines.cli", "run", "--spec", theirs],
        env={**os.environ, "SPARK_REMOTE": address_of(spark)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, (ran.stdout + ran.stderr)[-5000:]


def run_by_sluice(spec: Path, spark: "SparkSession") -> None:
    """Run a project in a process of its own, for which that Spark computes what needs one."""
    ran = subprocess.run(
        [sys.executable, "-m", "sluice.cli.main", "run", "--spec", spec],
        env={**os.environ, "SPARK_REMOTE": address_of(spark)},
        capture_output=True,
        text=True,
        check=False,
    )
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
