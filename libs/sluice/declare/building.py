"""Declarations as a configuration's files hold them, and the graph of tables built of them.

The graph finds names, reports cycles, and resolves inputs first. Each table is read separately, so
that no mistake hides another.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, cast

from sluice.declare.document import BrokenDocument, Document, Where, read_document
from sluice.declare.mistakes import Draft, Mistakes
from sluice.declare.registry import kind, kinds
from sluice.declare.resolution import Review, TableMistakes, check_expectations
from sluice.declare.settings import find_misplaced
from sluice.declare.table import Graph, Table
from sluice.declare.table_spec import SECTIONS, Reference, Section, TableSpec
from sluice.errors import ConfigError
from sluice.language.names import check_table_name, unknown

PIPELINE = re.compile(r"^pipeline:[ \t]*[\"']?(?P<name>\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Declaration:
    """A table as declared; `spec` is None if the declaration itself has mistakes.

    `model`: that of its kind, if known. `draft`: what is left of it without its mistakes, in which
    others are looked for.
    """

    id: str
    spec: TableSpec | None
    document: Document
    where: Where
    model: type[TableSpec] | None = None
    draft: Draft[TableSpec] | None = None

    @property
    def pipeline(self) -> str:
        return self.id.partition(".")[0]

    @property
    def name(self) -> str:
        return self.id.partition(".")[2]

    def references(self) -> Iterator[Reference]:
        """Yield the tables that it names; those that can be read if it has mistakes."""
        if spec := self.spec or (self.draft and self.draft.spec):
            yield from spec.references()
        elif self.model is not None:
            yield from self.model.written_references(self.document.at(self.where))


def build(
    declared: Mapping[str, Declaration],
    mistakes: Mistakes,
    *,
    is_complete: bool = True,
    review: Review | None = None,
) -> Graph:
    """Build the graph of the declarations; report and leave out those that can't be resolved.

    If a file could not be read, names in other pipelines are assumed to exist. `review` checks each
    expectation further.
    """
    edges = {
        name: _inputs(declaration, declared, mistakes, is_complete)
        for name, declaration in declared.items()
    }
    tables: dict[str, Table] = {}
    left_out, uncertain = set[str](), set[str]()
    for name in _in_order(edges, declared, mistakes):
        declaration, inputs = declared[name], {*edges[name].values()}
        is_whole = {*edges[name]} == {r.where for r in declaration.references()}
        is_whole = is_whole and inputs <= {*tables}
        is_certain = is_whole and uncertain.isdisjoint(inputs)
        table = _resolve(declaration, edges[name], tables, mistakes, review, is_certain=is_certain)
        tables[name] = table or _blank(declaration)
        if not (declaration.spec and table and is_whole and left_out.isdisjoint(inputs)):
            left_out.add(name)
        draft = declaration.draft
        has_all = draft and draft.is_whole and table and all(table.columns.values())
        if not (is_certain and table and (declaration.spec or has_all)):
            uncertain.add(name)
    return Graph({name: table for name, table in tables.items() if name not in left_out})


def query_view(query: str) -> dict[str, Any]:
    """Return the declaration of the view that keeps a query."""
    kept = next(kind for kind in kinds("views") if kind.model.QUERY)
    return {"kind": kept.name, kept.model.QUERY: query}


def appended_view(table: str) -> dict[str, Any]:
    """Return the declaration of the view of a table's rows that refuses changed ones."""
    kept = next(kind for kind in kinds("views") if "changes" in kind.model.model_fields)
    return {"kind": kept.name, "from": table, "changes": "refuse"}


def resolved_alone(
    graph: Graph, fields: Mapping[str, Any], table_id: str, uncertain: Collection[str] = ()
) -> Table:
    """Return the table of a view that no file declares. Raises ConfigError if it can't be one.

    `uncertain`: tables of which not all columns are known; the graph may lack them.
    """
    mistakes, (pipeline, _, name) = Mistakes(), table_id.partition(".")
    document = Document("--sql", {"views": {name: dict(fields)}})
    where: Where = ("views", name)
    data = {**fields, "name": name, "pipeline": pipeline}
    spec = mistakes.validate(kind(fields["kind"]).model, data, document, where)
    declared = {i: Declaration(i, None, document, ("sources", i)) for i in uncertain} | {
        i: Declaration(i, t.spec, document, (t.section, t.name)) for i, t in graph.tables.items()
    }
    declared[table_id] = Declaration(table_id, spec, document, where)
    edges = _inputs(declared[table_id], declared, mistakes, is_complete=True)
    view = declared[table_id]
    is_certain = {*edges.values()}.isdisjoint(uncertain)
    table = _resolve(view, edges, graph.tables, mistakes, None, is_certain=is_certain)
    mistakes.raise_any()
    return table or _blank(view)


def _inputs(
    declaration: Declaration,
    declared: Mapping[str, Declaration],
    mistakes: Mistakes,
    is_complete: bool,
) -> dict[Where, str]:
    """Return the ids that a declaration's references mean; note unknown ones."""
    found = {}
    for reference in declaration.references():
        is_own = "." not in reference.name
        target = f"{declaration.pipeline}.{reference.name}" if is_own else reference.name
        if target not in declared and not is_own and not is_complete:
            continue
        problem = _problem(reference, target, declaration, declared)
        if problem:
            where = declaration.where
            if reference.explains:
                mistakes.withdraw(declaration.document, (*where, *reference.explains))
            mistakes.add(declaration.document, (*where, *reference.where), problem)
        else:
            found[reference.where] = target
    return found if declaration.spec or declaration.draft else {}


def _problem(
    reference: Reference, target: str, declaration: Declaration, declared: Mapping[str, Declaration]
) -> str:
    section = reference.section
    if target not in declared:
        own = f"{declaration.pipeline}."
        known = [
            name.removeprefix(own)
            for name, other in declared.items()
            if name != declaration.id and section in (None, other.where[0])
        ]
        problem = unknown((section or "tables").removesuffix("s"), reference.name, known)
        return f"{reference.place}: {problem}" if reference.place else problem
    spec = declared[target].spec
    if spec is None:
        return ""
    if section not in (None, spec.SECTION):
        return (
            f"{reference.name} is not under `{section}:`, and only tables there can be joined here "
            f"(declare the table there as well, with format: delta)"
        )
    if not (section or spec.IS_STORED):
        return f"{reference.name} is computed when it is read: it has no stored rows"
    return ""


def _in_order(
    edges: Mapping[str, Mapping[Where, str]],
    declared: Mapping[str, Declaration],
    mistakes: Mistakes,
) -> list[str]:
    remaining = {name: list(dict.fromkeys(of.values())) for name, of in edges.items()}
    while True:
        try:
            return list(TopologicalSorter(remaining).static_order())
        except CycleError as error:
            cycle = _from_first(error.args[1], list(declared))
            at = declared[cycle[0]]
            is_in_one = len({name.partition(".")[0] for name in cycle}) == 1
            shown = " -> ".join(n.partition(".")[2] if is_in_one else n for n in cycle)
            mistakes.add(at.document, at.where, f"a cycle: {shown}")
            remaining = {name: [] if name in cycle else of for name, of in remaining.items()}


def _from_first(cycle: list[str], declared: list[str]) -> list[str]:
    """Return the cycle in the direction of the data, from the table declared first."""
    ring = cycle[:-1]
    start = ring.index(min(ring, key=declared.index))
    turned = [*ring[start:], *ring[:start]]
    return [*turned, turned[0]]


def _resolve(
    declaration: Declaration,
    edges: Mapping[Where, str],
    tables: Mapping[str, Table],
    mistakes: Mistakes,
    review: Review | None,
    *,
    is_certain: bool = True,
) -> Table | None:
    """Return the table of a declaration, or of its draft; None if it can't be known.

    `is_certain`: its inputs have no other columns than the known ones.
    """
    spec, broken = declaration.spec, tuple[Where, ...]()
    if spec is None and declaration.draft:
        spec = declaration.draft.spec
        broken = tuple(at for at in declaration.draft.broken if at != (spec.QUERY,))
    if spec is None:
        return None
    inputs = {
        r.where: tables.get(edges.get(r.where, "")) or _unknown(r, declaration.pipeline)
        for r in spec.references()
    }
    own = TableMistakes(mistakes, declaration.document, declaration.where, broken, is_certain)
    table = kind(spec.KIND).resolve(spec, inputs, own)
    check_expectations(table.columns if table else {}, spec.expectations, own, review)
    return table


def _blank(declaration: Declaration) -> Table:
    """Return a table without columns in place of one that can't be resolved."""
    section, data = cast(Section, declaration.where[0]), declaration.document.at(declaration.where)
    model = declaration.model or next(iter(kinds(section))).model
    known = data if isinstance(data, Mapping) else {}
    flags = {n: v for n, v in known.items() if n in model.model_fields and isinstance(v, bool)}
    given: dict[str, Any] = {**flags, "name": declaration.name, "pipeline": declaration.pipeline}
    spec = model.model_construct(**given)
    return Table(declaration.name, declaration.pipeline, model.KIND, {}, (), spec)


def _unknown(reference: Reference, pipeline: str) -> Table:
    """Return a table without columns in place of one that nothing declares."""
    name, section = reference.name, reference.section or "sources"
    document = Document("", {section: {name: None}})
    table_id = name if "." in name else f"{pipeline}.{name}"
    return _blank(Declaration(table_id, None, document, (section, name)))


@dataclass(frozen=True)
class DeclarationFile:
    """One file: its document and, for a pipeline, its declarations."""

    document: Document
    declared: tuple[Declaration, ...] = ()
    sections: Mapping[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def pipeline(self) -> str:
        """The pipeline's name."""
        return str(self.document.data.get("pipeline", Path(self.document.path).stem))

    @property
    def header(self) -> dict[str, Any]:
        """Everything but the tables."""
        return {key: value for key, value in self.document.data.items() if key not in SECTIONS}


def find_files(folder: Path) -> list[Path]:
    """Return `sluice.yaml`, then the pipelines' files by name; a file in the folder's place."""
    if folder.is_file():
        return [folder]
    if not folder.is_dir():
        problem = f"{folder}: there is no such folder or spec"
        raise ConfigError([problem], hint="give a folder by --config, or a spec by --spec")
    settings, pipelines = folder / "sluice.yaml", sorted((folder / "pipelines").glob("*.y*ml"))
    names_specs = settings.is_file() and "\nspark_pipelines:" in f"\n{settings.read_text('utf-8')}"
    if not pipelines and not names_specs:
        raise ConfigError([f"{folder / 'pipelines'}: there is no pipeline file (*.yaml)"])
    return [settings, *pipelines]


def named_pipeline(file: Path) -> str:
    """Return the pipeline that a file names, which may have mistakes; '' if it names none."""
    try:
        found = PIPELINE.search(file.read_text("utf-8", "replace"))
    except OSError:
        return ""
    return found["name"] if found else ""


def read_file(path: Path, environ: Mapping[str, str], mistakes: Mistakes) -> DeclarationFile | None:
    """Read the file as a document; None, and noted, if broken. A missing file is empty."""
    shown = path.as_posix()
    if not path.exists():
        return DeclarationFile(Document(shown))
    try:
        document = read_document(path, shown, environ)
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
    declared = list(_tables(document, reading.pipeline, mistakes))
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
    for at, problem in find_misplaced(data, document, where):
        mistakes.add(document, at, problem)
    whole = {**data, "name": name, "pipeline": pipeline}
    spec = mistakes.validate(model, whole, document, where)
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
