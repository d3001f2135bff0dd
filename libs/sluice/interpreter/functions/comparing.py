"""Comparisons, logic, and the choice between values."""

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from pyspark.sql import types as T

from sluice.interpreter.refusals import NotHere
from sluice.interpreter.values.arrow_conversion import Values
from sluice.interpreter.values.casts import boolean, cast, number
from sluice.interpreter.values.column_batch import (
    ArrowColumn,
    ColumnBatch,
    Function,
    Value,
    compare_with,
    constant,
    each,
    is_null,
    negate,
    settle,
    whole,
)
from sluice.interpreter.values.value_order import key_of, order_of, same_value
from sluice.interpreter.values.value_types import BOOLEAN, DOUBLE, INT, STRING, common, wider

NESTED = (T.ArrayType, T.StructType)
PLAIN = (T.StringType, T.IntegralType, T.DateType, T.TimestampType, T.TimestampNTZType)
ARROWS: Mapping[Callable[[Any, Any], bool], str] = {
    operator.lt: "less",
    operator.le: "less_equal",
    operator.gt: "greater",
    operator.ge: "greater_equal",
}


def alike(a: Value, b: Value) -> tuple[Value, Value]:
    """Return two values in the type in which Spark compares them."""
    if a.type == b.type:
        return a, b
    if isinstance(a.type, NESTED) and isinstance(b.type, NESTED):
        raise NotHere("a comparison of arrays or structs of different types")
    type_ = wider(a.type, b.type)
    return cast(a, type_), cast(b, type_)


def _compare_order(compare: Callable[[Any, Any], bool], arguments: list[Value]) -> Value:
    a, b = alike(*arguments)
    if isinstance(a.type, T.NullType):
        return constant(None, BOOLEAN)
    order = order_of(a.type)
    if order is same_value:
        return _by_arrow(ARROWS[compare], a, b, each(BOOLEAN, compare, a, b))
    return each(BOOLEAN, lambda x, y: compare(order(x), order(y)), a, b)


def _equal(arguments: list[Value], *, negated: bool = False) -> Value:
    a, b = alike(*arguments)
    if isinstance(a.type, T.NullType):
        return constant(None, BOOLEAN)
    same = equality(a.type)
    if negated:
        found = each(BOOLEAN, lambda x, y: not same(x, y), a, b)
        return _by_arrow("not_equal", a, b, found)
    return _by_arrow("equal", a, b, each(BOOLEAN, same, a, b))


def _by_arrow(name: str, a: Value, b: Value, otherwise: Value) -> Value:
    """Return a comparison with a constant, by Arrow where the values are Arrow's."""
    if not isinstance(a.type, PLAIN) or not b.is_literal or b.literal is None:
        return otherwise

    def run(batch: ColumnBatch) -> Values:
        values = a.run(batch)
        return (
            compare_with(name, values, b.literal)
            if isinstance(values, ArrowColumn)
            else otherwise.run(batch)
        )

    return Value(BOOLEAN, run)


def equality(type_: T.DataType) -> Callable[[Any, Any], bool]:
    """Return the test that two values of a type are equal; null equals null."""
    key = key_of(type_)
    if key is None:
        return operator.eq
    # A tuple compares its parts by identity first, and all NaN of keys are one.
    return lambda x, y: (key(x),) == (key(y),)


def _null_safe(arguments: list[Value]) -> Value:
    a, b = alike(*arguments)
    if isinstance(a.type, T.NullType):
        return constant(value=True, type_=BOOLEAN)
    equal = equality(a.type)
    if equal is operator.eq:  # Python's equality of any two values, None among them
        return Value(BOOLEAN, lambda batch: list(map(operator.eq, a.run(batch), b.run(batch))))

    def same(x: Any, y: Any) -> bool:
        return x is y if x is None or y is None else equal(x, y)

    return whole(BOOLEAN, same, a, b)


def _and(arguments: list[Value]) -> Value:
    return _logic(arguments, decides=False)


def _or(arguments: list[Value]) -> Value:
    return _logic(arguments, decides=True)


def _logic(arguments: list[Value], *, decides: bool) -> Value:
    """Return AND or OR; the second side is computed only where the first is not decisive."""
    left, right = (boolean(a) for a in arguments)

    def run(batch: ColumnBatch) -> Values:
        found = left.run(batch)
        one = settle(found)
        if one and one.value is not None:
            return one if one.value is decides else right.run(batch)
        if decides not in found and None not in found:
            return right.run(batch)
        open_ = [i for i, v in enumerate(found) if v is not decides]
        if not open_:
            return found
        others = right.run(batch if len(open_) == batch.count else batch.take(open_))
        found = list(found)
        for i, other in zip(open_, others, strict=True):
            if other is decides or (other is None and found[i] is not None):
                found[i] = other
        return found

    return Value(BOOLEAN, run)


def _not(arguments: list[Value]) -> Value:
    run = boolean(arguments[0]).run
    return Value(BOOLEAN, lambda b: negate(run(b)))


def _isnull(arguments: list[Value]) -> Value:
    run = arguments[0].run
    return Value(BOOLEAN, lambda b: is_null(run(b)))


def _isnotnull(arguments: list[Value]) -> Value:
    return _not([_isnull(arguments)])


def _in(arguments: list[Value]) -> Value:
    type_ = common(a.type for a in arguments)
    value, *others = (cast(a, type_) for a in arguments)
    if isinstance(type_, T.NullType):
        return constant(None, BOOLEAN)
    same = equality(type_)
    if same is operator.eq and all(o.is_literal and o.literal is not None for o in others):
        wanted = frozenset(o.literal for o in others)
        run = value.run
        return Value(BOOLEAN, lambda b: [None if x is None else x in wanted for x in run(b)])

    def among(x: Any, *rest: Any) -> bool | None:
        if x is None:
            return None
        if any(y is not None and same(x, y) for y in rest):
            return True
        return None if None in rest else False

    return whole(BOOLEAN, among, value, *others)


def _when(arguments: list[Value]) -> Value:
    """Return CASE; each part is computed only for the rows that reach it."""
    arguments = list(arguments)
    default = arguments.pop() if len(arguments) % 2 else None
    conditions = [boolean(c) for c in arguments[::2]]
    if any(isinstance(c.type, T.NullType) for c in arguments[::2]):
        raise NotHere("an untyped NULL as a condition of CASE")
    values = arguments[1::2]
    type_ = common(v.type for v in (*values, *([default] if default else [])))
    values = [cast(v, type_) for v in values]
    default = cast(default, type_) if default else constant(None, type_)

    def run(batch: ColumnBatch) -> Values:
        found: list[Any] = []
        left: Sequence[int] = range(batch.count)
        for condition, value in zip(conditions, values, strict=True):
            if not left:
                return found
            holds = condition.run(_part(batch, left))
            one = settle(holds)
            if one and not one.value:
                continue
            if one and not found:
                return value.run(batch)
            found = found or [None] * batch.count
            _fill(found, [i for i, t in zip(left, holds, strict=True) if t], value, batch)
            left = [i for i, t in zip(left, holds, strict=True) if not t]
        if not found:
            return default.run(batch)
        _fill(found, left, default, batch)
        return found

    return Value(type_, run)


def _part(batch: ColumnBatch, rows: Sequence[int]) -> ColumnBatch:
    return batch if len(rows) == batch.count else batch.take(rows)


def _fill(found: list[Any], rows: Sequence[int], value: Value, batch: ColumnBatch) -> None:
    if not rows:
        return
    for row, result in zip(rows, value.run(_part(batch, rows)), strict=True):
        found[row] = result


def _coalesce(arguments: list[Value]) -> Value:
    type_ = common(a.type for a in arguments)
    first, *others = (cast(a, type_) for a in arguments)

    def run(batch: ColumnBatch) -> Values:
        found = first.run(batch)
        for other in others:
            gaps = settle(is_null(found))
            if gaps and not gaps.value:
                return found
            if gaps:
                found = other.run(batch)
                continue
            left = [i for i, v in enumerate(found) if v is None]
            if not left:
                return found
            found = list(found)
            _fill(found, left, other, batch)
        return found

    return Value(type_, run)


def _extreme(choose: Callable[..., Any], arguments: list[Value]) -> Value:
    type_ = common(a.type for a in arguments)
    order = order_of(type_)

    def chosen(*row: Any) -> Any:
        given = [v for v in row if v is not None]
        return choose(given, key=order) if given else None

    return whole(type_, chosen, *(cast(a, type_) for a in arguments))


def _nullif(arguments: list[Value]) -> Value:
    a, _ = arguments
    same = _equal(arguments)
    return whole(a.type, lambda v, is_same: None if is_same else v, a, same)


def _zero_for_null(arguments: list[Value]) -> Value:
    return _coalesce([arguments[0], constant(0, INT)])


def _null_for_zero(arguments: list[Value]) -> Value:
    return _nullif([arguments[0], constant(0, INT)])


def _for_nan(arguments: list[Value]) -> Value:
    if all(isinstance(a.type, T.FloatType) for a in arguments):
        raise NotHere("nanvl of two FLOAT values")
    a, b = map(number, arguments)
    return whole(DOUBLE, lambda x, y: x if x is None or x == x else y, a, b)  # noqa: PLR0124


def _type_of(arguments: list[Value]) -> Value:
    return constant(arguments[0].type.simpleString(), STRING)


def _nvl2(arguments: list[Value]) -> Value:
    given, value, other = arguments
    return _when([_isnotnull([given]), value, other])


def _raise_error(arguments: list[Value]) -> Value:
    run = arguments[0].run

    def raised(batch: ColumnBatch) -> list[Any]:
        if batch.count:
            raise NotHere(f"raise_error with {run(batch)[0]!r}")
        return []

    return Value(T.NullType(), raised)


COMPARING: Mapping[str, Function] = {
    "<": partial(_compare_order, operator.lt),
    "<=": partial(_compare_order, operator.le),
    ">": partial(_compare_order, operator.gt),
    ">=": partial(_compare_order, operator.ge),
    "==": _equal,
    "=": _equal,
    "!=": partial(_equal, negated=True),
    "<>": partial(_equal, negated=True),
    "<=>": _null_safe,
    "equal_null": _null_safe,
    "and": _and,
    "or": _or,
    "not": _not,
    "!": _not,
    "isnull": _isnull,
    "isnotnull": _isnotnull,
    "in": _in,
    "when": _when,
    "if": _when,
    "coalesce": _coalesce,
    "ifnull": _coalesce,
    "nvl": _coalesce,
    "nvl2": _nvl2,
    "nullif": _nullif,
    "greatest": partial(_extreme, max),
    "least": partial(_extreme, min),
    "zeroifnull": _zero_for_null,
    "nullifzero": _null_for_zero,
    "nanvl": _for_nan,
    "typeof": _type_of,
    "raise_error": _raise_error,
}
