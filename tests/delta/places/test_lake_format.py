"""A lake's format: earlier ones are opened, and nothing touches a newer one."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.trips import Here
from tests.delta.lakes import make

from sluice.delta.places import lake_layout
from sluice.delta.places.lake_layout import FORMAT
from sluice.errors import ExitCode
from sluice.operate.doctor import UNTESTED

LAKES = Path(make.__file__).parent
FORMATS = sorted(int(folder.name) for folder in LAKES.iterdir() if folder.name.isdecimal())
COMMANDS = (
    ("run", "trips"),
    ("run", "trips", "--start", "2024-01-01", "--end", "2024-01-03"),
    ("ingest", "sales", "--start", "2024-01-01", "--end", "2024-01-02"),
    ("get", "sales", "1"),
    ("read", "best"),
    ("changes", "best"),
    ("forget", "sales", "--key", "1"),
    ("maintain",),
    ("rebuild", "towns"),
    ("drop", "best"),
    ("rename", "best", "better"),
    ("env", "create", "trial"),
    ("verify",),
    ("status",),
    ("doctor",),
)


@pytest.fixture
def lake(tmp_path: Path) -> Callable[[int], Here]:
    """A copy of the kept lake of a format, with its project."""

    def copy(number: int) -> Here:
        project = make.begin(tmp_path)
        shutil.copytree(LAKES / str(number) / "lake", tmp_path / "lake")
        return project

    return copy


def note(project: Here) -> Path:
    return project.folder / "lake" / "__format.json"


def found(project: Here) -> dict[Path, tuple[bytes, int]]:
    files = (f for f in (project.folder / "lake").rglob("*") if f.is_file())
    return {f: (f.read_bytes(), f.stat().st_mtime_ns) for f in files}


def ranked(project: Here) -> list[tuple[str, int]]:
    rows = project.complete("read", "best", "--json").records
    return [(row["town"], row["sum"]) for row in sorted(rows, key=lambda row: row["rank"])]


def test_each_format_has_a_kept_lake() -> None:
    assert list(range(1, FORMAT + 1)) == FORMATS


@pytest.mark.parametrize("number", FORMATS)
@pytest.mark.parametrize("is_noted", [True, False])
def test_a_lake_of_this_or_an_earlier_format_is_read_and_goes_on(
    lake: Callable[[int], Here], number: int, is_noted: bool
) -> None:
    project = lake(number)
    if not is_noted:
        note(project).unlink()
    assert ranked(project) == [("Bern", 12), ("Rome", 5)]
    findings = project.complete("doctor", "--json").records
    assert [found for found in findings if found["name"] != UNTESTED] == []
    project.land("sales", 3, make.THIRD)
    project.complete("run", "trips", "--start", "2024-01-03", "--end", "2024-01-04")
    assert ranked(project) == [("Graz", 21), ("Bern", 12)]
    project.complete("forget", "sales", "--key", "1")
    project.complete("verify")


def test_a_new_lake_says_its_format(tmp_path: Path) -> None:
    project = make.begin(tmp_path)
    project.complete("run", "trips", "--start", "2024-01-01", "--end", "2024-01-02")
    assert json.loads(note(project).read_text("utf-8")) == {"format": FORMAT}


def test_no_command_touches_a_lake_of_a_newer_format(lake: Callable[[int], Here]) -> None:
    project = lake(FORMAT)
    note(project).write_text(json.dumps({"format": FORMAT + 1}), "utf-8")
    before = found(project)
    for command in COMMANDS:
        ended = project.sluice(*command)
        assert ended.code == ExitCode.CONFIGURATION, command
        assert f"/lake has format {FORMAT + 1}; this release of Sluice reads formats up to" in (
            ended.err
        )
        assert "hint: install the release that wrote it, or a newer one" in ended.err
    assert found(project) == before


@pytest.mark.parametrize("inside", ["__env/trial", "__preview/x", "__rebuild/trips.sales"])
def test_an_environment_has_the_format_of_its_lake(tmp_path: Path, inside: str) -> None:
    (tmp_path / "__format.json").write_text('{"format": 99}', "utf-8")
    with pytest.raises(lake_layout.NewerLake, match=f"the lake {tmp_path} has format 99"):
        lake_layout.check_format(f"{tmp_path}/{inside}")


@pytest.mark.parametrize("content", ["{", "[]", '{"format": "x"}', ""])
def test_a_damaged_note_is_named_and_nothing_is_written(
    lake: Callable[[int], Here], content: str
) -> None:
    project = lake(FORMAT)
    note(project).write_text(content, "utf-8")
    before = found(project)
    ended = project.sluice("run", "trips")
    assert ended.code == ExitCode.CONFIGURATION
    assert "/lake/__format.json does not say the lake's format" in ended.err
    assert 'hint: write {"format": 1} there' in ended.err
    assert found(project) == before


def test_a_process_that_stays_notices_a_newer_format(
    lake: Callable[[int], Here], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lake_layout, "ASKED_AGAIN", 0.0)
    project = lake(FORMAT)
    root = str(project.folder / "lake")
    lake_layout.check_format(root)
    note(project).write_text(json.dumps({"format": FORMAT + 1}), "utf-8")
    with pytest.raises(lake_layout.NewerLake):
        lake_layout.check_format(root)
