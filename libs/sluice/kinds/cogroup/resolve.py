"""Resolution of cogroups."""

from collections.abc import Collection, Mapping

from sluice.declare.resolution.scope import Scope, SelectedColumns, TableMistakes
from sluice.declare.table import Table
from sluice.declare.text.document import Where
from sluice.declare.window import WINDOW
from sluice.kinds.cogroup.initial import initial_problem
from sluice.kinds.cogroup.spec import Cogroup, Stream
from sluice.language.names import unknown
from sluice.language.typed.coercion import common
from sluice.language.typed.families import widen_exactly
from sluice.language.typed.inference import aggregate_type

Scopes = Mapping[str, Scope]


def resolve(spec: Cogroup, inputs: Mapping[Where, Table], mistakes: TableMistakes) -> Table:
    """Return the table: window, key, then each stream's aggregates or the selected columns."""
    scopes = {name: Scope(inputs["streams", name, "from"].columns) for name in spec.streams}
    for name, scope in scopes.items():
        _check_stream(spec, name, scope, mistakes)
    _check_keys(spec, scopes, mistakes)
    window = WINDOW if spec.window else {}
    head = {**window, **{name: _key_type(spec, i, scopes) for i, name in enumerate(spec.key)}}
    _check_names(spec, mistakes)
    values = _aggregates(spec, scopes)
    scope = Scope({**head, **values})
    scope.check_condition(spec.having, mistakes, "having")
    if spec.select is not None:
        scope.check_select(spec.select, mistakes)
        _check_selected_names(spec.select, head, mistakes)
        values = scope.types_of(spec.select)
    columns = {**head, **{name: type_ for name, type_ in values.items() if name not in head}}
    key = (*list(window)[:1], *spec.key)
    ids = tuple(dict.fromkeys(table.id for table in inputs.values()))
    return Table(spec.name, spec.pipeline, spec.KIND, columns, key, spec, ids)


def _check_stream(spec: Cogroup, name: str, scope: Scope, mistakes: TableMistakes) -> None:
    stream, at = spec.streams[name], ("streams", name)
    inherited = tuple(key.text for key in stream.key) == spec.key
    scope.check_groups(stream.key, mistakes, *(("key",) if inherited else (*at, "key")))
    scope.check_condition(stream.where, mistakes, *at, "where")
    if len(stream.key) != len(spec.key):
        count = f"{len(stream.key)} expressions for the {len(spec.key)} columns of the view's `key`"
        mistakes.add((*at, "key"), count)
    if spec.window and stream.time:
        scope.check_time(stream.time, mistakes, *at, "time")
    elif spec.window:
        scope.check_time(spec.window.time, mistakes, "window", "time")
    _check_aggregates(stream, scope, mistakes, *at)


def _check_aggregates(stream: Stream, scope: Scope, mistakes: TableMistakes, *at: str) -> None:
    for name, aggregate in stream.aggregates.items():
        scope.check_aggregate(aggregate, mistakes, *at, "aggregates", name)
        for expression in stream.in_order(aggregate).kept:
            scope.check_storable(expression, mistakes, *at, "aggregates", name)
        if aggregate.lacks_order and not stream.sequence:
            mistakes.add((*at, "aggregates", name), _without_order(aggregate.function))
    scope.check_order(stream.sequence, mistakes, *at, "sequence")
    _check_initial(stream, scope, mistakes, *at)


def _check_initial(stream: Stream, scope: Scope, mistakes: TableMistakes, *at: str) -> None:
    for name, value in stream.initial.items():
        aggregate = stream.aggregates.get(name)
        if aggregate is None:
            problem: str = unknown("aggregate", name, stream.aggregates)
        else:
            type_ = aggregate_type(aggregate, scope.type_of(aggregate.argument))
            problem = initial_problem(value, type_)
        if problem:
            mistakes.add((*at, "initial", name), problem)


def _without_order(function: str) -> str:
    return (
        f"{function} depends on the order of the rows; write {function}(x ORDER BY at), "
        "or give the stream a `sequence`"
    )


def _check_names(spec: Cogroup, mistakes: TableMistakes) -> None:
    taken = dict.fromkeys(WINDOW, "the window") if spec.window else {}
    for name in spec.key:
        if name in taken:
            mistakes.add(("key",), f"the column {name!r} already belongs to {taken[name]}")
        taken[name] = "the key"
    for stream_name, stream in spec.streams.items():
        for name in stream.aggregates:
            if name in taken:
                where = ("streams", stream_name, "aggregates", name)
                mistakes.add(where, f"the column {name!r} already belongs to {taken[name]}")
            taken[name] = f"the stream {stream_name}"


def _check_selected_names(
    select: SelectedColumns, head: Collection[str], mistakes: TableMistakes
) -> None:
    """Report selected columns that would replace those of the key or the window.

    The view has the key and the window in any case.
    """
    for name, expression in select.items():
        if name in head and expression.plain_column != name:
            why = f"the column {name!r} already belongs to the key or the window; use another name"
            mistakes.add(("select", name), why)


def _key_types(spec: Cogroup, i: int, scopes: Scopes) -> dict[str, str]:
    """Return the type of the key's column in each stream."""
    keys = {name: spec.streams[name].key for name in scopes}
    return {name: scopes[name].type_of(key[i]) for name, key in keys.items() if i < len(key)}


def _key_type(spec: Cogroup, i: int, scopes: Scopes) -> str:
    return common(_key_types(spec, i, scopes).values())


def _check_keys(spec: Cogroup, scopes: Scopes, mistakes: TableMistakes) -> None:
    """Report streams whose keys can't share a column."""
    for i, key in enumerate(spec.key):
        types = _key_types(spec, i, scopes)
        first = next((name for name, type_ in types.items() if type_), "")
        for name, type_ in types.items():
            if first and not widen_exactly(types[first], type_):
                mistakes.add(
                    ("streams", name, "key"),
                    f"the key {key!r} is {type_} here and {types[first]} in the stream {first}; "
                    "cast one of them",
                )


def _aggregates(spec: Cogroup, scopes: Scopes) -> dict[str, str]:
    return {
        output: aggregate_type(aggregate, scopes[name].type_of(aggregate.argument))
        for name, stream in spec.streams.items()
        for output, aggregate in stream.aggregates.items()
    }
