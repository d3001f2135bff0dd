"""A loaded project is kept for the next process, as long as nothing that it came from changes."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from sluice.declare import project as projects
from sluice.declare import project_cache
from sluice.declare.project import Project, load
from sluice.errors import ConfigError, UsageError

ROOT = Path(__file__).parents[2]
SHOP = """
pipeline: shop
description: "${ABOUT:-sales}"
schedule: "@daily"
start_date: 2024-01-01
sources:
  sales:
    path: "${SALES:-sales}/{interval_start:%Y-%m-%d}/"
    key: [id]
    schema: "id INT, shop STRING, paid INT"
dimensions:
  things:
    format: jdbc
    schema: "id INT"
    key: [id]
    options: {url: "jdbc:postgresql://db/shop", dbtable: t, user: "${USER_OF_DB:-me}"}
views:
"""
VIEW = '  v{0}: {{kind: sql, sql: "select shop, sum(paid) as paid from sales group by shop"}}\n'
Environ = dict[str, str]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A project of ten tables."""
    folder = tmp_path / "config"
    (folder / "pipelines").mkdir(parents=True)
    views = "".join(map(VIEW.format, range(7))) + "  last: {kind: sql, sql: {file: last.sql}}\n"
    (folder / "pipelines/shop.yaml").write_text(SHOP + views)
    (folder / "pipelines/last.sql").write_text("select id, paid from sales where paid > 1")
    (folder / "sluice.yaml").write_text('lake: "${LAKE:-lake}"\n')
    return folder


@pytest.fixture
def environ(tmp_path: Path) -> Environ:
    return {"SLUICE_CACHE": str(tmp_path / "cache")}


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Folders whose files were read, one for each time."""
    folders: list[Path] = []
    find = projects.find_files

    def found(folder: Path) -> list[Path]:
        folders.append(folder)
        return find(folder)

    monkeypatch.setattr(projects, "find_files", found)
    return folders


def kept(environ: Environ) -> list[Path]:
    return sorted(Path(environ["SLUICE_CACHE"], "projects").glob("*"))


def test_the_second_process_finds_the_same_project(
    config: Path, environ: Environ, read: list[Path]
) -> None:
    first, second = load(config, environ=environ), load(config, environ=environ)
    assert (len(read), first) == (1, second)
    (file,) = kept(environ)
    assert file.stat().st_mode & 0o777 == 0o600


def test_the_retail_project_is_the_same(environ: Environ, read: list[Path]) -> None:
    first = load(ROOT / "config", environ=environ)
    second = load(ROOT / "config", environ=environ)
    assert len(read) == 1
    assert first == second
    assert [t.columns for t in first.graph.tables.values()] == [
        t.columns for t in second.graph.tables.values()
    ]


def edited(config: Path, name: str, old: str, new: str) -> None:
    file = config / name
    file.write_text(file.read_text().replace(old, new))


def a_query(config: Path, environ: Environ) -> None:
    edited(config, "pipelines/last.sql", "paid > 1", "paid > 2")


def a_setting(config: Path, environ: Environ) -> None:
    edited(config, "sluice.yaml", "-lake", "-pond")


def a_file_more(config: Path, environ: Environ) -> None:
    text = (config / "pipelines/shop.yaml").read_text()
    (config / "pipelines/other.yaml").write_text(text.replace("pipeline: shop", "pipeline: other"))


def a_variable(config: Path, environ: Environ) -> None:
    environ["LAKE"] = "pond"


def as_old_as_before(config: Path, environ: Environ) -> None:
    file = config / "sluice.yaml"
    then = file.stat()
    edited(config, "sluice.yaml", "-lake", "-pond")
    os.utime(file, ns=(then.st_atime_ns, then.st_mtime_ns))


def behind_a_link(config: Path, environ: Environ) -> None:
    edited(config, "pipelines/linked/last.sql", "paid > 1", "paid > 2")


def hidden(config: Path, environ: Environ) -> None:
    edited(config, "pipelines/.hidden.sql", "id", "id, shop")


CHANGES = [a_query, a_setting, a_file_more, a_variable, as_old_as_before, behind_a_link, hidden]


@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_is_seen(
    config: Path, environ: Environ, change: Callable[[Path, Environ], None]
) -> None:
    (config.parent / "others").mkdir()
    (config.parent / "others/last.sql").write_text("select id, paid from sales where paid > 1")
    (config / "pipelines/linked").symlink_to(config.parent / "others")
    (config / "pipelines/.hidden.sql").write_text("select id from sales")
    with (config / "pipelines/shop.yaml").open("a") as file:
        file.write("  far: {kind: sql, sql: {file: linked/last.sql}}\n")
        file.write("  unseen: {kind: sql, sql: {file: .hidden.sql}}\n")
    before = load(config, environ=environ)
    change(config, environ)
    after = load(config, environ=environ)
    assert after != before
    assert after == load(config, environ={**environ, "SLUICE_CACHE": "/dev/null/nowhere"})
    assert after == load(config, environ=environ)


def test_a_link_that_leads_to_another_release_is_followed(config: Path, environ: Environ) -> None:
    shutil.copytree(config, config.parent / "other/config")
    link = config.parent / "current"
    for release in (config.parent, config.parent / "other"):
        link.unlink(missing_ok=True)
        link.symlink_to(release)
        assert load(link / "config", environ=environ).root == release


def test_links_to_nowhere_and_in_circles_do_no_harm(
    config: Path, environ: Environ, read: list[Path]
) -> None:
    (config / "itself").symlink_to("itself")
    (config / "nowhere").symlink_to("sluice.yaml/nowhere")
    (config / "round").symlink_to(".")
    assert load(config, environ=environ) == load(config, environ=environ)
    assert len(read) == 1


def test_a_variable_that_is_no_text_is_taken(config: Path, environ: Environ) -> None:
    lake = "lake-\udce9"
    assert load(config, environ={**environ, "LAKE": lake}).lake.endswith(lake)


def test_a_variable_that_is_no_longer_set_has_its_default_again(
    config: Path, environ: Environ
) -> None:
    before = load(config, environ=environ)
    assert load(config, environ={**environ, "LAKE": "pond"}).lake.endswith("pond")
    assert load(config, environ=environ) == before


def test_a_new_mistake_is_reported(config: Path, environ: Environ) -> None:
    load(config, environ=environ)
    edited(config, "pipelines/last.sql", "paid > 1", "payd > 1")
    for _ in range(2):
        with pytest.raises(ConfigError, match="payd"):
            load(config, environ=environ)


def test_the_environment_of_the_lake_is_chosen_each_time(config: Path, environ: Environ) -> None:
    load(config, environ=environ)
    with pytest.raises(UsageError, match="no environment 'dev'"):
        load(config, environ={**environ, "SLUICE_ENV": "dev"})
    note = config.parent / "lake/__env/dev/environment.json"
    note.parent.mkdir(parents=True)
    note.write_text("{}")
    assert load(config, environ={**environ, "SLUICE_ENV": "dev"}).environment == "dev"
    assert load(config, environ=environ).environment == ""


@pytest.mark.parametrize(
    "variables",
    [
        {"USER_OF_DB": "hunter2"},
        {"LAKE": "s3://me:hun/ter2@store/lake"},
        {"LAKE": "s3://hunter2@store/lake"},
        {"SALES": "https://store/sales?sig=hunter2"},
        {"ABOUT": "hunter2"},
    ],
)
def test_what_may_be_a_secret_is_not_kept(
    config: Path, environ: Environ, variables: Environ, read: list[Path]
) -> None:
    for _ in range(2):
        load(config, environ=environ | variables)
    assert (len(read), kept(environ)) == (2, [])


def test_a_path_from_the_environment_is_kept(
    config: Path, environ: Environ, read: list[Path]
) -> None:
    for _ in range(2):
        load(config, environ=environ | {"SALES": "elsewhere"})
    assert len(read) == 1


def test_a_small_project_is_not_kept(config: Path, environ: Environ) -> None:
    edited(config, "pipelines/shop.yaml", "".join(map(VIEW.format, range(7))), "")
    load(config, environ=environ)
    assert kept(environ) == []


def by_others(file: Path) -> None:
    file.chmod(0o666)


def broken(file: Path) -> None:
    head = file.read_bytes().split(b"\n", 1)[0]
    file.write_bytes(head + b"\nno pickle")


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def empty(file: Path) -> None:
    file.write_bytes(b"")


def no_head(file: Path) -> None:
    file.write_bytes(b"[1]\n")


def deep(file: Path) -> None:
    file.write_bytes(b"[" * 100_000)


def a_link(file: Path) -> None:
    file.rename(file.with_suffix(".other"))
    file.symlink_to(file.with_suffix(".other"))


@pytest.mark.parametrize("spoil", [by_others, broken, cut, empty, no_head, deep, a_link])
def test_a_file_that_can_not_be_trusted_is_not_taken(
    config: Path, environ: Environ, read: list[Path], spoil: Callable[[Path], None]
) -> None:
    first = load(config, environ=environ)
    spoil(*kept(environ))
    assert load(config, environ=environ) == first
    assert len(read) == 2


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file to another user")
def test_another_users_file_is_not_taken(config: Path, environ: Environ, read: list[Path]) -> None:
    load(config, environ=environ)
    os.chown(*kept(environ), 12345, 12345)
    load(config, environ=environ)
    assert len(read) == 2


def test_a_project_with_modules_is_not_kept(config: Path, environ: Environ) -> None:
    edited(config, "sluice.yaml", "lake:", "modules: [shop.own]\nlake:")
    load(config, environ=environ)
    assert kept(environ) == []


def test_kinds_from_elsewhere_are_loaded_each_time(
    config: Path, environ: Environ, read: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    load(config, environ=environ)
    monkeypatch.setattr(project_cache, "has_added", lambda: True)
    load(config, environ=environ)
    assert len(read) == 2


def test_only_the_newest_projects_stay(
    config: Path, environ: Environ, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(project_cache, "MOST_KEPT", 2)
    for name in "abc":
        shutil.copytree(config, tmp_path / name / "config")
        load(tmp_path / name / "config", environ=environ)
        assert len(kept(environ)) <= 2
    found: Project = load(tmp_path / "c/config", environ=environ)
    assert found.root == tmp_path / "c"
