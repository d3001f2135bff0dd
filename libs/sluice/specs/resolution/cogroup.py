"""A cogroup's table."""

from collections.abc import Mapping

from sluice.specs.cogroup import Cogroup, Stream
from sluice.specs.inference import aggregate_type
from sluice.specs.names import unknown
from sluice.specs.resolution.scope import Report, Scope
from sluice.specs.resolution.topk import WINDOW
from sluice.specs.table import Table


def resolve_cogroup(spec: Cogroup, inputs: Mapping[str, Table], report: Report) -> Table:
    """Window, key, then the aggregates stream by stream, or the selected columns."""
    scopes = {name: Scope(table.columns) for name, table in inputs.items()}
    for name, scope in scopes.items():
        _check_stream(spec, name, spec.streams[name], scope, report)
    window = WINDOW if spec.window else {}
    key = {name: _key_type(spec, i, scopes) for i, name in enumerate(spec.key)}
    aggregates = _aggregates(spec, scopes, report)
    values = aggregates if spec.select is None else _selected(spec, {**window, **key, **aggregates}, report)
    columns = {**window, **key, **{k: v for k, v in values.items() if k not in {*window, *key}}}
    ids = tuple(table.id for table in inputs.values())
    return Table(spec.name, spec.pipeline, "cogroup", columns, (*list(window)[:1], *key), spec, ids)


def _check_stream(spec: Cogroup, name: str, stream: Stream, scope: Scope, report: Report) -> None:
    at = ("streams", name)
    for i, expression in enumerate(stream.key):
        scope.check(expression, report, *at, "key", i)
    scope.check(stream.where, report, *at, "where")
    for output, aggregate in stream.aggregates.items():
        for column in sorted(aggregate.columns):
            problem = scope.problem(column)
            if problem:
                report.add((*at, "aggregates", output), problem)
    if spec.window:
        scope.check_time(stream.time or spec.window.time, report, *at, *(("time",) if stream.time else ()))
    if len(stream.key) != len(spec.key):
        report.add((*at, "key"), f"{len(stream.key)} expressions for the {len(spec.key)} columns of `key`")
    for output in stream.initial:
        if output not in stream.aggregates:
            report.add((*at, "initial", output), unknown("aggregate", output, stream.aggregates))


def _key_type(spec: Cogroup, i: int, scopes: Mapping[str, Scope]) -> str:
    types = (
        scope.type_of(spec.streams[name].key[i])
        for name, scope in scopes.items()
        if i < len(spec.streams[name].key)
    )
    return next(filter(None, types), "")


def _aggregates(spec: Cogroup, scopes: Mapping[str, Scope], report: Report) -> dict[str, str]:
    found: dict[str, str] = {}
    taken = {*spec.key, *(WINDOW if spec.window else ())}
    for name, stream in spec.streams.items():
        for output, aggregate in stream.aggregates.items():
            if output in found or output in taken:
                report.add(("streams", name, "aggregates", output), f"the column {output!r} is there already")
            argument = scopes[name].type_of(aggregate.argument) if name in scopes else ""
            found[output] = aggregate_type(aggregate, argument)
    return found


def _selected(spec: Cogroup, visible: dict[str, str], report: Report) -> dict[str, str]:
    scope = Scope(visible)
    for name, expression in (spec.select or {}).items():
        scope.check(expression, report, "select", name)
    return {name: scope.type_of(expression) for name, expression in (spec.select or {}).items()}
