"""`kind: cogroup` for the code that works on tables of any kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sluice.declare.column_lineage import InputColumns, MadeFrom, Seen, as_changed, of_input
from sluice.declare.document import Where
from sluice.declare.registry import Kind
from sluice.declare.resolution import Scope, SelectedColumns, TableMistakes
from sluice.declare.table import Table
from sluice.declare.table_spec import END, START, WINDOW
from sluice.kinds.cogroup import Cogroup, Stream
from sluice.language.inference import aggregate_type
from sluice.language.interval import IntervalError, parse_time
from sluice.language.names import unknown
from sluice.language.types import Decimal, common, family, inner_types, widen_exactly

if TYPE_CHECKING:
    from sluice.declare.table import Graph
    from sluice.engine.operator import InputRows, Operator
    from sluice.engine.plan import Node
    from sluice.engine.tracing import Groups
    from sluice.read.key_order import KeyRange
    from sluice.read.keyed import KeyedTable
    from sluice.read.naming import Given, NamingOption

LARGEST: Mapping[str, int] = {
    "TINYINT": 2**7 - 1,
    "SMALLINT": 2**15 - 1,
    "INT": 2**31 - 1,
    "BIGINT": 2**63 - 1,
}


class CogroupKind(Kind):
    """Kind of one row per key over several streams and their aggregates."""

    model = Cogroup

    def resolve(
        self, spec: Cogroup, inputs: Mapping[Where, Table], mistakes: TableMistakes
    ) -> Table:
        """Return the table: window, key, then each stream's aggregates or the selected columns."""
        scopes = {name: Scope(inputs["streams", name, "from"].columns) for name in spec.streams}
        for name, scope in scopes.items():
            _check_stream(spec, name, scope, mistakes)
        _check_keys(spec, scopes, mistakes)
        window = WINDOW if spec.window else {}
        keys = {
            name: common(_key_types(spec, i, scopes).values()) for i, name in enumerate(spec.key)
        }
        head = {**window, **keys}
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

    def nodes(self, table: Table, graph: Graph) -> tuple[Node, ...]:
        from sluice.kinds.cogroup.batch import nodes

        return nodes(table, graph)

    def trace_columns(self, table: Table, inputs: Mapping[str, Table]) -> MadeFrom:
        spec = table.spec
        assert isinstance(spec, Cogroup)
        made = defaultdict[str, InputColumns](frozenset)
        for stream in spec.streams.values():
            source = inputs[table.reference(stream.from_)]
            for name, found in _of_stream(spec, stream, source):
                made[name] |= found
        sees = Seen(made=made)
        return {**made, **{name: sees.of(e) for name, e in (spec.select or {}).items()}}

    def trace_rows(self, operator: Operator, groups: Groups) -> InputRows:
        from sluice.kinds.cogroup.operator import trace_rows

        return trace_rows(operator, groups)

    def naming_options(self) -> Mapping[str, NamingOption]:
        from sluice.read.naming import TIME

        return {"time": TIME}

    def find_ranges(self, table: KeyedTable, spec: Cogroup, given: Given) -> tuple[KeyRange, ...]:
        """Return the ranges of the key and of windows with that time."""
        from sluice.read.key_order import KeyRange, only, places
        from sluice.read.naming import key_values, not_so, values_of

        if spec.window is None:
            raise not_so(table, "its key")
        if given.partition or {*given.others} != {"time"} or not given.has_key:
            parts = " ".join(f"--key {name}=VALUE" for name in spec.key)
            raise not_so(table, f"{parts} --time TIME")
        time = places(values_of(table, (START,), (given.others["time"],)))
        begun, not_over = KeyRange((START,), high=time), KeyRange((END,), low=time, is_open=True)
        key = key_values(table, table.key.first(len(spec.key)), given)
        return only(spec.key, key), begun, not_over


Scopes = Mapping[str, Scope]


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
    keys = {name: spec.streams[name].key for name in scopes}
    return {name: scopes[name].type_of(key[i]) for name, key in keys.items() if i < len(key)}


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


def initial_problem(value: Any, type_: str) -> str:
    """Return why the value doesn't suit an aggregate of that type; '' if it does or may."""
    if value is None or not family(type_) or _fits(value, type_):
        return ""
    return f"{value!r} is not a valid {type_}, the aggregate's type"


def _fits(value: Any, type_: str) -> bool:  # noqa: PLR0911 - one per family
    match family(type_):
        case "integer" | "long":
            return _is_number(value, int) and -LARGEST[type_] - 1 <= value <= LARGEST[type_]
        case "decimal":
            return _is_number(value, int | float) and _is_exact(value, type_)
        case "fraction":
            return _is_number(value, int | float)
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "date" | "timestamp" | "local":
            return _is_time(value)
        case "array":
            (element,) = inner_types(type_)
            return isinstance(value, list) and not any(initial_problem(v, element) for v in value)
    return False


def _is_number(value: Any, kind: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _is_exact(value: float, type_: str) -> bool:
    """Return whether a decimal of that type holds the number exactly as written."""
    wanted = Decimal.of(type_)
    if wanted is None:
        return True
    try:
        units: Fraction = Fraction(repr(value)) * 10**wanted.scale
    except ValueError:  # NaN and the infinities
        return False
    return units.denominator == 1 and len(str(abs(units))) <= wanted.precision


def _is_time(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(parse_time(value))
    except IntervalError:
        return False


def _of_stream(spec: Cogroup, stream: Stream, source: Table) -> Iterator[tuple[str, InputColumns]]:
    sees = Seen(source)
    for name, expression in zip(spec.key, stream.key, strict=True):
        yield name, sees.of(expression)
    if spec.window:
        time = as_changed(of_input(source, stream.time or spec.window.time))
        yield from ((name, time) for name in (START, END))
    for name, aggregate in stream.aggregates.items():
        whole = stream.in_order(aggregate)
        order = (key.expression for key in whole.order_by)
        read = filter(None, (whole.argument, whole.filter, *order))
        yield name, as_changed(sees.of(*read))
