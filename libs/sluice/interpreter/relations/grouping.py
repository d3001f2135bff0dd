"""Grouping: aggregates of the rows of each group, and expressions of them.

Aggregates: functions of the rows of a group.

Sums of DOUBLE depend on the order of their rows in Spark, too; here, rows are added in their order.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import pairwise
from operator import add, truediv
from typing import Any

from pyspark.sql import types as T

from sluice.interpreter.expressions.compiling import (
    Bindings,
    RelationColumn,
    column,
    compile_node,
    outermost,
)
from sluice.interpreter.expressions.expression_tree import (
    ExpressionNode,
    FunctionCall,
    Literal,
    Star,
    WindowFunction,
    name_of,
)
from sluice.interpreter.refusals import NotHere
from sluice.interpreter.relations.relation import Relation, group_rows, refuse_place
from sluice.interpreter.values.arrow_conversion import Values
from sluice.interpreter.values.casts import boolean, number
from sluice.interpreter.values.column_batch import ColumnBatch, Same, Value, constant, settle
from sluice.interpreter.values.value_order import (
    group_key,
    has_floats,
    key_function,
    normal,
    order_of,
    same_value,
)
from sluice.interpreter.values.value_types import (
    BOOLEAN,
    DOUBLE,
    INT,
    LONG,
    NULL,
    bounds_check,
    fits_in,
    half_up,
    is_integer,
    of_decimal,
)
from sluice.language.typed.types import Decimal

ValueRows = Sequence[tuple[Any, ...]]
Fold = Callable[[ValueRows], Any]  # of the arguments of a group's rows
FoldedAggregate = tuple[T.DataType, Fold, list[Value]]
MOST_FIRST = 100_000  # rows of min_by and max_by
FALSE = constant(value=False, type_=BOOLEAN)


def _values_given(rows: ValueRows) -> list[Any]:
    if type(rows) is Same and rows and rows.value[0] is None:  # isinstance is slow if called often
        return []
    return [row[0] for row in rows if row[0] is not None]


def _count(arguments: list[Value]) -> FoldedAggregate:
    if len(arguments) == 1 and arguments[0].is_literal and arguments[0].literal is not None:
        return LONG, len, []
    return LONG, lambda rows: sum(None not in row for row in rows), arguments


def _sum(arguments: list[Value]) -> FoldedAggregate:
    (value,) = arguments
    if is_integer(value.type):
        return LONG, partial(_total, bounds_check(LONG), 2**63), arguments
    if isinstance(value.type, T.DecimalType):
        type_ = of_decimal(Decimal(value.type.precision, value.type.scale).sum())
        return type_, _decimal_total(type_), arguments
    if not isinstance(value.type, T.DoubleType):
        raise NotHere(f"a sum or average of values of type {value.type.simpleString()}")
    return (
        DOUBLE,
        lambda rows: float(reduce(add, given, 0)) if (given := _values_given(rows)) else None,
        arguments,
    )


def _decimal_total(type_: T.DecimalType) -> Callable[[ValueRows], int | None]:
    return partial(_total, fits_in(type_), 10**type_.precision)


def _total(fits: Callable[[int], int], most: int, rows: ValueRows) -> int | None:
    """Return a sum of whole numbers that stays within its type in any order of its rows."""
    given = _values_given(rows)
    if given and max(map(abs, given)) * len(given) >= most:
        for sign in (1, -1):
            fits(sign * sum(v for v in given if v * sign > 0))
    return sum(given) if given else None


@dataclass(frozen=True)
class Mean:
    """Fold of values to their total, divided by their number."""

    total: Fold
    divide: Callable[[Any, int], Any]

    def __call__(self, rows: ValueRows) -> Any:
        total = self.total(rows)
        return None if total is None else self.divide(total, len(_values_given(rows)))


def _avg(arguments: list[Value]) -> FoldedAggregate:
    (value,) = arguments
    if isinstance(value.type, T.DecimalType):
        given = Decimal(value.type.precision, value.type.scale)
        found, total = of_decimal(given.average()), _decimal_total(of_decimal(given.sum()))
        fits, more = fits_in(found), 10 ** (found.scale - value.type.scale)
        return found, Mean(total, lambda summed, n: fits(half_up(summed * more, n))), arguments
    numbers = [number(value)]
    return DOUBLE, Mean(_sum(numbers)[1], truediv), numbers


def _extreme(choose: Callable[..., Any], arguments: list[Value]) -> FoldedAggregate:
    (value,) = arguments
    if isinstance(value.type, T.NullType):
        return NULL, lambda rows: None, arguments  # noqa: ARG005
    order = order_of(value.type)

    def chosen(rows: ValueRows) -> Any:
        given = _values_given(rows)
        if order is same_value:
            return choose(given) if given else None
        return choose(given, key=order) if given else None

    return value.type, chosen, arguments


def _extreme_by(choose: Callable[..., Any], arguments: list[Value]) -> FoldedAggregate:
    if len(arguments) == 3:
        return _first_by(choose is max, arguments)
    value, by = arguments
    order = order_of(by.type)

    def chosen(rows: ValueRows) -> Any:
        ranked = [(order(k), i) for i, (_, k) in enumerate(rows) if k is not None]
        if not ranked:
            return None
        best = choose(k for k, _ in ranked)
        return next(rows[i][0] for k, i in reversed(ranked) if k == best)

    return value.type, chosen, arguments


def _first_by(descending: bool, arguments: list[Value]) -> FoldedAggregate:
    value, by, most = arguments
    order, count = order_of(by.type), most.literal
    if most.type != INT or not 1 <= count <= MOST_FIRST:
        raise NotHere(
            f"min_by or max_by with a number of rows that is not a constant from 1 to {MOST_FIRST}"
        )

    def chosen(rows: ValueRows) -> tuple[Any, ...] | None:
        given = [(order(k), i) for i, (_, k) in enumerate(rows) if k is not None]
        if not given:
            return None
        ranked = sorted(given, key=lambda pair: pair[0], reverse=descending)
        if any(a == b for (a, _), (b, _) in pairwise(ranked[: count + 1])):
            raise NotHere("min_by or max_by of rows that tie")
        return tuple(rows[i][0] for _, i in ranked[:count])

    return T.ArrayType(value.type), chosen, [value, by]


def _approximate(arguments: list[Value]) -> FoldedAggregate:
    """Return the number of distinct values, exactly."""
    key = key_function(arguments[0].type)
    return LONG, lambda rows: len({key(v) for v in _values_given(rows)}), arguments


def _end(at: int, arguments: list[Value]) -> FoldedAggregate:
    value, ignoring = arguments[0], arguments[1] if arguments[1:] else FALSE
    ignores = ignoring.literal
    if not isinstance(ignores, bool):
        raise NotHere("first or last whose second argument is not a constant boolean")

    def chosen(rows: ValueRows) -> Any:
        found = _values_given(rows) if ignores else [row[0] for row in rows]
        return found[at] if found else None

    return value.type, chosen, [value]


def _collect_list(arguments: list[Value]) -> FoldedAggregate:
    return T.ArrayType(arguments[0].type), lambda rows: tuple(_values_given(rows)), arguments


def _collect_set(arguments: list[Value]) -> FoldedAggregate:
    key, shown = key_function(arguments[0].type), normal(arguments[0].type)

    def distinct(rows: ValueRows) -> tuple[Any, ...]:
        found: dict[Any, Any] = {}
        for value in _values_given(rows):
            found.setdefault(key(value), shown(value))
        return tuple(found.values())

    return T.ArrayType(arguments[0].type), distinct, arguments


def _count_if(arguments: list[Value]) -> FoldedAggregate:
    taken = [boolean(arguments[0])]
    return LONG, lambda rows: sum(row[0] is True for row in rows), taken


def _truth(decide: Callable[[list[bool]], bool], arguments: list[Value]) -> FoldedAggregate:
    def decided(rows: ValueRows) -> bool | None:
        given = _values_given(rows)
        return decide(given) if given else None

    return BOOLEAN, decided, [boolean(arguments[0])]


def _mode(arguments: list[Value]) -> FoldedAggregate:
    (value,) = arguments
    if has_floats(value.type) or isinstance(value.type, T.MapType | T.BinaryType):
        raise NotHere(f"mode of values of type {value.type.simpleString()}")

    def most(rows: ValueRows) -> Any:
        counted = Counter(_values_given(rows)).most_common(2)
        if len(counted) > 1 and counted[0][1] == counted[1][1]:
            raise NotHere("mode of values that tie")
        return counted[0][0] if counted else None

    return value.type, most, arguments


ENDS = {"first": 0, "first_value": 0, "any_value": 0, "last": -1, "last_value": -1}
MOST_ARGUMENTS = {**dict.fromkeys(ENDS, 2), "min_by": 3, "max_by": 3}
AGGREGATES: Mapping[str, Callable[[list[Value]], FoldedAggregate]] = {
    "count": _count,
    "sum": _sum,
    "avg": _avg,
    "mean": _avg,
    "min": partial(_extreme, min),
    "max": partial(_extreme, max),
    "min_by": partial(_extreme_by, min),
    "max_by": partial(_extreme_by, max),
    **{name: partial(_end, at) for name, at in ENDS.items()},
    "collect_list": _collect_list,
    "array_agg": _collect_list,
    "collect_set": _collect_set,
    "count_if": _count_if,
    "bool_or": partial(_truth, any),
    "any": partial(_truth, any),
    "some": partial(_truth, any),
    "bool_and": partial(_truth, all),
    "every": partial(_truth, all),
    "mode": _mode,
    "approx_count_distinct": _approximate,
}
OF_DISTINCT = ("count", "sum", "avg", "mean", "min", "max")
# For one row, its value; except sums of DOUBLE, in which -0.0 becomes 0.0.
OF_ONE = frozenset({"sum", "min", "max", *ENDS})
# Known, so that an unsupported one is not taken for a scalar function.
SPARKS = frozenset(
    {
        *("hll_sketch_agg", "hll_union_agg", "percentile", "median"),
        *("stddev", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop"),
        *("kll_sketch_agg_bigint", "kll_sketch_agg_double", "percentile_approx"),
    }
)


def arguments_of(call: FunctionCall) -> list[ExpressionNode]:
    """Return an aggregate's arguments. Raises NotHere for a star in other than `count(*)`."""
    stars = [a for a in call.arguments if isinstance(a, Star)]
    if not stars:
        return list(call.arguments)
    if call.name != "count" or call.is_distinct or len(call.arguments) > 1 or stars[0].of:
        raise NotHere(f"* in {call.name}")
    return [Literal(1, INT)]


def aggregate_of(name: str, arguments: list[Value], *, is_distinct: bool) -> FoldedAggregate:
    """Return an aggregate's type, its fold, and the arguments that the fold takes."""
    if name not in AGGREGATES:
        raise NotHere(f"the aggregate {name}")
    if name != "count" and not 1 <= len(arguments) <= MOST_ARGUMENTS.get(name, 1):
        raise NotHere(f"{name} with {len(arguments)} arguments")
    type_, fold, taken = AGGREGATES[name](arguments)
    if not is_distinct:
        return type_, fold, taken
    if name not in OF_DISTINCT:
        raise NotHere(f"{name} with DISTINCT")
    taken = arguments
    keys = [key_function(a.type) for a in taken]
    fold = AGGREGATES[name](arguments)[1] if name != "count" else _count_rows

    def of_distinct(rows: ValueRows) -> Any:
        once = {tuple(k(v) for k, v in zip(keys, row, strict=True)): row for row in rows}
        return fold(list(once.values()))

    return type_, of_distinct, taken


def _count_rows(rows: ValueRows) -> int:
    return sum(None not in row for row in rows)


GroupRows = Sequence[Sequence[int]]


def _is_call(node: ExpressionNode) -> bool:
    return isinstance(node, FunctionCall) and (node.name in AGGREGATES or node.name in SPARKS)


def is_aggregated(node: ExpressionNode) -> bool:
    """Return whether an expression has an aggregate, other than one over a window."""
    parts = outermost(node, lambda n: isinstance(n, WindowFunction) or _is_call(n))
    return any(isinstance(part, FunctionCall) for part in parts)


def aggregate(
    relation: Relation, by: Sequence[ExpressionNode], nodes: Sequence[ExpressionNode]
) -> Relation:
    """Return a row for each group: its keys, and the expressions of aggregates."""
    bindings = Bindings(relation.columns)
    keys = [compile_node(node, bindings) for node in by]
    refuse_place(keys)
    calls = {id(c): c for node in nodes for c in outermost(node, _is_call)}
    folds = {
        key: _compile_fold(call, bindings)
        for key, call in calls.items()
        if isinstance(call, FunctionCall)
    }
    shown = [normal(k.type) for k in keys]
    named = [RelationColumn(name_of(n), k.type) for n, k in zip(by, keys, strict=True)]
    outer = Bindings(named, computed={key: column(key, type_) for key, (type_, _) in folds.items()})
    values = [compile_node(node, outer) for node in nodes]
    columns = [
        *named,
        *(RelationColumn(name_of(n), v.type) for n, v in zip(nodes, values, strict=True)),
    ]

    def compute() -> ColumnBatch:
        batch = relation.rows()
        groups = group_rows(batch, keys, group_key)
        if not keys:
            groups = groups or {(): ()}
        lists = list(groups.values())
        by_key = list(zip(*groups, strict=True)) if lists else [()] * len(keys)
        whole = ColumnBatch(
            len(lists),
            {i: list(map(shown[i], by_key[i])) for i in range(len(keys))},
            {key: partial(run, batch, lists) for key, (_, run) in folds.items()},
        )
        parts = [partial(whole.column, i) for i in range(len(keys))]
        parts += [partial(v.run, whole) for v in values]
        return ColumnBatch(len(lists), {}, dict(enumerate(parts)))

    return Relation(tuple(columns), compute)


def _compile_fold(
    call: FunctionCall, bindings: Bindings
) -> tuple[T.DataType, Callable[[ColumnBatch, GroupRows], Values]]:
    arguments = [compile_node(a, bindings) for a in arguments_of(call)]
    where = boolean(compile_node(call.where, bindings)) if call.where else None
    type_, fold, taken = aggregate_of(call.name, arguments, is_distinct=call.is_distinct)

    counts = call.name == "count_if" and not call.is_distinct
    shows_one = call.name in OF_ONE and not isinstance(type_, T.DoubleType)

    def run(batch: ColumnBatch, groups: GroupRows) -> Values:
        if where is not None:
            groups = _groups_that_meet(where.run(batch), groups)
        if not taken:
            return [fold([()] * len(group)) for group in groups]
        if counts and (one := settle(taken[0].run(batch))):
            return [len(group) if one.value else 0 for group in groups]
        rows = _rows(batch, taken)
        of = _of(rows)
        if not shows_one:
            return [fold(of(group)) for group in groups]
        return [rows[group[0]][0] if len(group) == 1 else fold(of(group)) for group in groups]

    return type_, run


def _groups_that_meet(wanted: Values, groups: GroupRows) -> GroupRows:
    """Return the rows of groups that meet a condition."""
    if one := settle(wanted):
        return groups if one.value else [()] * len(groups)
    return [[i for i in group if wanted[i]] for group in groups]


def _rows(batch: ColumnBatch, values: list[Value]) -> Sequence[tuple[Any, ...]]:
    """Return each row's values; identical rows are not built one by one."""
    columns = [v.run(batch) for v in values]
    same = [one.value for one in map(settle, columns) if one]
    if len(same) == len(columns):
        return Same(tuple(same), batch.count)
    return list(zip(*columns, strict=True))


def _of(rows: Sequence[tuple[Any, ...]]) -> Callable[[Sequence[int]], Sequence[tuple[Any, ...]]]:
    """Return the function from a group to its rows."""
    if isinstance(rows, Same):
        return lambda group: Same(rows.value, len(group))
    count = len(rows)  # a group of as many is all rows, in their order
    return lambda group: rows if len(group) == count else [rows[i] for i in group]
