"""Initial values: an aggregate's value where its stream has no row, as written in YAML."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from sluice.language.interval import IntervalError, parse_time
from sluice.language.typed.decimals import Decimal
from sluice.language.typed.families import family
from sluice.language.typed.types import inner_types

LARGEST: Mapping[str, int] = {
    "TINYINT": 2**7 - 1,
    "SMALLINT": 2**15 - 1,
    "INT": 2**31 - 1,
    "BIGINT": 2**63 - 1,
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
