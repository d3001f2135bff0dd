"""Spark SQL types as text: parsing of a schema's DDL, kinds of types, and types of results.

Families of types, by the uses that Spark (ANSI mode) allows; measured, not guessed.

An unknown type belongs to no family and is never refused. Spark casts a text to the wanted type, so
STRING is in many kinds; each row then shows whether its text can be read.

'' means that only Spark can determine the type.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from typing import Self

from sqlglot import exp

from sluice.language import syntax
from sluice.language.names import near

MOST = 38
MINIMUM_SCALE = 6
OF_INTEGERS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 20}
TEXT = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")


@dataclass(frozen=True)
class Decimal:
    """DECIMAL(precision, scale)."""

    precision: int
    scale: int

    @classmethod
    def of(cls, type_: str) -> Self | None:
        """Return the type's decimal, or the one that holds an integer type; None for others."""
        match = TEXT.fullmatch(type_)
        if match:
            return cls(int(match[1]), int(match[2]))
        return cls(OF_INTEGERS[type_], 0) if type_ in OF_INTEGERS else None

    @classmethod
    def fitted(cls, precision: int, scale: int) -> Self:
        """Cut a type to 38 digits as Spark does: reduce the scale, but not below 6."""
        if precision <= MOST:
            return cls(precision, scale)
        whole = precision - scale
        return cls(MOST, max(MOST - whole, min(scale, MINIMUM_SCALE)))

    @property
    def whole(self) -> int:
        """Digits before the point."""
        return self.precision - self.scale

    def plus(self, other: "Decimal") -> "Decimal":
        scale = max(self.scale, other.scale)
        return self.fitted(max(self.whole, other.whole) + scale + 1, scale)

    def times(self, other: "Decimal") -> "Decimal":
        return self.fitted(self.precision + other.precision + 1, self.scale + other.scale)

    def over(self, other: "Decimal") -> "Decimal":
        scale = max(MINIMUM_SCALE, self.scale + other.precision + 1)
        return self.fitted(self.whole + other.scale + scale, scale)

    def modulo(self, other: "Decimal") -> "Decimal":
        scale = max(self.scale, other.scale)
        return self.fitted(min(self.whole, other.whole) + scale, scale)

    def wider(self, other: "Decimal") -> "Decimal":
        """Return the decimal that holds both; places beyond 38 digits are dropped, down to none."""
        whole, scale = max(self.whole, other.whole), max(self.scale, other.scale)
        return Decimal(min(whole + scale, MOST), min(scale, MOST - whole))

    def sum(self) -> "Decimal":
        return Decimal(min(self.precision + 10, MOST), self.scale)

    def average(self) -> "Decimal":
        """Return the type of an average: four more places, and 38 digits if the sum has 38."""
        precision = MOST if self.sum().precision == MOST else self.precision + 4
        return Decimal(precision, min(self.scale + 4, MOST))

    def __str__(self) -> str:
        return f"DECIMAL({self.precision}, {self.scale})"


SIMPLE = (
    *("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "STRING", "BINARY"),
    *("BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "ARRAY", "MAP", "STRUCT"),
)
_TYPE = exp.DataType.Type
OF_SPARK = frozenset(
    {
        *(_TYPE.TINYINT, _TYPE.SMALLINT, _TYPE.INT, _TYPE.BIGINT, _TYPE.FLOAT, _TYPE.DOUBLE),
        *(_TYPE.DECIMAL, _TYPE.TEXT, _TYPE.CHAR, _TYPE.VARCHAR, _TYPE.BINARY, _TYPE.BOOLEAN),
        *(_TYPE.DATE, _TYPE.TIMESTAMPTZ, _TYPE.TIMESTAMPLTZ, _TYPE.TIMESTAMPNTZ),
        *(_TYPE.ARRAY, _TYPE.MAP, _TYPE.STRUCT, _TYPE.VARIANT),
    }
)
INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
EVENT_TIMES = ("TIMESTAMP", "TIMESTAMP_NTZ", "DATE")
UNORDERED = ("MAP", "VARIANT")
KNOWN = f"types are: {', '.join(SIMPLE)}"
GAP = "?"  # placeholder in a schema for unknown types


def read_columns(ddl: str) -> list[tuple[str, str]]:
    """Parse `a INT, b DECIMAL(12,2)` to (name, type) pairs; ValueError names unreadable parts."""
    pairs, problems = [], []
    for part in split_columns(ddl):
        try:
            pairs.append(_read_column(part))
        except ValueError as error:
            problems.append(str(error))
    names = [name for name, _ in pairs]
    twice = dict.fromkeys(name for name in names if names.count(name) > 1)
    problems += [f"column {name!r} is declared twice" for name in twice]
    if problems:
        raise ValueError("; ".join(listed_once(problems)))
    if not pairs:
        raise ValueError("a schema is expected, e.g. 'id INT, name STRING'")
    return pairs


def split_columns(ddl: str) -> list[str]:
    """Split the text at its outermost commas."""
    parts, depth = [""], 0
    for character in ddl:
        depth += {"(": 1, "<": 1, ")": -1, ">": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def _read_column(part: str) -> tuple[str, str]:
    if part == GAP:
        raise ValueError(
            "'?' stands for columns that were not known: write their names and types here, "
            "e.g. 'id BIGINT, name STRING'"
        )
    name, _, type_ = part.replace(
        ":", " ", 1 if part.split(":", maxsplit=1)[0].isidentifier() else 0
    ).partition(" ")
    if not type_.strip():
        raise ValueError(f"{part!r}: a column is written as a name and a type")
    if type_.strip() == GAP:
        raise ValueError(
            f"{part!r}: the type of {name} was not known: write it here, e.g. '{name} BIGINT'"
        )
    return name, canonical(type_)


def canonical(text: str) -> str:
    """Return a type as Spark writes it: `long` is BIGINT; ValueError if it is not a type."""
    try:
        tree = syntax.parse_as(text, exp.DataType)
    except ValueError:
        raise ValueError(_no_type(text)) from None
    if not isinstance(tree, exp.DataType):
        raise ValueError(_no_type(text))
    strange = [part for part in tree.find_all(exp.DataType) if part.this not in OF_SPARK]
    if strange:
        raise ValueError(_no_type(strange[0].this.name))
    for struct in tree.find_all(exp.DataType):
        names = [field.name.lower() for field in struct.expressions if struct.this == _TYPE.STRUCT]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"a STRUCT has the field {twice[0]!r} twice; Spark ignores case")
    rendered = syntax.render(tree)
    return {"DECIMAL": "DECIMAL(10, 0)"}.get(rendered, rendered)


def _no_type(text: str) -> str:
    text = text.strip()
    guess = near(base_name(text), SIMPLE)
    meant = f"; did you mean {guess!r}?" if guess else ";"
    return f"unknown type {text!r}{meant} {KNOWN}"


def listed_once(messages: Iterable[str]) -> list[str]:
    """Return messages, of which only the first on an unknown type lists those that there are."""
    found: list[str] = []
    for message in messages:
        if any(KNOWN in earlier for earlier in found):
            message = message.replace(f"; {KNOWN}", "").replace(f" {KNOWN}", "")  # noqa: PLW2901
        found.append(message)
    return found


def base_name(type_: str) -> str:
    """Return the type's name without parameters: DECIMAL of DECIMAL(12, 2)."""
    return type_.partition("(")[0].partition("<")[0].strip().upper()


def field_of(type_: str, field: str) -> str:
    """Return the type of a struct's field; '' if unknown."""
    if base_name(type_) != "STRUCT":
        return ""
    return dict(struct_fields(type_)).get(field.lower(), "")


def struct_fields(type_: str) -> list[tuple[str, str]]:
    """Return the fields of a STRUCT<a: INT, ...>, with names in lower case."""
    inner = type_[type_.index("<") + 1 : type_.rindex(">")]
    pairs = [part.partition(":") for part in split_columns(inner)]
    return [(name.strip().strip("`").lower(), of.strip()) for name, _, of in pairs]


def inner_types(type_: str) -> list[str]:
    """Return the types inside an ARRAY, a MAP or a STRUCT; none for others."""
    match base_name(type_):
        case "STRUCT":
            return [of for _, of in struct_fields(type_)]
        case "ARRAY" | "MAP":
            return split_columns(type_[type_.index("<") + 1 : type_.rindex(">")])
    return []


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
    if a != b:
        return False
    if a == "struct":  # its parts go together by their names
        names, others = ([name for name, _ in struct_fields(t)] for t in (left, right))
        if names != others:
            return False
    return all(map(widen_exactly, inner_types(left), inner_types(right)))


def _widen_to_decimal(left: str, right: str) -> bool:
    """Return whether a decimal has room for all digits of two integers or decimals."""
    one, other = Decimal.of(left), Decimal.of(right)
    if one is None or other is None:
        return True
    return max(one.whole, other.whole) + max(one.scale, other.scale) <= MOST


def _meet(a: str, b: str) -> bool:
    if not a or not b or a == b:
        return True
    if "string" in (a, b):
        return {a, b} <= NUMERIC | MOMENTS | {"string", "boolean", "binary"}
    return {a, b} <= NUMERIC or {a, b} <= MOMENTS


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
