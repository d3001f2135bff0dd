"""Aggregates: functions of the rows of a group.

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

from sluice.interpreter.expressions.expression_tree import (
    ExpressionNode,
    FunctionCall,
    Literal,
    Star,
)
from sluice.interpreter.refusals import NotHere
from sluice.interpreter.values.arrow_columns import Same
from sluice.interpreter.values.casts import boolean, number
from sluice.interpreter.values.column_batch import Value, constant
from sluice.interpreter.values.numbers import bounded, fits_in, half_up
from sluice.interpreter.values.value_order import has_floats, keyed, normal, order_of, same_value
from sluice.interpreter.values.value_types import (
    BOOLEAN,
    DOUBLE,
    INT,
    LONG,
    NULL,
    is_integer,
    of_decimal,
)
from sluice.language.typed.decimals import Decimal

ValueRows = Sequence[tuple[Any, ...]]
Fold = Callable[[ValueRows], Any]  # of the arguments of a group's rows
FoldedAggregate = tuple[T.DataType, Fold, list[Value]]
MOST_FIRST = 100_000  # rows of min_by and max_by
FALSE = constant(value=False, type_=BOOLEAN)


def _given(rows: ValueRows) -> list[Any]:
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
        return LONG, partial(_total, bounded(LONG), 2**63), arguments
    if isinstance(value.type, T.DecimalType):
        type_ = of_decimal(Decimal(value.type.precision, value.type.scale).sum())
        return type_, _decimal_total(type_), arguments
    if not isinstance(value.type, T.DoubleType):
        raise NotHere(f"a sum or average of values of type {value.type.simpleString()}")
    return (
        DOUBLE,
        lambda rows: float(reduce(add, given, 0)) if (given := _given(rows)) else None,
        arguments,
    )


def _decimal_total(type_: T.DecimalType) -> Callable[[ValueRows], int | None]:
    return partial(_total, fits_in(type_), 10**type_.precision)


def _total(fits: Callable[[int], int], most: int, rows: ValueRows) -> int | None:
    """Return a sum of whole numbers that stays within its type in any order of its rows."""
    given = _given(rows)
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
        return None if total is None else self.divide(total, len(_given(rows)))


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
        given = _given(rows)
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
    key = keyed(arguments[0].type)
    return LONG, lambda rows: len({key(v) for v in _given(rows)}), arguments


def _end(at: int, arguments: list[Value]) -> FoldedAggregate:
    value, ignoring = arguments[0], arguments[1] if arguments[1:] else FALSE
    ignores = ignoring.literal
    if not isinstance(ignores, bool):
        raise NotHere("first or last whose second argument is not a constant boolean")

    def chosen(rows: ValueRows) -> Any:
        found = _given(rows) if ignores else [row[0] for row in rows]
        return found[at] if found else None

    return value.type, chosen, [value]


def _collect_list(arguments: list[Value]) -> FoldedAggregate:
    return T.ArrayType(arguments[0].type), lambda rows: tuple(_given(rows)), arguments


def _collect_set(arguments: list[Value]) -> FoldedAggregate:
    key, shown = keyed(arguments[0].type), normal(arguments[0].type)

    def distinct(rows: ValueRows) -> tuple[Any, ...]:
        found: dict[Any, Any] = {}
        for value in _given(rows):
            found.setdefault(key(value), shown(value))
        return tuple(found.values())

    return T.ArrayType(arguments[0].type), distinct, arguments


def _count_if(arguments: list[Value]) -> FoldedAggregate:
    taken = [boolean(arguments[0])]
    return LONG, lambda rows: sum(row[0] is True for row in rows), taken


def _truth(decide: Callable[[list[bool]], bool], arguments: list[Value]) -> FoldedAggregate:
    def decided(rows: ValueRows) -> bool | None:
        given = _given(rows)
        return decide(given) if given else None

    return BOOLEAN, decided, [boolean(arguments[0])]


def _mode(arguments: list[Value]) -> FoldedAggregate:
    (value,) = arguments
    if has_floats(value.type) or isinstance(value.type, T.MapType | T.BinaryType):
        raise NotHere(f"mode of values of type {value.type.simpleString()}")

    def most(rows: ValueRows) -> Any:
        counted = Counter(_given(rows)).most_common(2)
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
    keys = [keyed(a.type) for a in taken]
    fold = AGGREGATES[name](arguments)[1] if name != "count" else _count_rows

    def of_distinct(rows: ValueRows) -> Any:
        once = {tuple(k(v) for k, v in zip(keys, row, strict=True)): row for row in rows}
        return fold(list(once.values()))

    return type_, of_distinct, taken


def _count_rows(rows: ValueRows) -> int:
    return sum(None not in row for row in rows)
