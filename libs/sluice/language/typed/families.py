"""Families of types, by the uses that Spark (ANSI mode) allows; measured, not guessed.

An unknown type belongs to no family and is never refused. Spark casts a text to the wanted type, so
STRING is in many kinds; each row then shows whether its text can be read.
"""

from sluice.language.typed.decimals import MOST, Decimal
from sluice.language.typed.types import base_name, inner_types, struct_fields

FAMILIES = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT"), "integer"),
    **dict.fromkeys(("STRING", "CHAR", "VARCHAR"), "string"),
    **dict.fromkeys(("FLOAT", "DOUBLE"), "fraction"),
    **dict.fromkeys(("INTERVAL DAY", "INTERVAL DAY TO SECOND"), "days"),
    "INTERVAL YEAR TO MONTH": "months",
    "BIGINT": "long",
    "TIMESTAMP_NTZ": "local",
    **{n: n.lower() for n in ("DECIMAL", "BOOLEAN", "BINARY", "DATE", "TIMESTAMP", "VARIANT")},
    **{n: n.lower() for n in ("ARRAY", "MAP", "STRUCT")},
}
DAY, DAYS, MONTHS = "INTERVAL DAY", "INTERVAL DAY TO SECOND", "INTERVAL YEAR TO MONTH"

NUMERIC = frozenset({"integer", "long", "decimal", "fraction"})
MOMENTS = frozenset({"date", "timestamp", "local"})
INTERVALS = frozenset({"days", "months"})
_ATOMIC = NUMERIC | MOMENTS | INTERVALS | {"string", "boolean", "binary", "variant"}

# Kinds of arguments: the families accepted, and the words for them.
KINDS: dict[str, tuple[frozenset[str], str]] = {
    "number": (NUMERIC | {"string"}, "a number"),
    "int": (frozenset({"integer", "string"}), "an INT"),
    "whole": (frozenset({"integer", "long", "string"}), "a whole number"),
    "amount": (NUMERIC | INTERVALS | {"string"}, "a number or an interval"),
    "time": (MOMENTS | {"string"}, "a date or a time"),
    "part": (MOMENTS | INTERVALS | {"string"}, "a date, a time or an interval"),
    "text": (_ATOMIC, "a STRING, or a value that can be cast to one"),
    "string": (frozenset({"string"}), "a STRING"),
    "bytes": (frozenset({"string", "binary"}), "a STRING or BINARY"),
    "boolean": (frozenset({"boolean", "string"}), "true or false"),
    "condition": (frozenset({"boolean"}), "true or false"),
    "ordered": (_ATOMIC - {"variant"} | {"array", "struct"}, "what can be compared"),
    "array": (frozenset({"array"}), "an ARRAY"),
    "map": (frozenset({"map"}), "a MAP"),
    "collection": (frozenset({"array", "map"}), "an ARRAY or a MAP"),
    "nested": (frozenset({"array", "map", "struct"}), "an ARRAY, a MAP or a STRUCT"),
    "struct": (frozenset({"struct"}), "a STRUCT"),
    "variant": (frozenset({"variant"}), "a VARIANT"),
    "date": (frozenset({"date"}), "a DATE"),
    "timestamp": (frozenset({"timestamp"}), "a TIMESTAMP"),
}


def family(type_: str) -> str:
    """Return the type's family; '' if the type isn't known."""
    return FAMILIES.get(base_name(type_), "")


def fits(type_: str, kind: str) -> bool:
    """Return whether a value of that type is accepted where that kind is expected."""
    found = family(type_)
    return not found or kind == "any" or found in KINDS[kind][0]


def is_orderable(type_: str) -> bool:
    """Return whether its values have an order: no MAP or VARIANT, nor a type that contains one."""
    return family(type_) not in ("map", "variant") and all(map(is_orderable, inner_types(type_)))


def are_comparable(left: str, right: str) -> bool:
    """Return whether `=` and `<` accept the two types."""
    if not (is_orderable(left) and is_orderable(right)):
        return False
    return _meet(family(left), family(right))


def have_common_type(left: str, right: str) -> bool:
    """Return whether one column can hold both, as in CASE or coalesce."""
    a, b = family(left), family(right)
    return _meet(a, b) or {a, b} == {"string", "variant"}


def widen_exactly(left: str, right: str) -> bool:
    """Return whether one column holds the values of both types unchanged, as keys require.

    Spark combines more types, but not exactly. It reads a text as a number, and fails at the first
    text that is none. It rounds a BIGINT to a DOUBLE, and makes a DATE midnight of the session's
    zone.
    """
    a, b = family(left), family(right)
    if not a or not b or {a, b} <= {"integer", "fraction"}:
        return True
    if {a, b} <= NUMERIC - {"fraction"}:
        return _widen_to_decimal(left, right)
    return a == b and _are_alike_within(left, right)


def _widen_to_decimal(left: str, right: str) -> bool:
    """Return whether a decimal has room for all digits of two integers or decimals."""
    one, other = Decimal.of(left), Decimal.of(right)
    if one is None or other is None:
        return True
    return max(one.whole, other.whole) + max(one.scale, other.scale) <= MOST


def _are_alike_within(left: str, right: str) -> bool:
    """Return whether the nested parts of two types of one family go together, part by part."""
    if base_name(left) == "STRUCT" and _fields(left) != _fields(right):
        return False
    return all(map(widen_exactly, inner_types(left), inner_types(right)))


def _fields(struct: str) -> list[str]:
    return [name for name, _ in struct_fields(struct)]


def _meet(a: str, b: str) -> bool:
    if not a or not b or a == b:
        return True
    if "string" in (a, b):
        return {a, b} <= NUMERIC | MOMENTS | {"string", "boolean", "binary"}
    return {a, b} <= NUMERIC or {a, b} <= MOMENTS
