"""Comparisons with Spark SQL's meaning, as Arrow expressions.

Null on either side gives null, except for `<=>`. NaN equals itself and is above every number. A
literal is compared exactly with a column of any number type.
"""

from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sluice.errors import UsageError
from sluice.language.interval import parse_time


class ComparisonOperator(StrEnum):
    """Operator of a comparison."""

    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    SAME = "<=>"

    @property
    def mirrored(self) -> "ComparisonOperator":
        """Operator for exchanged sides."""
        return MIRRORED.get(self, self)


MIRRORED: Mapping[ComparisonOperator, ComparisonOperator] = {
    ComparisonOperator.LT: ComparisonOperator.GT,
    ComparisonOperator.GT: ComparisonOperator.LT,
    ComparisonOperator.LE: ComparisonOperator.GE,
    ComparisonOperator.GE: ComparisonOperator.LE,
}


def columns(operator: ComparisonOperator, one: pa.Field, other: pa.Field) -> pc.Expression:
    """Return the comparison of two columns."""
    floating = pa.types.is_floating(one.type) or pa.types.is_floating(other.type)
    return _comparison(operator, _column(one), _column(other), floating)


def literal(operator: ComparisonOperator, column: pa.Field, value: Any) -> pc.Expression:
    """Return the comparison of a column with a value from `read_literal`."""
    side, kind = _column(column), column.type
    if isinstance(value, Decimal) and pa.types.is_integer(kind):
        side = side.cast(pa.decimal128(20, 0))
    as_is = isinstance(value, Decimal | float)
    return _comparison(
        operator,
        side,
        pc.scalar(pa.scalar(value, None if as_is else kind)),
        pa.types.is_floating(kind),
    )


def read_literal(text: str, kind: pa.DataType, *, is_text: bool) -> Any:
    """Return a literal's value for a column of that type. Raises ValueError if it has none."""
    try:
        return _reader(kind, is_text=is_text)(text)
    except (InvalidOperation, UsageError) as error:
        raise ValueError(str(error)) from None


def _reader(kind: pa.DataType, *, is_text: bool) -> Callable[[str], Any]:
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return _number
    if pa.types.is_floating(kind):
        return float
    if is_text and pa.types.is_string(kind):
        return str
    if is_text and pa.types.is_timestamp(kind):
        return parse_time if kind.tz else _local_time
    if is_text and pa.types.is_date(kind):
        return date.fromisoformat
    raise ValueError(f"no literal of type {kind}")


def _number(text: str) -> Decimal:
    number = Decimal(text)
    if not number.is_finite():
        raise ValueError(text)
    return Decimal(f"{number:f}")


def _local_time(text: str) -> datetime:
    return parse_time(text).replace(tzinfo=None)


def _column(field: pa.Field) -> pc.Expression:
    column = pc.field(field.name)
    return column.cast(pa.float64()) if pa.types.is_floating(field.type) else column


def _comparison(
    operator: ComparisonOperator, a: pc.Expression, b: pc.Expression, floating: bool
) -> pc.Expression:
    above = _above_with_nan if floating else _above
    equal = _equal_with_nan if floating else _equal
    ways: Mapping[ComparisonOperator, Callable[[], pc.Expression]] = {
        ComparisonOperator.EQ: lambda: equal(a, b),
        ComparisonOperator.NE: lambda: ~equal(a, b),
        ComparisonOperator.GT: lambda: above(a, b),
        ComparisonOperator.LT: lambda: above(b, a),
        ComparisonOperator.GE: lambda: ~above(b, a),
        ComparisonOperator.LE: lambda: ~above(a, b),
        ComparisonOperator.SAME: lambda: pc.coalesce(equal(a, b), a.is_null() & b.is_null()),
    }
    return ways[operator]()


def _equal(a: pc.Expression, b: pc.Expression) -> pc.Expression:
    return a == b


def _above(a: pc.Expression, b: pc.Expression) -> pc.Expression:
    return a > b


def _equal_with_nan(a: pc.Expression, b: pc.Expression) -> pc.Expression:
    return (a == b) | (_is_nan(a) & _is_nan(b))


def _above_with_nan(a: pc.Expression, b: pc.Expression) -> pc.Expression:
    return (a > b) | (_is_nan(a) & ~_is_nan(b))


def _is_nan(value: pc.Expression) -> pc.Expression:
    return pc.is_nan(value.cast(pa.float64()))
