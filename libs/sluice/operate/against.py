"""Comparison of a project with another configuration: what a change of definitions would do.

It compares meanings, so formatting and names of files don't count. It reads the lake only to see
which tables can be extended, and changes nothing.
"""

import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from sluice.declare.environment_folders import of_base
from sluice.declare.meaning import Meaning, differences, fingerprint
from sluice.declare.project import Project, load, specs_in
from sluice.declare.spark_specs import is_spec
from sluice.declare.table import Table
from sluice.delta.log.continuity import meanings
from sluice.delta.log.position import REBUILD, head_as_found
from sluice.delta.places.lake_layout import layout
from sluice.engine.plan import nodes_of
from sluice.errors import ConfigError, MissingDependency, UsageError


@contextmanager
def other_project(config: str, against: str) -> Iterator[Project]:
    """Yield the project that a folder declares, or that `config` declared as of a revision.

    Its lake is that of the settings, in no environment. A folder or spec of that name goes before
    a revision. Raises UsageError if there is neither, and
    ConfigError with the mistakes of the other configuration.
    """
    if Path(against).is_dir() or is_spec(Path(against)):
        yield load(against, environ=of_base())
        return
    with TemporaryDirectory(prefix="sluice-plan-") as folder:
        try:
            there = _extract(Path(config).resolve(), against, Path(folder))
            yield load(there, environ=of_base())
        except ConfigError as error:
            named = [mistake.replace(f"{folder}/", f"{against}:") for mistake in error.mistakes]
            raise ConfigError(named, hint=error.hint) from None


def _extract(config: Path, revision: str, folder: Path) -> Path:
    """Write the files of `config` as of a revision below a folder; return where they lie.

    Specs of spark-pipelines projects that it names come with their folders.
    """
    there = _extract_folder(config if config.is_dir() else config.parent, revision, folder)
    if config.is_file():
        _link_data(config.parent, there)
        return there / config.name
    for spec in specs_in(there):
        place = (config / spec).resolve().parent
        if not (there / spec).parent.exists():
            _link_data(place, _extract_folder(place, revision, folder))
    return there


def _link_data(project: Path, there: Path) -> None:
    """Link what a project's folder has besides the files of the revision, such as its tables."""
    for entry in project.iterdir():
        if not (there / entry.name).exists():
            (there / entry.name).symlink_to(entry)


def _extract_folder(config: Path, revision: str, folder: Path) -> Path:
    root = _git(config, "rev-parse", "--show-toplevel")
    if root is None:
        raise UsageError(
            f"{revision!r} is not a folder, and {config} is not in a git repository",
            hint="give --against a folder of configuration",
        )
    found = _git(config, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
    if found is None:
        raise UsageError(
            f"{revision!r} is neither a folder nor a revision of {_text(root)}",
            hint="name a branch, a tag or a commit; a branch of a remote may have to be fetched",
        )
    inside = config.relative_to(_text(root))
    files = _git(Path(_text(root)), "archive", "--format=tar", _text(found), "--", str(inside))
    if files is None:
        raise UsageError(f"{inside} is not in {revision!r}", hint="give --against a folder instead")
    with tarfile.open(fileobj=BytesIO(files)) as archive:
        archive.extractall(folder, filter="data")
    return folder / inside


def _git(folder: Path, *arguments: str) -> bytes | None:
    try:
        command = ["git", "-C", str(folder), *arguments]
        done = subprocess.run(command, capture_output=True, check=False)
    except FileNotFoundError:
        raise MissingDependency(
            "git, which finds the revision of --against, is not installed",
            hint="install git, or give --against a folder of configuration",
        ) from None
    return done.stdout if done.returncode == 0 else None


def _text(line: bytes) -> str:
    return line.decode().rstrip("\n")


NEW, GONE, EXTEND, UNTOUCHED = "new", "gone", "extend", "untouched"


@dataclass(frozen=True)
class Compared:
    """Outlook of one stored table: `next` is new, gone, rebuild, extend or untouched."""

    table: str
    next: str
    reason: str = ""


def compare(project: Project, other: Project) -> list[Compared]:
    """Return what would happen to each stored table of `other` if it became `project`.

    Inputs come first, and at the end the tables that only `other` declares.
    """
    tables = project.graph.tables.values()
    before = {n: m for t in other.graph.tables.values() for n, m in meanings(t).items()}
    moved, found = set[str](), list[Compared]()
    for table in tables:
        mine = list(_parts(project, table, before, moved))
        found += mine
        moved |= {table.id} if any(part.next != UNTOUCHED for part in mine) else set()
    left = before.keys() - {part.table for part in found}
    gone = (Compared(n, GONE, "no declaration names it any more") for n in before if n in left)
    return [*found, *gone]


def differing(project: Project, compared: list[Compared]) -> list[Table]:
    """Return the declared tables that are new or differ, inputs first."""
    names = {part.table for part in compared if part.next not in (UNTOUCHED, GONE)}
    return [t for t in project.graph.tables.values() if names & meanings(t).keys()]


def _parts(
    project: Project, table: Table, before: Mapping[str, Meaning], moved: set[str]
) -> Iterator[Compared]:
    """Yield the outlook of a table and of the internal ones behind it, in order."""
    above = [t.id for t in project.graph.ancestors(table.id) if t.id in moved]
    follows = f"follows {', '.join(above)}" if above else ""
    for name, now in meanings(table).items():
        was = before.get(name)
        if was is None:
            yield Compared(name, NEW)
        elif fingerprint(dict(was)) == fingerprint(dict(now)):
            yield Compared(name, UNTOUCHED, follows)
        else:
            yield Compared(name, _way(project, table, name, was), differences(was, now))


def _way(project: Project, table: Table, name: str, was: Meaning) -> str:
    """Return extend if the lake has the table by the other definition, and it can be extended."""
    lake = layout(project)
    at = head_as_found(lake.uri(name))
    if at is None or not at.position or at.position.definition != fingerprint(dict(was)):
        return REBUILD
    nodes = (node for node in nodes_of(table, project.graph) if node.id == name)
    return EXTEND if any(node.batch.extension(node, lake) for node in nodes) else REBUILD
