"""Comparisons, logic, and the choice between values."""

import operator
from collections.abc import Callable, Mapping
from functools import partial, reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T

from sluice.interpreter.refusals import UnsupportedLocally
from sluice.interpreter.values.arrow_conversion import Values, to_arrow
from sluice.interpreter.values.casts import boolean, cast, number
from sluice.interpreter.values.column_batch import (
    ArrowColumn,
    ColumnBatch,
    Function,
    Value,
    column_of,
    concatenate,
    constant,
    each,
    is_null,
    kernel,
    negate,
    null_mask,
    settle,
    take_rows,
    true_mask,
    whole,
)
from sluice.interpreter.values.numbering import FLAT, is_of_flat, order_numbers
from sluice.interpreter.values.value_order import key_of, order_of
from sluice.interpreter.values.value_types import BOOLEAN, DOUBLE, INT, STRING, common, wider

NESTED = (T.ArrayType, T.StructType)
TRUE = constant(value=True, type_=BOOLEAN)
_OF_OBJECTS: Mapping[str, Callable[[Any, Any], bool]] = {
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}


def alike(a: Value, b: Value) -> tuple[Value, Value]:
    """Return two values in the type in which Spark compares them."""
    if a.type == b.type:
        return a, b
    if isinstance(a.type, NESTED) and isinstance(b.type, NESTED):
        raise UnsupportedLocally("a comparison of arrays or structs of different types")
    type_ = wider(a.type, b.type)
    return cast(a, type_), cast(b, type_)


def _compare_order(name: str, arguments: list[Value]) -> Value:
    a, b = alike(*arguments)
    if isinstance(a.type, T.NullType):
        return constant(None, BOOLEAN)
    if isinstance(a.type, FLAT):
        return kernel(BOOLEAN, partial(_compare, name), a, b)
    if is_of_flat(a.type):
        return kernel(BOOLEAN, partial(_compare_structs, name), a, b)
    order, compare = order_of(a.type), _OF_OBJECTS[name]
    return each(BOOLEAN, lambda x, y: compare(order(x), order(y)), a, b)


def _compare(name: str, x: pa.Array, y: pa.Array) -> pa.Array:
    return getattr(pc, name)(_comparable(x), _comparable(y))


def _compare_structs(name: str, x: pa.Array, y: pa.Array) -> pa.Array:
    less, same = _order_of(x, y)
    found = less if name in ("less", "greater_equal") else pc.or_(less, same)
    found = found if name.startswith("less") else pc.invert(found)
    return pc.if_else(pc.and_(x.is_valid(), y.is_valid()), found, None)


def _order_of(x: pa.Array, y: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return where one column is less, and where both are the same; null is less than values."""
    same = _compare_with_nulls(x, y)
    if pa.types.is_struct(x.type):
        parts = [_order_of(*fields) for fields in zip(x.flatten(), y.flatten(), strict=True)]
        less, _ = reduce(_order_by_first, parts)
    else:
        less = _compare("less", x, y).fill_null(False)
    return pc.or_(less, pc.and_(x.is_null(), y.is_valid())), same


def _order_by_first(
    first: tuple[pa.Array, pa.Array], second: tuple[pa.Array, pa.Array]
) -> tuple[pa.Array, pa.Array]:
    (less, same), (then, alike_then) = first, second
    return pc.or_(less, pc.and_(same, then)), pc.and_(same, alike_then)


def _comparable(x: pa.Array) -> pa.Array:
    """Return fractions as whole numbers of the same order: NaN is the greatest, 0.0 is -0.0."""
    if not pa.types.is_floating(x.type):
        return x
    return pa.array(order_numbers(x), mask=np.asarray(x.is_null()))


def _equal(arguments: list[Value], *, negated: bool = False) -> Value:
    a, b = alike(*arguments)
    if isinstance(a.type, T.NullType):
        return constant(None, BOOLEAN)
    if isinstance(a.type, FLAT):
        return kernel(BOOLEAN, partial(_compare, "not_equal" if negated else "equal"), a, b)
    if is_of_flat(a.type):
        return kernel(BOOLEAN, partial(_equal_structs, negated), a, b)
    same = equality(a.type)
    return each(BOOLEAN, lambda x, y: same(x, y) is not negated, a, b)


def _equal_structs(negated: bool, x: pa.Array, y: pa.Array) -> pa.Array:
    same = _compare_with_nulls(x, y)
    known = pc.and_(x.is_valid(), y.is_valid())
    return pc.if_else(known, pc.invert(same) if negated else same, None)


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
    if is_of_flat(a.type):
        return kernel(BOOLEAN, _compare_with_nulls, a, b)
    equal = equality(a.type)

    def same(x: Any, y: Any) -> bool:
        return x is y if x is None or y is None else equal(x, y)

    return whole(BOOLEAN, same, a, b)


def _compare_with_nulls(x: pa.Array, y: pa.Array) -> pa.Array:
    if pa.types.is_struct(x.type):
        parts = map(_compare_with_nulls, x.flatten(), y.flatten())
        equal = reduce(pc.and_, parts, pc.and_(x.is_valid(), y.is_valid()))
    else:
        equal = _compare("equal", x, y).fill_null(False)
    return pc.or_(equal, pc.and_(x.is_null(), y.is_null()))


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
        open_ = np.flatnonzero(~true_mask(found if decides else negate(found)))
        if not len(open_):
            return found
        if len(open_) == batch.count:
            others = right.run(batch)
        else:
            places = np.full(batch.count, -1)
            places[open_] = np.arange(len(open_))
            others = take_rows(right.run(batch.take(open_)), places)
        join = pc.or_kleene if decides else pc.and_kleene
        return ArrowColumn(join(column_of(found, BOOLEAN), column_of(others, BOOLEAN)), BOOLEAN)

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
    if isinstance(type_, FLAT) and all(o.is_literal and o.literal is not None for o in others):
        wanted = _comparable(to_arrow([o.literal for o in others], type_))
        return kernel(BOOLEAN, lambda x: _is_among(_comparable(x), wanted), value)
    if isinstance(type_, FLAT):
        return kernel(BOOLEAN, _is_equal_to_any, value, *others)
    same = equality(type_)

    def among(x: Any, *rest: Any) -> bool | None:
        if x is None:
            return None
        if any(y is not None and same(x, y) for y in rest):
            return True
        return None if None in rest else False

    return whole(BOOLEAN, among, value, *others)


def _is_among(x: pa.Array, wanted: pa.Array) -> pa.Array:
    return pc.if_else(x.is_valid(), pc.is_in(x, wanted), None)


def _is_equal_to_any(x: pa.Array, *others: pa.Array) -> pa.Array:
    return reduce(pc.or_kleene, [_compare("equal", x, y) for y in others])


def _when(arguments: list[Value]) -> Value:
    """Return CASE; each part is computed only for the rows that reach it."""
    arguments = list(arguments)
    default = arguments.pop() if len(arguments) % 2 else None
    conditions = [boolean(c) for c in arguments[::2]]
    if any(isinstance(c.type, T.NullType) for c in arguments[::2]):
        raise UnsupportedLocally("an untyped NULL as a condition of CASE")
    values = arguments[1::2]
    type_ = common(v.type for v in (*values, *([default] if default else [])))
    values = [cast(v, type_) for v in values]
    default = cast(default, type_) if default else constant(None, type_)

    def run(batch: ColumnBatch) -> Values:
        parts: list[Values] = []
        places, left = np.full(batch.count, -1), np.arange(batch.count)
        for condition, value in zip([*conditions, TRUE], [*values, default], strict=True):
            if not len(left):
                break
            is_met = true_mask(condition.run(_part(batch, left)))
            met, left = left[is_met], left[~is_met]
            if len(met) == batch.count:
                return value.run(batch)
            if len(met):
                places[met] = sum(map(len, parts)) + np.arange(len(met))
                parts.append(value.run(batch.take(met)))
        return take_rows(concatenate(parts, type_), places) if parts else []

    return Value(type_, run)


def _part(batch: ColumnBatch, rows: np.ndarray) -> ColumnBatch:
    return batch if len(rows) == batch.count else batch.take(rows)


def _coalesce(arguments: list[Value]) -> Value:
    type_ = common(a.type for a in arguments)
    first, *others = (cast(a, type_) for a in arguments)

    def run(batch: ColumnBatch) -> Values:
        found = first.run(batch)
        for other in others:
            gaps = np.flatnonzero(null_mask(found))
            if not len(gaps):
                return found
            more = other.run(_part(batch, gaps))
            places = np.arange(batch.count)
            places[gaps] = batch.count + np.arange(len(gaps))
            found = take_rows(concatenate([found, more], type_), places)
        return found

    return Value(type_, run)


def _extreme(choose: Callable[..., Any], arguments: list[Value]) -> Value:
    type_ = common(a.type for a in arguments)
    order = order_of(type_)
    values = [cast(a, type_) for a in arguments]
    if isinstance(type_, FLAT):
        return kernel(type_, partial(_choose, "less" if choose is max else "greater"), *values)

    def chosen(*row: Any) -> Any:
        given = [v for v in row if v is not None]
        return choose(given, key=order) if given else None

    return whole(type_, chosen, *values)


def _choose(worse: str, best: pa.Array, *others: pa.Array) -> pa.Array:
    for other in others:
        is_better = pc.fill_null(_compare(worse, best, other), other.is_valid())
        best = pc.if_else(is_better, other, best)
    return best


def _nullif(arguments: list[Value]) -> Value:
    a, _ = arguments
    same = _equal(arguments)

    def run(batch: ColumnBatch) -> Values:
        rows = np.arange(batch.count)
        rows[true_mask(same.run(batch))] = -1
        return take_rows(a.run(batch), rows)

    return Value(a.type, run)


def _zero_for_null(arguments: list[Value]) -> Value:
    return _coalesce([arguments[0], constant(0, INT)])


def _null_for_zero(arguments: list[Value]) -> Value:
    return _nullif([arguments[0], constant(0, INT)])


def _for_nan(arguments: list[Value]) -> Value:
    if all(isinstance(a.type, T.FloatType) for a in arguments):
        raise UnsupportedLocally("nanvl of two FLOAT values")
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
            raise UnsupportedLocally(f"raise_error with {run(batch)[0]!r}")
        return []

    return Value(T.NullType(), raised)


COMPARING: Mapping[str, Function] = {
    "<": partial(_compare_order, "less"),
    "<=": partial(_compare_order, "less_equal"),
    ">": partial(_compare_order, "greater"),
    ">=": partial(_compare_order, "greater_equal"),
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
