"""Spark-pipelines projects in a test's folder, read in this process or run by the command."""

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pyspark.sql.connect.session import SparkSession

from sluice.cli.main import main
from sluice.spark_pipelines.__main__ import read

SPEC = """\
name: shop
storage: file://{storage}
configuration:
  spark.sql.warehouse.dir: {warehouse}
libraries:
  - glob:
      include: transformations/**
"""


def write_project(folder: Path, **files: str) -> Path:
    """Write a project's files, `a_sql` as `transformations/a.sql`; return its spec."""
    spec = folder / "spark-pipeline.yml"
    there = folder / "transformations"
    there.mkdir(parents=True, exist_ok=True)
    spec.write_text(SPEC.format(storage=folder / "lake", warehouse=folder / "warehouse"))
    for name, text in files.items():
        stem, _, suffix = name.rpartition("_")
        (there / f"{stem}.{suffix}").write_text(textwrap.dedent(text))
    return spec


def read_here(spec: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return what a project declares, read in this process."""
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    try:
        return read(spec)
    finally:
        SparkSession._default_session = None
        SparkSession._active_session.session = None


def sluice(*arguments: object) -> Result:
    """Run the command."""
    return CliRunner().invoke(main, [*map(str, arguments)])


def rows_of(spec: Path, table: str) -> list[dict[str, Any]]:
    """Return a table's rows, as the command shows them."""
    found = sluice("read", table, "--spec", spec, "--format", "json")
    assert found.exit_code == 0, found.output
    return [json.loads(line) for line in found.stdout.splitlines()]


def land(folder: Path, name: str, *rows: dict[str, Any]) -> None:
    """Write rows as a file of JSON lines."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows))
