"""Commands on a source that follows a table, from the declaration to the rows."""

import json
import subprocess
import sys
from ctypes import CDLL
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.sources.foreign.conftest import Following, Made

from sluice.cli.main import main
from sluice.errors import ExitCode
from sluice.pages import html
from sluice.report import Visit
from sluice.report.pages import table, tables

VISIT = Visit(
    *("/sluice", "", ""),
    reports=("index.html", "shop.sales.html"),
    now=datetime.now(UTC),
    sees=lambda _: True,
    has_run=lambda *_: True,
)
KEYED = "key: [id]"


def called(lake: Following, *arguments: str) -> tuple[int, str]:
    config = ("--config", str(lake.folder / "config"))
    done = CliRunner().invoke(main, [*arguments, *config])
    return done.exit_code, done.output


def test_plan_run_status_and_doctor_follow_a_table(following: Made) -> None:
    lake = following(extra=KEYED)
    lake.crm.create({"id": 1, "v": 1}, {"id": 2, "v": 2})
    assert "1 version to read" in called(lake, "plan")[1]
    assert called(lake, "run", "shop")[0] == 0
    assert "lag: shop.events is up to date" in called(lake, "status")[1]
    lake.crm.append({"id": 3, "v": 3})
    lake.crm.table.delete("id = 1")
    assert "lag: shop.events is behind, by 2 versions" in called(lake, "status")[1]
    assert [one.status.state for one in tables(lake.project, [lake.table("events")])] == ["behind"]
    page = html(table(VISIT, lake.project, lake.table("events")))
    assert ">2 versions unread<" in page
    assert "the Delta table crm" in page
    code, said = called(lake, "doctor")
    assert code == 0, said
    assert called(lake, "run", "shop")[0] == 0
    lake.check()
    assert [one.status.state for one in tables(lake.project, [lake.table("events")])] == [
        "up to date"
    ]
    code, said = called(lake, "cost", "--by", "table")
    assert (code, "events" in said) == (0, True), said


def test_doctor_compares_the_schema(following: Made) -> None:
    lake = following("id BIGINT, w BIGINT")
    lake.crm.create({"id": 1, "v": 1})
    code, said = called(lake, "doctor")
    assert code != 0
    assert "lacks the declared column(s) w" in said


def test_why_names_the_table_and_its_version(following: Made) -> None:
    lake = following(extra=KEYED)
    lake.crm.create({"id": 1, "v": 1}, {"id": 2, "v": 2})
    lake.take()
    lake.crm.table.update(updates={"v": "9"}, predicate="id = 2")
    lake.take()
    code, said = called(lake, "why", "events", "2")
    assert code == 0, said
    assert f"{lake.crm.path}, version 1" in said
    code, said = called(lake, "why", "events", "1")
    assert f"{lake.crm.path}, version 0" in said


def test_a_preview_reads_versions_and_leaves_them_to_the_next_run(following: Made) -> None:
    lake = following(extra=KEYED)
    lake.crm.create({"id": 1, "v": 1})
    lake.take()
    lake.crm.merge({"id": 1, "v": 2, "part": None}, {"id": 2, "v": 2, "part": None})
    before = lake.versions("events", "events__deliveries"), lake.place(), lake.crm.digest()
    code, said = called(lake, "run", "shop", "--preview")
    assert code == 0, said
    after = lake.versions("events", "events__deliveries"), lake.place(), lake.crm.digest()
    assert before == after
    assert called(lake, "run", "shop")[0] == 0
    lake.check()


def test_the_choice_after_lost_history_is_a_command(following: Made) -> None:
    lake = following(extra=KEYED)
    lake.crm.create({"id": 1, "v": 1})
    lake.take()
    lake.crm.write([{"id": 5, "v": 5}], "overwrite")
    lake.crm.table.vacuum(0, dry_run=False, enforce_retention_duration=False)
    code, said = called(lake, "ingest", "events")
    assert (code, "--from latest" in said) == (ExitCode.HISTORY, True), said
    assert "were deleted" in called(lake, "doctor")[1]
    code, said = called(lake, "rebuild", "events", "--from", "latest")
    assert (code, "the changes of versions 1 to" in said) == (0, True), said
    assert lake.values() == {(1, 1): 1}
    lake.rebuild(as_landed=True)
    lake.check()


def test_bounds_are_refused(following: Made) -> None:
    lake = following()
    lake.crm.create({"id": 1, "v": 1})
    bounds = ("--start", "2024-01-01", "--end", "2024-01-02")
    code, said = called(lake, "ingest", "events", *bounds)
    assert (code, "without bounds" in said) == (ExitCode.CONFIGURATION, True), said


def test_a_subject_is_forgotten_here_and_named_there(following: Made) -> None:
    lake = following(extra=KEYED)
    lake.crm.create({"id": 1, "v": 777001}, {"id": 2, "v": 2})
    lake.take()
    before = lake.crm.digest()
    code, said = called(lake, "forget", "events", "--key", "1")
    assert code == 0, said
    assert "the Delta table crm" in said
    assert lake.crm.digest() == before
    assert lake.values() == {(2, 2): 1}
    lake.crm.merge({"id": 1, "v": 777002, "part": None})
    lake.take()
    assert lake.values() == {(2, 2): 1}


def test_a_renamed_source_reads_on(following: Made) -> None:
    lake = following(extra=KEYED)
    lake.crm.create({"id": 1, "v": 1})
    lake.take()
    text = lake.declared_without("").replace("  events:", "  orders:")
    lake.declare(text)
    code, said = called(lake, "rename", "events", "orders")
    assert code == 0, said
    lake.crm.append({"id": 2, "v": 2})
    code, said = called(lake, "ingest", "orders")
    assert code == 0, said
    assert sorted(row["id"] for row in lake.rows("orders")) == [1, 2]


def as_plain_user(lake: Following, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command by a user who may do what the files allow, even if that is root."""
    command = [sys.executable, "-m", "sluice.cli.main", *arguments]
    return subprocess.run(
        [*command, "--config", str(lake.folder / "config")],
        preexec_fn=lambda: [CDLL(None).prctl(24, right, 0, 0, 0) for right in (1, 2)],
        capture_output=True,
        text=True,
        check=False,
    )


def _allow(lake: Following, folders: int, files: int) -> None:
    root = Path(lake.crm.path)
    for path in (*root.rglob("*"), root):
        path.chmod(folders if path.is_dir() else files)


@pytest.mark.usefixtures("long")
def test_a_table_that_may_only_be_read_is_followed(following: Made) -> None:
    lake = following(extra=KEYED)
    lake.crm.create({"id": 1, "v": 1}, feed=True)
    lake.take()
    lake.crm.table.update(updates={"v": "9"}, predicate="id = 1")
    lake.crm.append({"id": 2, "v": 2})
    _allow(lake, 0o555, 0o444)
    for command in (("plan",), ("run", "shop", "--preview"), ("run", "shop"), ("doctor",)):
        done = as_plain_user(lake, *command)
        assert done.returncode == 0, done.stderr
    lake.check()
    _allow(lake, 0o755, 0o644)


@pytest.mark.usefixtures("long")
def test_a_table_that_may_not_be_read_is_named(following: Made) -> None:
    lake = following(extra=KEYED)
    lake.crm.create({"id": 1, "v": 1})
    for hidden in ("crm/*.parquet", "crm/_delta_log/*.json", "crm/_delta_log", "crm"):
        _allow(lake, 0o755, 0o644)
        for path in lake.folder.glob(hidden):
            path.chmod(0)
        done = as_plain_user(lake, "ingest", "events")
        assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
        assert "no permission to read" in done.stderr or "can't be opened" in done.stderr
    _allow(lake, 0o755, 0o644)
    assert called(lake, "ingest", "events")[0] == 0
    assert json.loads(called(lake, "read", "events", "--json")[1])["id"] == 1
