"""Arithmetic in ANSI mode: an overflow, like a division by zero, is left to Spark to report."""

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T

from sluice.interpreter import DividedByZero, UnsupportedLocally
from sluice.interpreter.functions import Signature, name_each, same
from sluice.interpreter.values import BITS as SIZES
from sluice.interpreter.values import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    LONG,
    STRING,
    arrow_type,
    bounds_check,
    decimal_of,
    decimal_of_double,
    fits_in,
    half_up,
    is_fraction,
    is_integer,
    is_number,
    of_decimal,
    rescale,
    to_arrow,
    wider,
)
from sluice.interpreter.values.casts import as_int, cast, number
from sluice.interpreter.values.column_batch import Function, Value, constant, each, kernel
from sluice.interpreter.values.numbering import of_numbers, same_value, whole_numbers
from sluice.language.types import Decimal

MOST_DIGITS, MOST_DIGITS_OF_256_BITS = 38, 76
MOST_QUOTIENT = 10**38  # of a remainder, before Java finds the division impossible
MOST_TURNED = 10**34  # unscaled; Scala rounds longer decimals where it only changes their sign


def _refuse_zero(operation: str, instead: str) -> None:
    """Refuse a division by zero in Spark's words."""
    raise DividedByZero(
        f"{operation} by zero. Use `{instead}` to tolerate divisor being 0 and return NULL instead."
    )


def _remainder(a: int, b: int) -> int:
    """Return the rest of a division, with the sign of the dividend."""
    if not b:
        _refuse_zero("Remainder", "try_mod")
    found = abs(a) % abs(b)
    return -found if a < 0 else found


def _rest(a: float, b: float) -> float:
    if not b:
        _refuse_zero("Remainder", "try_mod")
    if a != a or b != b or math.isinf(a):  # noqa: PLR0124 - NaN
        raise UnsupportedLocally("a remainder with NaN or infinity")
    return math.fmod(a, b)


WHOLE: Mapping[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "%": _remainder,
}

DECIMAL: Mapping[str, Callable[[Decimal, Decimal], Decimal]] = {
    "+": Decimal.plus,
    "-": Decimal.plus,
    "*": Decimal.times,
    "/": Decimal.over,
    "%": Decimal.modulo,
}


def binary(name: str, arguments: list[Value]) -> Value:
    """Return the sum, difference, product, quotient or remainder of two numbers."""
    a, b = arguments
    if isinstance(a.type, T.NullType) or isinstance(b.type, T.NullType):
        raise UnsupportedLocally("arithmetic on an untyped NULL")
    if not (is_number(a.type) and is_number(b.type)):
        raise UnsupportedLocally(f"{a.type.simpleString()} {name} {b.type.simpleString()}")
    if a.type == b.type == T.FloatType():
        raise UnsupportedLocally("arithmetic on two FLOAT values")
    if is_fraction(a.type) or is_fraction(b.type):
        return _of_reals(name, a, b)
    if isinstance(a.type, T.DecimalType) or isinstance(b.type, T.DecimalType):
        return _of_decimals(name, a, b)
    if name == "/":
        return _of_reals(name, a, b)
    type_ = wider(a.type, b.type)
    return kernel(type_, KERNELS[name], cast(a, type_), cast(b, type_))


def _divide(x: pa.Array, y: pa.Array) -> pa.Array:
    """Return a quotient; of integers, without its fraction, as Java does."""
    if _has_zero(x, y):
        _refuse_zero("Division", "try_divide")
    return pc.divide(x, y) if pa.types.is_floating(x.type) else pc.divide_checked(x, y)


def _modulo(x: pa.Array, y: pa.Array) -> pa.Array:
    """Return the remainder of integers, with the sign of the dividend."""
    if _has_zero(x, y):
        _refuse_zero("Remainder", "try_mod")
    by = whole_numbers(y)
    found = np.fmod(whole_numbers(x), np.where((by == 0) | (by == -1), 1, by))
    nulls = np.asarray(pc.or_(x.is_null(), y.is_null()))
    return pa.array(found, mask=nulls).cast(x.type)


def _modulus(x: pa.Array, y: pa.Array) -> pa.Array:
    """Return the remainder of integers, moved by the divisor if it is negative."""
    rest, by = (c.cast(pa.int64()) for c in (_modulo(x, y), y))
    return _modulo(pc.add_checked(rest, pc.if_else(pc.less(rest, 0), by, 0)), by).cast(x.type)


def _has_zero(x: pa.Array, y: pa.Array) -> bool:
    return bool(pc.any(pc.and_(x.is_valid(), pc.equal(y, 0))).as_py())


KERNELS: Mapping[str, Callable[[pa.Array, pa.Array], pa.Array]] = {
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": pc.multiply_checked,
    "%": _modulo,
    "pmod": _modulus,
}


def _of_reals(name: str, a: Value, b: Value) -> Value:
    a, b = cast(a, DOUBLE), cast(b, DOUBLE)
    if name == "%":
        return each(DOUBLE, _rest, a, b)
    if name == "pmod":
        raise UnsupportedLocally("pmod of DOUBLE")
    return kernel(DOUBLE, KERNELS.get(name, _divide), a, b)


def _of_decimals(name: str, a: Value, b: Value) -> Value:
    one, other = _decimal(a), _decimal(b)
    if name not in DECIMAL:
        raise UnsupportedLocally(f"{name} of DECIMAL")
    found = of_decimal(DECIMAL[name](one, other))
    fits, s, t = fits_in(found), one.scale, other.scale
    most = max(s, t)
    if name in "+-*" and found.scale == (s + t if name == "*" else most):
        whole_digits = max(one.precision - s, other.precision - t)
        exact = one.precision + other.precision if name == "*" else whole_digits + most
        if exact < found.precision <= MOST_DIGITS:  # as wide as Arrow's result, so none is too long
            return kernel(
                found, KERNELS[name], cast(a, of_decimal(one)), cast(b, of_decimal(other))
            )
    if name == "*":
        return each(found, lambda x, y: fits(rescale(x * y, s + t, found.scale)), a, b)
    if name == "/":
        up, down = (10 ** max(sign * (found.scale + t - s), 0) for sign in (1, -1))

        def quotient(x: int, y: int) -> int:
            if not y:
                _refuse_zero("Division", "try_divide")
            return fits(half_up(x * up if y > 0 else -x * up, abs(y) * down))

        types = of_decimal(one), of_decimal(other)
        of_all = partial(_divide_decimals, found, *types)
        return each(found, quotient, cast(a, types[0]), cast(b, types[1]), kernel=of_all)
    compute = WHOLE[name]

    def result(x: int, y: int) -> int:
        x, y = x * 10 ** (most - s), y * 10 ** (most - t)
        if name == "%" and abs(x) >= abs(y) * MOST_QUOTIENT > 0:
            raise UnsupportedLocally("a remainder of a division with too many digits")
        return fits(rescale(compute(x, y), most, found.scale))

    return each(found, result, a, b)


def _divide_decimals(
    found: T.DecimalType, of: T.DecimalType, by: T.DecimalType, x: Any, y: Any
) -> pa.Array | None:
    """Return quotients in 256 bits, cut after more digits than are wanted, then rounded."""
    more = max(found.scale + by.scale - by.precision - of.scale, 0)
    if of.precision + more > MOST_DIGITS_OF_256_BITS:
        return None
    x, y = (c if isinstance(c, pa.Array) else to_arrow([c], t)[0] for c, t in ((x, of), (y, by)))
    x = x.cast(pa.decimal256(of.precision + more, of.scale + more))
    exact = pc.divide(x, y.cast(pa.decimal256(by.precision, by.scale)))
    return pc.round(exact, found.scale, "half_towards_infinity").cast(arrow_type(found))


def _decimal(value: Value) -> Decimal:
    """Return an operand's decimal; an integer constant counts only its own digits."""
    if value.is_literal and is_integer(value.type) and value.literal is not None:
        return Decimal(max(len(str(abs(value.literal))), 1), 0)
    found = decimal_of(value.type)
    assert found
    return found


def _unless_zero(name: str, arguments: list[Value]) -> Value:
    """Return the quotient or remainder of a division, null if the divisor is zero."""
    a, b = arguments
    found = binary(name, [a, replace(b, run=each(b.type, lambda y: y or None, b).run)])
    return constant(None, found.type) if b.is_literal and b.literal == 0 else found


def _try_to_compute(name: str, arguments: list[Value]) -> Value:
    """Return a sum, difference or product of whole numbers, null where it is out of range."""
    most = 1 << (max(SIZES.get(type(a.type), 1) for a in arguments) - 1)

    def within(x: int, y: int) -> int | None:
        found = WHOLE[name](x, y)
        return found if -most <= found < most else None

    return Signature("integer integer", wider, within)(arguments)


def _div(arguments: list[Value]) -> Value:
    if not all(is_integer(a.type) for a in arguments):
        raise UnsupportedLocally("div of values that are not integers")
    return kernel(LONG, _divide, *(cast(a, LONG) for a in arguments))


def _change_sign(compute: Callable[[pa.Array], pa.Array], arguments: list[Value]) -> Value:
    (a,) = arguments
    if not is_number(a.type):
        raise UnsupportedLocally(f"a numeric function of a value of type {a.type.simpleString()}")

    def run(x: pa.Array) -> pa.Array:
        if pa.types.is_decimal(x.type) and (abs(whole_numbers(x)) >= MOST_TURNED).any():
            raise UnsupportedLocally("the sign of a DECIMAL with too many digits")
        return compute(x)

    return kernel(a.type, run, a)


def _round_to(arguments: list[Value], *, up: bool) -> Value:
    if len(arguments) != 1:
        raise UnsupportedLocally("ceil or floor with a number of digits")
    (a,) = arguments
    if is_integer(a.type):
        return cast(a, LONG)
    if isinstance(a.type, T.DecimalType):
        places = a.type.scale
        precision = a.type.precision - places + (1 if places else 0)
        unit = 10**places
        found = T.DecimalType(max(precision, 1), 0)
        return each(found, lambda x: -(-x // unit) if up else x // unit, a)
    if not isinstance(a.type, T.DoubleType):
        raise UnsupportedLocally(f"rounding of a value of type {a.type.simpleString()}")
    fits = bounds_check(LONG)

    def whole(x: float) -> int:
        if x != x or math.isinf(x):  # noqa: PLR0124 - NaN
            raise UnsupportedLocally("rounding of NaN or infinity")
        return fits(math.ceil(x) if up else math.floor(x))

    return each(LONG, whole, a)


def _round(arguments: list[Value]) -> Value:
    a, places = arguments[0], arguments[1].literal if len(arguments) > 1 else 0
    is_number = len(arguments) == 1 or is_integer(arguments[1].type)
    if not isinstance(places, int) or places < 0 or not is_number:
        raise UnsupportedLocally("round with a number of digits that is negative or not a constant")
    if is_integer(a.type):
        return a
    if isinstance(a.type, T.DecimalType):
        scale = min(places, a.type.scale)
        precision = a.type.precision - a.type.scale + 1 + scale
        found = T.DecimalType(min(max(precision, 1), 38), scale)
        fits, old = fits_in(found), a.type.scale
        return each(found, lambda x: fits(rescale(x, old, scale)), a)
    if not isinstance(a.type, T.DoubleType):
        raise UnsupportedLocally(f"rounding of a value of type {a.type.simpleString()}")

    def rounded(x: float) -> float:  # the number nearest to the rounded digits, as written by Java
        return decimal_of_double(x, places) / 10**places if math.isfinite(x) else x

    return each(DOUBLE, rounded, a)


def _sum(name: str, arguments: list[Value]) -> Value:
    """Return a sum or a difference, of numbers or of a date and a number of days."""
    a, b = arguments
    if isinstance(a.type, T.DateType) and is_integer(b.type):
        return of_numbers(DATE, np.add if name == "+" else np.subtract, a, as_int(b))
    return binary(name, arguments)


def _shift(of: Callable[[int, int, int], int], arguments: list[Value]) -> Value:
    size = SIZES.get(type(arguments[0].type), 0)
    half = 1 << (size - 1) if size else 0

    def shifted(v: int, n: int) -> int:
        return (of(v, n % size, size) + half) % (2 * half) - half

    return Signature("long_or_int int", same, shifted)(arguments)


ARITHMETIC: Mapping[str, Function] = name_each(
    {
        "+": partial(_sum, "+"),
        "-": partial(_sum, "-"),
        "*": partial(binary, "*"),
        "/": partial(binary, "/"),
        "% mod": partial(binary, "%"),
        "pmod": partial(binary, "pmod"),
        "div": _div,
        "try_divide": partial(_unless_zero, "/"),
        "try_mod": partial(_unless_zero, "%"),
        "try_add": partial(_try_to_compute, "+"),
        "try_subtract": partial(_try_to_compute, "-"),
        "try_multiply": partial(_try_to_compute, "*"),
        "degrees": ("number", DOUBLE, lambda x: x * (180 / math.pi)),
        "radians": ("number", DOUBLE, lambda x: x * (math.pi / 180)),
        "negative": partial(_change_sign, pc.negate_checked),
        "positive": ("numeric", same, same_value, same_value),
        "abs": partial(_change_sign, pc.abs_checked),
        "signum sign": (
            "number",
            DOUBLE,
            lambda x: x if math.isnan(x) or not x else math.copysign(1.0, x),
        ),
        "floor": partial(_round_to, up=False),
        "ceil ceiling": partial(_round_to, up=True),
        "round": _round,
        "sqrt": ("number", DOUBLE, lambda x: math.sqrt(x) if x >= 0 else math.nan),
        "isnan": lambda given: kernel(
            BOOLEAN, lambda x: x.is_nan().fill_null(False), number(given[0])
        ),
        "&": ("integer integer", wider, operator.and_),
        "|": ("integer integer", wider, operator.or_),
        "^": ("integer integer", wider, operator.xor),
        "~": ("integer", same, operator.invert),
        "shiftleft": partial(_shift, lambda v, n, _: v << n),
        "shiftright": partial(_shift, lambda v, n, _: v >> n),
        "shiftrightunsigned": partial(_shift, lambda v, n, size: (v % (1 << size)) >> n),
        "bit_count": ("integer", INT, lambda v: (v % (1 << 64)).bit_count()),
        "bin": ("integer", STRING, lambda v: f"{v % (1 << 64):b}"),
    }
)
