"""Builder of the graph: finds names, reports cycles, and resolves inputs first."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any, cast

from sluice.declare.graph import Graph
from sluice.declare.registry import kind, kinds
from sluice.declare.resolution.resolver import Resolver
from sluice.declare.resolution.scope import Review, TableMistakes, check_expectations
from sluice.declare.table import Table
from sluice.declare.table_spec import Reference, TableSpec
from sluice.declare.text.document import Document, Where
from sluice.declare.text.mistakes import Mistakes
from sluice.language.names import unknown


@dataclass(frozen=True)
class Declaration:
    """A table as declared; `spec` is None if the declaration itself has mistakes.

    `model`: that of its kind, if known.
    """

    id: str
    spec: TableSpec | None
    document: Document
    where: Where
    model: type[TableSpec] | None = None

    @property
    def pipeline(self) -> str:
        """Pipeline in which it is declared."""
        return self.id.partition(".")[0]

    def references(self) -> Iterator[Reference]:
        """Yield the tables that it names; those that can be read if it has mistakes."""
        if self.spec is not None:
            yield from self.spec.references()
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
    for name in _in_order(edges, declared, mistakes):
        table = _resolve(declared[name], edges[name], tables, mistakes, review)
        if table:
            tables[name] = table
    return Graph(tables)


def query_view(query: str) -> dict[str, Any]:
    """Return the declaration of the view that keeps a query."""
    kept = next(kind for kind in kinds("views") if kind.model.QUERY)
    return {"kind": kept.name, kept.model.QUERY: query}


def resolved_alone(graph: Graph, fields: Mapping[str, Any], table_id: str) -> Table:
    """Return the table of a view that no file declares. Raises ConfigError if it can't be one."""
    mistakes, (pipeline, _, name) = Mistakes(), table_id.partition(".")
    document = Document("--sql", {"views": {name: dict(fields)}})
    where: Where = ("views", name)
    data = {**fields, "name": name, "pipeline": pipeline}
    spec = mistakes.validated(kind(fields["kind"]).model, data, document, where)
    declared = {
        i: Declaration(i, t.spec, document, (t.section, t.name)) for i, t in graph.tables.items()
    }
    declared[table_id] = Declaration(table_id, spec, document, where)
    edges = _inputs(declared[table_id], declared, mistakes, is_complete=True)
    table = _resolve(declared[table_id], edges, graph.tables, mistakes, None)
    mistakes.raise_any()
    assert table is not None
    return table


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
    return found if declaration.spec else {}


def _problem(
    reference: Reference,
    target: str,
    declaration: Declaration,
    declared: Mapping[str, Declaration],
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
            mistakes.add(at.document, at.where, f"a cycle: {_arrows(cycle)}")
            remaining = {name: [] if name in cycle else of for name, of in remaining.items()}


def _from_first(cycle: list[str], declared: list[str]) -> list[str]:
    """Return the cycle in the direction of the data, from the table declared first."""
    ring = cycle[:-1]
    start = ring.index(min(ring, key=declared.index))
    turned = [*ring[start:], *ring[:start]]
    return [*turned, turned[0]]


def _arrows(cycle: list[str]) -> str:
    pipelines = {name.partition(".")[0] for name in cycle}
    return " -> ".join(n if len(pipelines) > 1 else n.partition(".")[2] for n in cycle)


def _resolve(
    declaration: Declaration,
    edges: Mapping[Where, str],
    tables: Mapping[str, Table],
    mistakes: Mistakes,
    review: Review | None,
) -> Table | None:
    spec = declaration.spec
    if spec is None:
        return None
    inputs = {where: tables[name] for where, name in edges.items() if name in tables}
    own = TableMistakes(mistakes, declaration.document, declaration.where)
    is_whole = len(inputs) == len(list(spec.references()))
    table = _resolver(spec).resolve(spec, inputs, own) if is_whole else None
    check_expectations(table.columns if table else {}, spec.expectations, own, review)
    return table


def _resolver(spec: TableSpec) -> Resolver:
    return cast(Resolver, kind(spec.KIND).module("resolve"))
