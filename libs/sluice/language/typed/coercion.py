"""Result types of time arithmetic, rounding, and values that share a column.

'' means that only Spark can determine the type.
"""

from collections.abc import Iterable
from functools import reduce
from itertools import combinations

from sqlglot import exp

from sluice.language.typed.types import (
    DAY,
    DAYS,
    INTEGERS,
    INTERVALS,
    MOMENTS,
    MONTHS,
    NUMERIC,
    Decimal,
    base_name,
    family,
    inner_types,
    widen_exactly,
)

UNKNOWN = ""
NOTHING = "VOID"


def temporal(node: exp.Binary, left: str, right: str) -> str:
    """Return the type of arithmetic on times and intervals; '' if it depends on interval fields."""
    if not isinstance(node, exp.Add | exp.Sub):
        return next((t for t in (left, right) if family(t) in INTERVALS), UNKNOWN)
    if family(left) in MOMENTS and family(right) in MOMENTS:
        return DAYS if isinstance(node, exp.Sub) else UNKNOWN
    moment, other = (left, right) if family(left) in MOMENTS else (right, left)
    if family(moment) not in MOMENTS:
        return left if left == right else UNKNOWN
    if family(moment) == "date":
        return "DATE" if other in (DAY, MONTHS, "TINYINT", "SMALLINT", "INT") else UNKNOWN
    return moment if family(other) in INTERVALS else UNKNOWN


def number(type_: str) -> str:
    """Return the type of a number's negation; a text is read as a DOUBLE."""
    if type_ == "STRING":
        return "DOUBLE"
    return type_ if family(type_) in NUMERIC | INTERVALS else UNKNOWN


def element(type_: str) -> str:
    """Return the type of an array's element, or of a map's value."""
    return inner_types(type_)[-1] if base_name(type_) in ("ARRAY", "MAP") else UNKNOWN


def rounded_type(type_: str) -> str:
    """Return the type of a number's floor or ceiling."""
    if base_name(type_) == "DECIMAL":
        found = Decimal.of(type_)
        return str(Decimal(max(found.whole + 1, 1), 0)) if found and found.scale else UNKNOWN
    return "BIGINT" if family(type_) in (*NUMERIC, "string") else UNKNOWN


def common(types: Iterable[str]) -> str:
    """Return the type that holds all of these; '' if Spark's coercion is not plain."""
    found = [type_ for type_ in dict.fromkeys(types) if type_ != NOTHING]
    if len(found) <= 1:
        return found[0] if found else NOTHING
    if all(type_ in INTEGERS for type_ in found):
        return reduce(wider_integer, found)
    if "DOUBLE" in found and {family(type_) for type_ in found} <= NUMERIC:
        return "DOUBLE"
    decimals = [Decimal.of(type_) for type_ in found]
    known = [decimal for decimal in decimals if decimal]
    return str(reduce(Decimal.wider, known)) if len(known) == len(found) else UNKNOWN


def widened_type(types: Iterable[str]) -> str:
    """Return the type of Spark's UNION of these; '' if there is none.

    Unlike `common`, it rounds: a BIGINT with a DOUBLE, and a DATE to midnight. Decimals that need
    more than 38 digits together, whose places Spark would cut, have none here.
    """
    found = [type_ for type_ in dict.fromkeys(types) if type_ != NOTHING]
    families = {family(type_) for type_ in found}
    exact = common(found)
    if exact and all(widen_exactly(*pair) for pair in combinations(found, 2)):
        return exact
    if families <= NUMERIC and "fraction" in families:
        return "DOUBLE"
    if families <= MOMENTS:
        return "TIMESTAMP" if "timestamp" in families else "TIMESTAMP_NTZ"
    return UNKNOWN


def wider_integer(left: str, right: str) -> str:
    """Return the larger of two integer types."""
    return max(left, right, key=INTEGERS.index)


def is_number(*types: str) -> bool:
    """Return whether all are numeric types."""
    return all(family(type_) in NUMERIC for type_ in types)
