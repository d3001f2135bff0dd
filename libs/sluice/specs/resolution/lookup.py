"""A lookup's table."""

from collections.abc import Mapping

from sluice.specs.lookup import Join, Lookup
from sluice.specs.names import unknown
from sluice.specs.resolution.scope import Report, Scope, plain_columns
from sluice.specs.table import BATCH, HIDDEN_TYPES, Table, carried, hidden_of


def resolve_lookup(
    spec: Lookup, fact: Table, dimensions: Mapping[str, Table], report: Report
) -> Table:
    """The fact's columns and the dimensions', or the selected ones."""
    joined = {name.split(".")[-1]: table.columns for name, table in dimensions.items()}
    scope = Scope(fact.columns, joined)
    for i, join in enumerate(spec.join):
        _check_join(i, join, fact, dimensions.get(join.dimension), report)
    columns = _columns(spec, fact, dimensions, scope, report)
    unchanged = fact.columns if spec.select is None else plain_columns(spec.select)
    keys = carried(fact, unchanged)
    batch = {} if spec.refresh or spec.as_of == "event_time" else {BATCH: HIDDEN_TYPES[BATCH]}
    ids = (fact.id, *(table.id for table in dimensions.values()))
    hidden = {**hidden_of(keys), **batch}
    return Table(spec.name, spec.pipeline, "lookup", columns, tuple(keys), spec, ids, hidden)


def _columns(
    spec: Lookup, fact: Table, dimensions: Mapping[str, Table], scope: Scope, report: Report
) -> dict[str, str]:
    if spec.select is None:
        others = {name: type_ for table in dimensions.values() for name, type_ in table.columns.items()}
        return {**fact.columns, **{k: v for k, v in others.items() if k not in fact.columns}}
    for name, expression in spec.select.items():
        scope.check(expression, report, "select", name)
    return {name: scope.type_of(expression) for name, expression in spec.select.items()}


def _check_join(i: int, join: Join, fact: Table, dimension: Table | None, report: Report) -> None:
    at = ("join", i, "on")
    for expression, _ in join.on:
        Scope(fact.columns).check(expression, report, *at)
    if dimension is None:
        return
    for _, column in join.on:
        if column not in dimension.columns:
            report.add(at, unknown(f"column of {dimension.name}", column, dimension.columns, "its columns"))
    unique = set(dimension.key)
    if getattr(dimension.spec, "history", False):
        unique.discard("valid_from")
    lacking = sorted(unique - {column for _, column in join.on})
    if lacking:
        report.add(
            at,
            f"{dimension.name} is unique by {', '.join(sorted(unique))}: "
            f"join on {', '.join(lacking)} as well, or facts multiply",
        )
