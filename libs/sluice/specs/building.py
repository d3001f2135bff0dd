"""The graph, built from the declared tables: names found, cycles named, every table resolved after its inputs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from sluice.specs.cogroup import Cogroup
from sluice.specs.dimension import Dimension, DimensionView
from sluice.specs.document import Document, Where
from sluice.specs.graph import Graph
from sluice.specs.lookup import Lookup
from sluice.specs.mistakes import Mistakes
from sluice.specs.names import unknown
from sluice.specs.resolution.cogroup import resolve_cogroup
from sluice.specs.resolution.declared import resolve_dimension, resolve_source
from sluice.specs.resolution.dimension_view import resolve_dimension_view
from sluice.specs.resolution.lookup import resolve_lookup
from sluice.specs.resolution.scope import Report, check_expectations
from sluice.specs.resolution.topk import resolve_topk
from sluice.specs.resolution.window_store import resolve_window_store
from sluice.specs.source import Source
from sluice.specs.table import Spec, Table
from sluice.specs.topk import TopK


@dataclass(frozen=True)
class Declaration:
    """A table as it was declared: `spec` is None where it has mistakes of its own."""

    id: str
    spec: Spec | None
    document: Document
    where: Where


@dataclass(frozen=True)
class Reference:
    """One table named by another."""

    where: Where
    name: str
    is_dimension: bool = False


def build(declared: Mapping[str, Declaration], mistakes: Mistakes) -> Graph:
    """The graph of what is declared; what can't be resolved is noted and left out."""
    edges = {id: _inputs(declaration, declared, mistakes) for id, declaration in declared.items()}
    tables: dict[str, Table] = {}
    for id in _in_order(edges, declared, mistakes):
        table = _resolve(declared[id], edges[id], tables, mistakes)
        if table:
            tables[id] = table
    return Graph(tables)


def references(spec: Spec) -> Iterator[Reference]:
    """Every table that a declaration names."""
    if isinstance(spec, Cogroup):
        for name, stream in spec.streams.items():
            yield Reference(("streams", name, "from"), stream.from_)
    elif not isinstance(spec, Source | Dimension | DimensionView):
        yield Reference(("from",), spec.from_)
    if isinstance(spec, Lookup | DimensionView):
        for i, join in enumerate(spec.join):
            yield Reference(("join", i, "dimension"), join.dimension, is_dimension=True)


def _inputs(
    declaration: Declaration, declared: Mapping[str, Declaration], mistakes: Mistakes
) -> dict[Where, str]:
    """The ids that a declaration's references mean; unknown ones are noted."""
    if declaration.spec is None:
        return {}
    found = {}
    for reference in references(declaration.spec):
        id = reference.name if "." in reference.name else f"{declaration.spec.pipeline}.{reference.name}"
        problem = _problem(reference, id, declaration, declared)
        if problem:
            mistakes.add(declaration.document, (*declaration.where, *reference.where), problem)
        else:
            found[reference.where] = id
    return found


def _problem(
    reference: Reference, id: str, declaration: Declaration, declared: Mapping[str, Declaration]
) -> str:
    own = f"{declaration.id.split('.')[0]}."
    if id not in declared:
        known = [name.removeprefix(own) for name in declared if name != declaration.id]
        return unknown("table", reference.name, known)
    target = declared[id].spec
    if target is None:
        return ""
    if reference.is_dimension and not isinstance(target, Dimension | DimensionView):
        return f"{reference.name} is no dimension; declare it under `dimensions:`, a lookup joins only those"
    if not reference.is_dimension and isinstance(target, DimensionView):
        return f"{reference.name} is resolved at a lookup and has no rows of its own to read from"
    return ""


def _in_order(
    edges: Mapping[str, Mapping[Where, str]], declared: Mapping[str, Declaration], mistakes: Mistakes
) -> list[str]:
    remaining = {id: list(dict.fromkeys(inputs.values())) for id, inputs in edges.items()}
    while True:
        try:
            return list(TopologicalSorter(remaining).static_order())
        except CycleError as error:
            cycle: list[str] = error.args[1][::-1]
            names = [id.split(".")[1] for id in cycle]
            at = declared[cycle[0]]
            mistakes.add(at.document, at.where, f"a cycle: {' -> '.join(names)}")
            remaining = {id: [] if id in cycle else inputs for id, inputs in remaining.items()}


def _resolve(
    declaration: Declaration, edges: Mapping[Where, str], tables: Mapping[str, Table], mistakes: Mistakes
) -> Table | None:
    spec = declaration.spec
    if spec is None:
        return None
    inputs = {where: tables[id] for where, id in edges.items() if id in tables}
    if len(inputs) < len(list(references(spec))):
        return None
    report = Report(mistakes, declaration.document, declaration.where)
    table = _resolved(spec, inputs, report)
    check_expectations(table.columns, spec, report)
    return table


def _resolved(spec: Spec, inputs: Mapping[Where, Table], report: Report) -> Table:
    match spec:
        case Source():
            return resolve_source(spec, report)
        case Dimension():
            return resolve_dimension(spec, report)
        case DimensionView():
            return resolve_dimension_view(spec, _dimensions(spec, inputs), report)
        case Cogroup():
            streams = {name: inputs["streams", name, "from"] for name in spec.streams}
            return resolve_cogroup(spec, streams, report)
        case Lookup():
            return resolve_lookup(spec, inputs["from",], _dimensions(spec, inputs), report)
        case TopK():
            return resolve_topk(spec, inputs["from",], report)
    return resolve_window_store(spec, inputs["from",], report)


def _dimensions(spec: Lookup | DimensionView, inputs: Mapping[Where, Table]) -> dict[str, Table]:
    return {join.dimension: inputs["join", i, "dimension"] for i, join in enumerate(spec.join)}
