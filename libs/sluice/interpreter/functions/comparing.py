"""Comparisons, logic, and the choice between values."""

import operator
from collections.abc import Callable, Mapping
from functools import partial, reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T

from sluice.interpreter import UnsupportedLocally
from sluice.interpreter.functions import name_each
from sluice.interpreter.values import BOOLEAN, DOUBLE, INT, STRING, Values, common, wider
from sluice.interpreter.values.casts import boolean, cast, number
from sluice.interpreter.values.column_batch import (
    ArrowColumn,
    ColumnBatch,
    Function,
    Value,
    column_of,
    concatenate,
    constant,
    is_null,
    kernel,
    negate,
    null_mask,
    settle,
    take_rows,
    true_mask,
    whole,
)
from sluice.interpreter.values.numbering import FLAT, comparable, key_of, order_of

NESTED = (T.ArrayType, T.StructType)
TRUE = constant(value=True, type_=BOOLEAN)


def alike(a: Value, b: Value) -> tuple[Value, Value]:
    """Return two values in the type in which Spark compares them."""
    if a.type == b.type:
        return a, b
    if isinstance(a.type, NESTED) and isinstance(b.type, NESTED):
        raise UnsupportedLocally("a comparison of arrays or structs of different types")
    type_ = wider(a.type, b.type)
    return cast(a, type_), cast(b, type_)


def _compare(name: str, arguments: list[Value]) -> Value:
    """Return a comparison; `<=>` is true where both are null."""
    a, b = alike(*arguments)
    if isinstance(a.type, T.NullType):
        return constant(True if name == "<=>" else None, BOOLEAN)
    if name == "<=>":
        return _comparison(
            lambda x, y: pc.or_(pc.equal(x, y).fill_null(False), pc.and_(x.is_null(), y.is_null())),
            a,
            b,
        )
    is_of_order = name not in ("equal", "not_equal")
    return _comparison(getattr(pc, name), a, b, is_of_order=is_of_order)


def _comparison(
    compute: Callable[..., pa.Array], *values: Value, is_of_order: bool = False
) -> Value:
    type_ = values[0].type
    (order_of if is_of_order else key_of)(type_)  # refuses what has none
    of = partial(comparable, type_=type_, is_of_order=is_of_order)
    return kernel(BOOLEAN, compute, *values, convert=of)


def equality(type_: T.DataType) -> Callable[[Any, Any], bool]:
    """Return the test that two values of a type are equal; null equals null."""
    key = key_of(type_)
    if key is None:
        return operator.eq
    # A tuple compares its parts by identity first, and all NaN of keys are one.
    return lambda x, y: (key(x),) == (key(y),)


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
    if any(not o.is_literal or o.literal is None for o in others):
        return _comparison(
            lambda x, *all_: reduce(pc.or_kleene, [pc.equal(x, y) for y in all_]), value, *others
        )
    key_of(type_)
    wanted = [o.literal for o in others]
    return kernel(
        BOOLEAN,
        lambda x, among: pc.if_else(x.is_valid(), pc.is_in(x, among), None),
        value,
        convert=lambda columns: comparable([*columns, wanted], type_),
    )


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
        return kernel(
            type_, partial(_choose, pc.less if choose is max else pc.greater, type_), *values
        )

    def chosen(*row: Any) -> Any:
        given = [v for v in row if v is not None]
        return choose(given, key=order) if given else None

    return whole(type_, chosen, *values)


def _choose(
    is_worse: Callable[..., pa.Array], type_: T.DataType, best: pa.Array, *others: pa.Array
) -> pa.Array:
    for other in others:
        columns = [ArrowColumn(best, type_), ArrowColumn(other, type_)]
        is_better = is_worse(*comparable(columns, type_, is_of_order=True))
        best = pc.if_else(pc.fill_null(is_better, other.is_valid()), other, best)
    return best


def _nullif(arguments: list[Value]) -> Value:
    a, _ = arguments
    same = _compare("equal", arguments)

    def run(batch: ColumnBatch) -> Values:
        rows = np.arange(batch.count)
        rows[true_mask(same.run(batch))] = -1
        return take_rows(a.run(batch), rows)

    return Value(a.type, run)


def _for_nan(arguments: list[Value]) -> Value:
    if all(isinstance(a.type, T.FloatType) for a in arguments):
        raise UnsupportedLocally("nanvl of two FLOAT values")
    a, b = map(number, arguments)
    return whole(DOUBLE, lambda x, y: x if x is None or x == x else y, a, b)  # noqa: PLR0124


def _raise_error(arguments: list[Value]) -> Value:
    run = arguments[0].run

    def raised(batch: ColumnBatch) -> list[Any]:
        if batch.count:
            raise UnsupportedLocally(f"raise_error with {run(batch)[0]!r}")
        return []

    return Value(T.NullType(), raised)


COMPARING: Mapping[str, Function] = name_each(
    {
        "<": partial(_compare, "less"),
        "<=": partial(_compare, "less_equal"),
        ">": partial(_compare, "greater"),
        ">=": partial(_compare, "greater_equal"),
        "== =": partial(_compare, "equal"),
        "!= <>": partial(_compare, "not_equal"),
        "<=> equal_null": partial(_compare, "<=>"),
        "and": partial(_logic, decides=False),
        "or": partial(_logic, decides=True),
        "not !": _not,
        "isnull": _isnull,
        "isnotnull": _isnotnull,
        "in": _in,
        "when if": _when,
        "coalesce ifnull nvl": _coalesce,
        "nvl2": lambda given: _when([_isnotnull(given[:1]), *given[1:]]),
        "nullif": _nullif,
        "greatest": partial(_extreme, max),
        "least": partial(_extreme, min),
        "zeroifnull": lambda given: _coalesce([*given, constant(0, INT)]),
        "nullifzero": lambda given: _nullif([*given, constant(0, INT)]),
        "nanvl": _for_nan,
        "typeof": lambda given: constant(given[0].type.simpleString(), STRING),
        "raise_error": _raise_error,
    }
)
