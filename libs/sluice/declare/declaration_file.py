"""Reader of a configuration's files, which returns declarations.

Each table is read separately, so that no mistake hides another.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sluice.declare.building import Declaration
from sluice.declare.registry import kinds
from sluice.declare.secrets import misplaced
from sluice.declare.table_spec import SECTIONS, Section, TableSpec
from sluice.declare.text.document import BrokenDocument, Document, read
from sluice.declare.text.mistakes import Mistakes
from sluice.errors import ConfigError
from sluice.language.names import check_table_name, unknown


@dataclass(frozen=True)
class DeclarationFile:
    """One file: its document and, for a pipeline, its declarations."""

    document: Document
    declared: tuple[Declaration, ...] = ()
    sections: Mapping[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def header(self) -> dict[str, Any]:
        """Everything but the tables."""
        return {key: value for key, value in self.document.data.items() if key not in SECTIONS}


def find_files(folder: Path) -> list[Path]:
    """Return `sluice.yaml`, then the pipelines' files by name."""
    if not folder.is_dir():
        raise ConfigError([f"{folder}: there is no such folder"], hint="give it by --config")
    pipelines = sorted((folder / "pipelines").glob("*.y*ml"))
    if not pipelines:
        raise ConfigError([f"{folder / 'pipelines'}: there is no pipeline file (*.yaml)"])
    return [folder / "sluice.yaml", *pipelines]


def read_file(path: Path, environ: Mapping[str, str], mistakes: Mistakes) -> DeclarationFile | None:
    """Read the file as a document; None, and noted, if broken. A missing file is empty."""
    shown = path.as_posix()
    if not path.exists():
        return DeclarationFile(Document(shown))
    try:
        document = read(path, shown, environ)
    except BrokenDocument as error:
        for line, problem in error.problems:
            mistakes.add_at(shown, line, problem)
        return None
    for where, message in document.mistakes:
        mistakes.add(document, where, message)
    return DeclarationFile(document)


def read_tables(reading: DeclarationFile, mistakes: Mistakes) -> DeclarationFile:
    """Add every table that the file declares to the reading."""
    document = reading.document
    pipeline = str(document.data.get("pipeline", Path(document.path).stem))
    declared = list(_tables(document, pipeline, mistakes))
    sections: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    for declaration in declared:
        if declaration.spec is not None:
            sections[str(declaration.where[0])][str(declaration.where[1])] = declaration.spec
    return replace(reading, declared=tuple(declared), sections=sections)


def _tables(document: Document, pipeline: str, mistakes: Mistakes) -> Iterator[Declaration]:
    seen: dict[str, str] = {}
    for section in SECTIONS:
        tables = document.data.get(section) or {}
        if not isinstance(tables, dict):
            mistakes.add(document, (section,), "a mapping of names to tables is expected")
            continue
        for name, data in tables.items():
            where = (section, name)
            if name in seen:
                mistakes.add(document, where, f"the name {name!r} is taken by {seen[name]}.{name}")
                continue
            seen[name] = section
            yield _declaration(data, document, pipeline, where, mistakes)


def _declaration(
    data: Any, document: Document, pipeline: str, where: tuple[Section, str], mistakes: Mistakes
) -> Declaration:
    name = where[1]
    table_id = f"{pipeline}.{name}"
    model = _model(data, document, where, mistakes)
    try:
        check_table_name(name)
    except ValueError as error:
        mistakes.add(document, where, str(error))
        return Declaration(table_id, None, document, where, model)
    if model is None:
        return Declaration(table_id, None, document, where)
    for key in sorted(model.LOADED & data.keys()):
        mistakes.add(document, (*where, key), unknown("key", key, ()).split(";")[0])
    for at, problem in misplaced(data, document, where):
        mistakes.add(document, at, problem)
    whole = {**data, "name": name, "pipeline": pipeline}
    spec = mistakes.validated(model, whole, document, where)
    draft = None if spec else mistakes.draft(model, whole, document, where)
    return Declaration(table_id, spec, document, where, model, draft)


def _model(
    data: Any, document: Document, where: tuple[Section, str], mistakes: Mistakes
) -> type[TableSpec] | None:
    if not isinstance(data, dict):
        mistakes.add(document, where, "a mapping is expected")
        return None
    known = {kind.name: kind.model for kind in kinds(where[0])}
    meant = known.get(str(data.get("kind"))) or next(
        (model for model in known.values() if model.is_meant_by(data)), None
    )
    if meant is None and data.get("kind") is None:
        mistakes.add(document, where, f"`kind` is missing: {', '.join(known)}")
    elif meant is None:
        mistakes.add(document, (*where, "kind"), unknown("kind", str(data["kind"]), known))
    return meant
