"""A job imports Great Expectations only for an expectation that nothing else can answer."""

import os
import subprocess
import sys
from pathlib import Path

from tests.gate.conftest import SALES

JOB = """
import runpy, sys
from sluice.terminal import as_guest
try:
    with as_guest():
        runpy.run_path("jobs/ingest.py", run_name="__main__")
except SystemExit as ended:
    print("great_expectations" in sys.modules, file=sys.stderr)
    raise
"""
UNCHECKED = """\
dimensions:
  items: {path: landing/items/, format: json, schema: item STRING, key: [item]}
"""


def test_no_job_imports_it_for_what_is_compiled_or_not_expected(tmp_path: Path) -> None:
    config, landing = tmp_path / "config" / "pipelines", tmp_path / "landing"
    for folder in (config, landing / "2017-03-01", landing / "items"):
        folder.mkdir(parents=True)
    (config / "shop.yaml").write_text(SALES + UNCHECKED)
    (landing / "2017-03-01" / "a.json").write_text('{"id": 1, "item": "tea", "price": -3}\n')
    (landing / "items" / "a.json").write_text('{"item": "tea"}\n')
    names = ("sales", "items", "--config", str(config.parent))
    asked = (*names, "--start", "2017-03-01", "--end", "2017-03-02")
    done = subprocess.run(
        [sys.executable, "-c", JOB, *asked],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
    )
    assert done.stderr.splitlines()[-1] == "False"
    assert (tmp_path / "lake" / "shop" / "sales__quarantine").exists()
