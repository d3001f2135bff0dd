"""Numbers: the range of each type, rounding, and decimals at another scale."""

from collections.abc import Callable

from pyspark.sql import types as T

from sluice.interpreter.refusals import BadValue, NotHere
from sluice.interpreter.values.value_types import BITS


class OutOfRange(BadValue):
    """A number that the wanted type can't hold."""


def bounded(type_: T.DataType) -> Callable[[int], int]:
    """Return the check that an integer fits the type."""
    most = 1 << (BITS[type(type_)] - 1)

    def check(value: int) -> int:
        if -most <= value < most:
            return value
        raise OutOfRange(f"{value}, which is out of the range of {type_.simpleString()}")

    return check


def half_up(value: int, unit: int) -> int:
    """Return value / unit, rounded half away from zero."""
    if unit == 1:
        return value
    whole, rest = divmod(abs(value), unit)
    whole += 2 * rest >= unit
    return whole if value >= 0 else -whole


def rescale(value: int, scale: int, to: int) -> int:
    """Return an unscaled decimal at another scale, rounded half up."""
    return value * 10 ** (to - scale) if to >= scale else half_up(value, 10 ** (scale - to))


def fits_in(type_: T.DecimalType) -> Callable[[int], int]:
    """Return the check that an unscaled number has no more digits than the type."""
    most = 10**type_.precision

    def check(value: int) -> int:
        if -most < value < most:
            return value
        raise OutOfRange(f"a value with more digits than {type_.simpleString()} has")

    return check


def truncated(value: float) -> int:
    """Return a DOUBLE without its fraction."""
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 - NaN
        raise OutOfRange(f"{value} as an integer")
    return 2**63 - 1 if value == 2**63 else int(value)  # the nearest DOUBLE of the greatest BIGINT


def printable(value: float) -> float:
    """Return the number. Raises NotHere for one that versions of Java write with other digits."""
    if value == 0 or 1e-6 <= abs(value) < 1e15:
        return value
    raise NotHere(f"the digits of {value}")


def decimal_of_double(value: float, scale: int) -> int:
    """Return the unscaled decimal nearest to the digits of a DOUBLE."""
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 - NaN
        raise OutOfRange(f"{value} as a DECIMAL")
    number, _, power = repr(printable(value)).partition("e")
    whole, _, fraction = number.partition(".")
    places = len(fraction) - int(power or 0)
    return rescale(int(whole + fraction), places, scale)
