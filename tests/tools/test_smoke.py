"""A broken environment is seen by the last step of `make setup`."""

from importlib.metadata import Distribution
from pathlib import Path

import smoke


def installed(folder: Path, *files: str) -> Distribution:
    info = folder / "thing-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n")
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))
    (folder / "thing.py").touch()
    return Distribution.at(info)


def test_what_is_here_is_whole() -> None:
    assert smoke.main() == 0


def test_a_file_that_went_is_named(tmp_path: Path) -> None:
    found = smoke.missing([installed(tmp_path, "thing.py", "thing/gone.so")])
    assert list(found) == ["thing: thing/gone.so is missing"]


def test_a_module_that_can_not_be_imported_is_named() -> None:
    (problem,) = smoke.unusable(["json", "no_such_module"])
    assert problem.startswith("no_such_module can't be imported: ModuleNotFoundError")
