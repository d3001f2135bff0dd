"""An environment has the tables of a full copy, leaves the lake as it is, and can be promoted."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from ctypes import CDLL
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from tests.cli.previewed import PIPELINE, World, digest, done
from tests.cli.trips import Ended, Here, Project
from tests.support.ageing import age
from tests.support.lake import stored_rows

from sluice.declare.environment_folders import of_base
from sluice.declare.project import Project as Declared
from sluice.declare.project import load
from sluice.declare.table import Table
from sluice.delta.log.opened import exists
from sluice.delta.log.position import head
from sluice.delta.places.lake_layout import layout
from sluice.delta.places.overlay import read_environment
from sluice.engine.plan import nodes_of
from sluice.terminal.output import to_json

NEW = "  early: {kind: select, from: flights, where: delay < 8, select: {flight: flight}}\n"
CHANGED = PIPELINE.replace("delay > 5", "delay > 3").replace("limit: 2", "limit: 3") + NEW
WIDER = CHANGED.replace("s: sum(delay)", "least: min(delay)")
BESIDE = ("__env", "__preview")
Rows = dict[tuple[Any, ...], str]


def base(project: Project) -> dict[str, str]:
    """Every file of the lake itself, by its content."""
    return {f: text for f, text in digest(project).items() if not f.startswith(BESIDE)}  # type: ignore[arg-type]


def rows(project: Project, name: str = "") -> dict[str, Rows]:
    """The stored rows of every table, by key; of the environment `name`, if it is given."""
    declared = load(project.folder / "config", environ=of_base())
    chosen = declared.within(name) if name else declared
    tables = [t for t in chosen.graph.tables.values() if exists(layout(chosen).uri(t.id))]
    return {table.name: _keyed(chosen, table) for table in tables}


def _keyed(project: Declared, table: Table) -> Rows:
    nodes = {node.id: node.ignored for node in nodes_of(table, project.graph)}
    stored = stored_rows(DeltaTable(layout(project).uri(table.id)))
    shown = [{c: v for c, v in r.items() if c not in nodes.get(table.id, ())} for r in stored]
    found = {tuple(repr(row[c]) for c in table.key): to_json(row) for row in shown}
    assert len(found) == len(stored)
    return found


def difference(old: Rows, new: Rows) -> tuple[int, int, int]:
    changed = sum(old[key] != new[key] for key in old.keys() & new.keys())
    return len(new.keys() - old.keys()), changed, len(old.keys() - new.keys())


def standings(ended: Ended) -> dict[str, dict[str, Any]]:
    assert ended.code == 0, ended.err
    return {record["table"].removeprefix("trips."): record for record in ended.records}


def counts(found: Mapping[str, Any]) -> tuple[int, int, int]:
    return found["inserted"], found["updated"], found["deleted"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project after one run, and other files since."""
    project = Here(tmp_path_factory.mktemp("landed"))
    project.declare(PIPELINE)
    world = World(project, random.Random(7))
    for _ in range(4):
        world.land()
    project.complete("run", "trips")
    for _ in range(3):
        world.land()
    return project.folder


def test_environments_have_the_tables_of_a_full_copy(tmp_path: Path, remote: str) -> None:
    chance = random.Random(0)
    project = Here(tmp_path / "trips")
    project.declare(PIPELINE)
    world = World(project, chance)
    for _ in range(chance.randint(2, 4)):
        world.land()
    project.complete("run", "trips")
    here, copy = (Project(folder, remote) for folder in (project.folder, tmp_path / "copy"))
    shutil.copytree(project.folder, copy.folder)
    was, files = rows(project), base(project)
    project.complete("env", "create", "dev")
    for text in (CHANGED, WIDER):
        for one in (project, copy):
            one.declare(text)
        world.land()
        shutil.copytree(project.folder / "landing", copy.folder / "landing", dirs_exist_ok=True)
        here.complete("--env", "dev", "run", "trips", "--changed")
        copy.complete("rebuild", "--changed")
        copy.complete("run", "trips", "--changed")
        assert rows(project, "dev") == rows(copy)
    assert base(project) == files
    now = rows(project, "dev")
    found = standings(project.sluice("env", "diff", "dev", "--json", "--sample", "1000"))
    for name, standing in found.items():
        expected = difference(was.get(name, {}), now[name])
        ways = {"untouched": (None, None, None), "new": (len(now[name]), 0, 0)}
        assert counts(standing) == ways.get(standing["outcome"], expected), name
        assert (standing["outcome"] == "equal") == (expected == (0, 0, 0) != counts(standing))
        if standing["outcome"] == "differs":
            assert len(standing["samples"]) == sum(expected)


def test_what_is_promoted_are_the_differences_alone_and_then_both_are_equal(project: Here) -> None:
    project.complete("env", "create", "dev")
    project.declare(CHANGED)
    refused = project.sluice("env", "promote", "dev")
    assert refused.code == 2
    assert "'dev' has trips.late, trips.worst by a definition that differs from" in refused.err
    assert standings(project.sluice("env", "diff", "dev", "--json"))["late"]["reason"] == (
        "where delay > 5 -> delay > 3"
    )
    project.complete("--env", "dev", "rebuild", "--changed")
    found = standings(project.sluice("env", "diff", "dev", "--json"))
    touched = {n for n, s in found.items() if s["outcome"] not in ("untouched", "equal")}
    assert touched == {"late", "worst", "pairs", "early"}
    before = base(project)
    foreseen = project.sluice("env", "promote", "dev", "--preview", "--json")
    assert (foreseen.code, base(project)) == (0, before)
    ended = project.complete("env", "promote", "dev", "--json")
    batches = [r for r in ended.records if "kind" in r]
    agreed = {r["table"]: r["outcome"] for r in ended.records if "kind" not in r}
    assert agreed == {f"trips.{name}": "equal" for name in touched}
    assert {batch["engine"] for batch in batches} == {"process"}
    assert {batch["strategy"] for batch in batches} == {"take over"}
    committed = done(Ended(0, "".join(f"{json.dumps(r)}\n" for r in batches), ""))
    assert {name.removeprefix("trips."): way[1:4] for name, way in committed.items()} == {
        name: counts(found[name]) for name in touched
    }
    assert rows(project) == rows(project, "dev")
    assert project.sluice("verify").code == 0
    assert "nothing to promote" in project.sluice("env", "promote", "dev").out


def test_a_lake_that_moved_on_keeps_its_deliveries_and_is_said_to_have_moved(project: Here) -> None:
    project.complete("env", "create", "dev")
    project.complete("run", "trips", "--changed")
    project.declare(CHANGED)
    project.complete("--env", "dev", "rebuild", "--changed")
    found = standings(project.sluice("env", "diff", "dev", "--json"))
    assert (found["flights"]["outcome"], found["flights"]["moved_on"] > 0) == ("untouched", True)
    ended = project.complete("env", "promote", "dev", "--json")
    agreed = {r["table"]: r for r in ended.records if "kind" not in r}
    assert "take over" not in {r["strategy"] for r in ended.records if "kind" in r}
    assert agreed["trips.late"]["outcome"] == "moved on"
    assert "other rows are in the lake's " in agreed["trips.late"]["reason"]
    verified = project.sluice("verify", "late", "worst", "pairs", "early")
    assert verified.code == 0, verified.out


@pytest.mark.usefixtures("long")
def test_environments_survive_a_vacuum_of_the_lake(project: Here) -> None:
    project.complete("env", "create", "dev")
    project.complete("env", "create", "brief", "--expires", "1 second")
    was, lake = rows(project, "dev"), project.folder / "lake"
    began = read_environment(str(lake / "__env" / "dev"))
    assert began is not None
    files = {*(lake / "trips" / "named").rglob("*.parquet")}
    for seed in range(2):
        project.complete("run", "trips", "--changed")
        World(project, random.Random(seed)).land()
    for name in filter(began.tables.get, load(project.folder / "config").graph.tables):
        uri = str(lake / name.replace(".", "/"))
        for version in range(began.tables[name].version + 1, DeltaTable(uri).version() + 1):
            age(uri, version, 30)
    for file in (lake / "trips").rglob("*.parquet"):
        os.utime(file, (0, 0))
    done = project.sluice("maintain", "--json")
    assert "__env/brief" in {record["table"] for record in done.records}
    assert any(not file.exists() for file in files)
    assert rows(project, "dev") == was
    listed = project.sluice("env", "list", "--json").records
    assert [(one["environment"], one["own"]) for one in listed] == [("dev", 0)]
    shutil.rmtree(lake / "trips")
    assert rows(project, "dev") == was
    project.complete("--env", "dev", "run", "trips", "--changed")


def test_several_environments_are_apart_and_are_chosen_by_a_variable_too(
    project: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("dev", "ann"):
        project.complete("env", "create", name)
    files = base(project)
    monkeypatch.setenv("SLUICE_ENV", "ann")
    project.complete("run", "trips", "--changed")
    listed = project.sluice("env", "list", "--json").records
    assert {one["environment"]: one["own"] > 0 for one in listed} == {"ann": True, "dev": False}
    monkeypatch.delenv("SLUICE_ENV")
    assert base(project) == files
    assert rows(project) == rows(project, "dev") != rows(project, "ann")
    project.complete("env", "keep", "dev", "--expires", "400 days")
    people = project.sluice("env", "list").out
    assert people.index("ann") < people.index("dev")
    project.complete("env", "drop", "ann")
    assert base(project) == files
    assert [r["environment"] for r in project.sluice("env", "list", "--json").records] == ["dev"]


@pytest.mark.usefixtures("long")
def test_who_may_not_write_the_lake_works_in_an_environment(project: Here) -> None:
    """The lake's folders and files are read-only; only environments and scratch are writable."""
    free = [project.folder / "lake" / name for name in BESIDE]
    for folder in free:
        folder.mkdir(exist_ok=True)
    for path in (project.folder, *project.folder.rglob("*")):
        path.chmod(0o755 if path in free else 0o555 if path.is_dir() else 0o444)
    files = base(project)
    refused = as_owner_only(project, "run", "trips", "--changed")
    assert "Permission denied" in refused.stderr
    for arguments in (
        ("env", "create", "dev"),
        ("--env", "dev", "run", "trips", "--changed"),
        ("--env", "dev", "maintain"),
        ("env", "diff", "dev"),
    ):
        done = as_owner_only(project, *arguments)
        assert done.returncode == 0, done.stderr
    assert base(project) == files
    assert rows(project) != rows(project, "dev")


def as_owner_only(project: Here, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command by a user who may do what the files allow their owner, even if that is root."""
    command = [sys.executable, "-m", "sluice.cli.main", *arguments]
    return subprocess.run(
        [*command, "--config", str(project.folder / "config")],
        preexec_fn=lambda: [CDLL(None).prctl(24, right, 0, 0, 0) for right in (1, 2)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_is_killed_leaves_no_half_environment_and_goes_on(project: Here) -> None:
    lake, files = project.folder / "lake", base(project)
    assert project.killed("sharing:dev", "env", "create", "dev") == -9
    assert project.sluice("env", "list", "--json").out == ""
    project.complete("env", "create", "dev")
    assert not list((lake / "__preview").iterdir())
    assert project.killed("dropping:dev", "env", "drop", "dev") == -9
    assert project.sluice("env", "list", "--json").out == ""
    project.complete("env", "create", "dev")
    project.complete("maintain", "carriers")
    assert not list((lake / "__preview").iterdir())
    assert base(project) == files
    project.declare(CHANGED)
    project.complete("--env", "dev", "rebuild", "--changed")
    assert project.killed("committed:late", "env", "promote", "dev") == -9
    assert rows(project)["late"] == rows(project, "dev")["late"]
    ended = project.sluice("env", "promote", "dev", "--json")
    agreed = {r["table"]: r["outcome"] for r in ended.records if "kind" not in r}
    assert (ended.code, {*agreed.values()}) == (0, {"equal"})
    assert rows(project) == rows(project, "dev")


@pytest.mark.usefixtures("long")
def test_runs_overtaken_by_a_promotion_commit_nothing(project: Here) -> None:
    earlier = project.folder / "earlier"
    shutil.copytree(project.folder / "config", earlier / "config")
    settings = earlier / "config" / "sluice.yaml"
    settings.write_text(settings.read_text().replace("lake: lake", "lake: ../lake"))
    (earlier / "landing").symlink_to(project.folder / "landing")
    project.complete("env", "create", "dev")
    project.declare(CHANGED)
    project.complete("--env", "dev", "rebuild", "--changed")
    command = [sys.executable, "-m", "sluice.cli.main", "run", "trips", "--changed"]
    run = subprocess.Popen(
        [*command, "--config", str(earlier / "config")],
        env={**os.environ, "SLUICE_FAILPOINT": "pinned:late!STOP"},
        stderr=subprocess.PIPE,
        text=True,
    )
    os.waitpid(run.pid, os.WUNTRACED)
    try:
        promoted = project.sluice("env", "promote", "dev", "--json")
    finally:
        os.kill(run.pid, signal.SIGCONT)
    said = run.communicate()[1]
    assert promoted.code == 0, promoted.err
    assert run.returncode == 2, said
    assert "trips.late was built by a definition that differs from" in said
    late = load(project.folder / "config", environ=of_base()).graph.table("late")
    at = head(layout(load(project.folder / "config", environ=of_base())).uri(late.id))
    assert at is not None
    assert at.position is not None
    assert at.position.meaning["declared"]["where"] == "delay > 3"
    assert project.sluice("verify", "late", "worst").code == 0


def test_people_see_counts_and_rows_and_a_page_has_them_too(project: Here) -> None:
    made = project.sluice("env", "create", "dev")
    assert "environment dev: " in made.out
    project.complete("--env", "dev", "run", "trips", "--changed")
    page = project.folder / "dev.html"
    told = project.complete("env", "diff", "dev", "flights", "late", "--html", str(page))
    assert "trips.flights" in told.out
    assert "│ + │" in told.out
    html = page.read_text()
    assert "Environment dev" in html
    assert "trips.late" in html
    assert "trips.worst" not in html


REFUSED = [
    (("--env", "deev", "status"), "has no environment 'deev'; did you mean 'dev'?"),
    (("--env", "../x", "status"), "has no environment '../x'"),
    (("env", "diff", "x"), "`sluice env create x` makes it; there are: dev"),
    (("env", "promote", "x"), "has no environment 'x'"),
    (("env", "drop", "x"), "has no environment 'x'"),
    (("env", "keep", "x", "--expires", "1 day"), "has no environment 'x'"),
    (("env", "create", "dev"), "there is an environment 'dev' already"),
    (("env", "create", "../x"), "environment '../x' is not a name"),
    (("env", "create", "y", "--expires", "soon"), "--expires: 'soon' is not a duration"),
]


def test_what_can_not_be_done_is_named(project: Here) -> None:
    project.complete("env", "create", "dev")
    files = digest(project)
    for arguments, said in REFUSED:
        ended = project.sluice(*arguments)
        assert (ended.code, said in ended.err) == (2, True), ended.err
    assert digest(project) == files
