"""What users' functions take along to Spark's workers."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark import cloudpickle

from sluice.engine.operator import import_object

RUN = "import pickle, sys; print(pickle.loads(sys.stdin.buffer.read())())"


def made(folder: Path, name: str, common: str) -> None:
    package = folder / name
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "common.py").write_text(common)
    text = f"from {name}.common import seven\n\ndef run():\n    return seven()\n"
    (package / "etl.py").write_text(text)


def elsewhere(pickled: bytes, path: str = "") -> str:
    """What a process says that has no package, or those of a folder."""
    environ = {"PYTHONPATH": path}
    command = [sys.executable, "-c", RUN]
    done = subprocess.run(command, input=pickled, capture_output=True, check=True, env=environ)
    return done.stdout.decode().strip()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    return tmp_path


def test_a_function_brings_what_it_uses_of_its_package(folder: Path) -> None:
    made(folder, "acme_plain", "def seven():\n    return 7\n")
    run = import_object("acme_plain.etl:run", "here")
    assert elsewhere(cloudpickle.dumps(run)) == "7"


def test_what_can_not_travel_is_taken_from_the_worker(folder: Path) -> None:
    lock = "from threading import Lock\nLOCK = Lock()\n\ndef seven():\n    with LOCK: return 7\n"
    made(folder, "acme_locked", lock)
    run = import_object("acme_locked.etl:run", "here")
    assert elsewhere(cloudpickle.dumps(run), str(folder)) == "7"


def test_a_single_module_travels_whole(folder: Path) -> None:
    (folder / "acme_single.py").write_text("def run():\n    return 7\n")
    assert elsewhere(cloudpickle.dumps(import_object("acme_single:run", "here"))) == "7"
