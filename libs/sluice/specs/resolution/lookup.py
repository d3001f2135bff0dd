"""A lookup's table."""

from collections.abc import Iterable, Mapping

from sluice.specs.dimension import Dimension
from sluice.specs.document import Where
from sluice.specs.families import are_comparable, widen_exactly
from sluice.specs.lookup import Join, Lookup
from sluice.specs.resolution.scope import Report, Scope, plain_columns, unknown_of
from sluice.specs.table import BATCH, HIDDEN_TYPES, Table, carried, hidden_of, views_among


def resolve_lookup(
    spec: Lookup, fact: Table, dimensions: Mapping[str, Table], report: Report
) -> Table:
    """The fact's columns and the dimensions', or the selected ones."""
    joined = {join.qualifier: dimensions[join.dimension].columns for join in spec.join}
    scope = Scope(fact.columns, joined)
    for i, join in enumerate(spec.join):
        _check_join(i, join, Scope(fact.columns), dimensions[join.dimension], report)
    scope.check_select(spec.select, report)
    if spec.time:
        scope.check_time(spec.time, report, "time")
        _check_history(spec, dimensions, report)
    columns = _all(fact, dimensions) if spec.select is None else scope.types_of(spec.select)
    unchanged = fact.columns if spec.select is None else plain_columns(spec.select)
    keys = carried(fact, unchanged)
    is_corrected = spec.refresh or spec.as_of == "event_time"
    hidden = {**hidden_of(keys), **({} if is_corrected else {BATCH: HIDDEN_TYPES[BATCH]})}
    ids = (fact.id, *(table.id for table in dimensions.values()))
    through = views_among(dimensions.values())
    return Table(
        spec.name, spec.pipeline, "lookup", columns, tuple(keys), spec, ids, hidden, through=through
    )


def _all(fact: Table, dimensions: Mapping[str, Table]) -> dict[str, str]:
    columns = dict(fact.columns)
    for table in dimensions.values():
        columns.update({k: v for k, v in table.columns.items() if k not in columns})
    return columns


def _check_join(i: int, join: Join, fact: Scope, dimension: Table, report: Report) -> None:
    at: Where = ("join", i, "on")
    for expression, column in join.on:
        fact.check(expression, report, *at)
        if column not in dimension.columns:
            report.add(at, unknown_of(join.qualifier, column, dimension.columns))
            continue
        left, right = fact.type_of(expression), dimension.columns[column]
        if not are_comparable(left, right):
            report.add(
                at,
                f"{expression.text!r} is {left} and {join.qualifier}.{column} is {right}: "
                "they can't be compared; cast one of them",
            )
            continue
        check_alike(expression.text, left, f"{join.qualifier}.{column}", right, report, at)
    check_covers_key(dimension, [column for _, column in join.on], report, at)


def check_alike(text: str, left: str, column: str, right: str, report: Report, at: Where) -> None:
    """Note an equality that would round, move or read as another type what it compares."""
    if not widen_exactly(left, right):
        report.add(
            at,
            f"{text!r} is {left} and {column} is {right}, which are not the same values; "
            f"write cast({text} as {right})",
        )


def check_covers_key(dimension: Table, columns: Iterable[str], report: Report, at: Where) -> None:
    """Note a join that leaves a part of the dimension's key open: rows would multiply."""
    unique = current_key(dimension)
    lacking = [column for column in unique if column not in set(columns)]
    if lacking:
        report.add(
            at,
            f"{dimension.name} is unique by {', '.join(unique)}: "
            f"join on {', '.join(lacking)} as well, or rows multiply",
        )


def current_key(dimension: Table) -> tuple[str, ...]:
    """What identifies a dimension's rows that stand now: of a history there is one of each key."""
    has_history = isinstance(dimension.spec, Dimension) and dimension.spec.history
    return dimension.key[:-1] if has_history else dimension.key


def _check_history(spec: Lookup, dimensions: Mapping[str, Table], report: Report) -> None:
    for i, join in enumerate(spec.join):
        dimension = dimensions[join.dimension].spec
        if not (isinstance(dimension, Dimension) and dimension.history):
            report.add(
                ("join", i, "dimension"),
                f"as_of: event_time needs the past of {join.dimension}: "
                "declare it with history: true",
            )
