"""Pipelines that projects of Spark's declarative pipelines define, as files of declarations.

A process of its own imports the project's code (`sluice.spark_pipelines`), because that code may do
anything, and because loading a configuration imports no PySpark. What it declares is kept for the
next process while the project's files, and the environment variables that they read, stay the same.
"""

import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sluice.cache import cache_folder
from sluice.declare.building import DeclarationFile
from sluice.declare.document import BrokenDocument, Document, read_document
from sluice.declare.mistakes import Mistakes
from sluice.declare.project_cache import SOURCES, KeptResult, Noting, made_by, stamps
from sluice.declare.table_spec import SECTIONS

READER = "sluice.spark_pipelines"
BESIDE = "sluice.yml"  # a file beside the spec: schedule, expectations, settings for Airflow
HEADER = frozenset(
    {"description", "schedule", "start_date", "end_date", "catchup", "timezone", "airflow"}
)
LONGEST_S = 300
APART = (
    "and a spec's tables are not read from another spec: define both in one project, or the view "
    "that reads both in a pipeline in YAML"
)


@dataclass(frozen=True)
class SparkProject:
    """A spec's pipeline, its storage, and what is left out of it, with the reasons.

    A reason has the place, the text, and the table that is missing, if one is.
    `streams`: the tables that read another one as a stream, by what reads it for them.
    `datasets`: the tables that its files define; the others read for them.
    """

    file: DeclarationFile
    storage: str
    left_out: tuple[tuple[str, str, str], ...] = ()
    streams: Mapping[str, frozenset[str]] = field(default_factory=dict)
    datasets: frozenset[str] = frozenset()


def is_spec(path: Path) -> bool:
    """True if a configuration's path is a spec, not a folder."""
    return path.suffix in (".yml", ".yaml") and path.is_file()


def read_spec(path: Path, noting: Noting, mistakes: Mistakes) -> SparkProject | None:
    """Return the project of a spec; None, with its mistakes noted, if its files have any."""
    shown, folder = path.as_posix(), path.parent
    if path.name == "sluice.yaml":
        mistakes.add_at(shown, 1, f"this file is found by its folder: --config {folder}")
        return None
    if not path.is_file():
        mistakes.add_at(shown, 1, "there is no such spec of a spark-pipelines project")
        return None
    noting.note_folder(str(folder.resolve()))
    found = _read(path, noting)
    for file, line, problem in found["mistakes"]:
        mistakes.add_at((folder / file).as_posix(), line, problem)
    if found["mistakes"]:
        return None
    document = Document(shown, {"pipeline": found["name"], "schedule": "assets"})
    document.data |= {name: dict(tables) for name, tables in found["sections"].items() if tables}
    for where, file, line in found["places"]:
        document.lines[tuple(where)] = line
        document.files[tuple(where)] = (folder / file).as_posix()
    document.blocks = {tuple(where): dict(lines) for where, lines in found["blocks"]}
    _add_beside(document, folder / BESIDE, noting, mistakes)
    left_out = ((f"{(folder / file).as_posix()}:{n}", *why) for file, n, *why in found["left_out"])
    ids = {
        f"{found['name']}.{source}": frozenset(f"{found['name']}.{reader}" for reader in readers)
        for source, readers in found["streams"].items()
    }
    datasets = frozenset(f"{found['name']}.{name}" for name in found["datasets"])
    file = DeclarationFile(document)
    return SparkProject(file, found["storage"], tuple(left_out), ids, datasets)


def left_out_of(projects: Sequence[SparkProject]) -> list[str]:
    """Return what is left out, with reasons; a table of another spec is named with its file."""
    found = []
    for project in projects:
        others = (other.file.document for other in projects if other is not project)
        owners = {name: d.path for d in others for s in SECTIONS for name in d.data.get(s, ())}
        for place, why, missing in project.left_out:
            if owner := owners.get(missing):
                why = f"{why.partition(': ')[0]}: it reads {missing} of {owner}, {APART}"  # noqa: PLW2901
            found.append(f"{place}: {why}")
    return found


def _read(path: Path, noting: Noting) -> dict[str, Any]:
    root = path.resolve().parent
    name = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]
    state = repr((str(path.resolve()), made_by(), stamps(root, SOURCES)))
    kept = KeptResult(
        cache_folder(noting.environ) / "spark_pipelines" / f"{name}.kept",
        hashlib.sha256(state.encode()).hexdigest(),
    )
    if content := kept.read(noting.environ):
        return dict(json.loads(content))
    found = _run(path, noting.environ)
    if not found["mistakes"] and not found["is_unsettled"]:
        kept.write(json.dumps(found).encode(), Noting(noting.environ, set(found["asked"])))
    return found


def _run(path: Path, environ: Mapping[str, str]) -> dict[str, Any]:
    """Read a project in a process of its own; that it ends early is a mistake of what it reads."""
    with TemporaryDirectory() as folder:
        result, reading = Path(folder) / "result.json", Path(folder) / "result.json.reading"
        command = [sys.executable, "-m", READER, str(path.resolve()), str(result)]
        try:
            ran = subprocess.run(
                command,
                capture_output=True,
                text=True,
                env=dict(environ),
                timeout=LONGEST_S,
                check=False,
            )
            why = (ran.stderr.strip().splitlines() or [f"exit code {ran.returncode}"])[-1]
        except subprocess.TimeoutExpired:
            why = f"it took more than {LONGEST_S} seconds"
        if result.exists():
            return dict(json.loads(result.read_text("utf-8")))
        file = reading.read_text("utf-8") if reading.exists() else ""
    problem = f"the process that reads the definitions ended: {why}"
    return {"mistakes": [[file or path.name, 1, problem]]}


def _add_beside(document: Document, path: Path, noting: Noting, mistakes: Mistakes) -> None:
    """Add what the file beside the spec says: schedule, `expect` by table."""
    if not path.is_file():
        return
    try:
        beside = read_document(path, path.as_posix(), noting)
    except BrokenDocument as error:
        for line, problem in error.problems:
            mistakes.add_at(path.as_posix(), line, problem)
        return
    for where, message in beside.mistakes:
        mistakes.add(beside, where, message)
    for key, value in beside.data.items():
        if key == "expect" and isinstance(value, dict):
            for name, expectations in value.items():
                _add_expectations(document, beside, name, expectations, mistakes)
        elif key in HEADER:
            document.data[key] = value
            document.lines[(key,)] = beside.line((key,))
            document.files[(key,)] = beside.path
        else:
            accepted = ", ".join(sorted({"expect", *HEADER}))
            mistakes.add(beside, (key,), f"unknown key {key!r}; keys are: {accepted}")


def _add_expectations(
    document: Document, beside: Document, name: str, expectations: Any, mistakes: Mistakes
) -> None:
    for section in ("sources", "dimensions", "views"):
        if name in document.data.get(section, {}):
            document.data[section][name]["expect"] = expectations
            for where, line in beside.lines.items():
                if where[:2] == ("expect", name):
                    moved = (section, name, "expect", *where[2:])
                    document.lines[moved], document.files[moved] = line, beside.path
            return
    mistakes.add(beside, ("expect", name), f"the project defines no table {name!r}")
