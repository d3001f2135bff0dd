"""Spark SQL types as text: parsing of a schema's DDL, and kinds of types."""

from collections.abc import Iterable

from sqlglot import exp

from sluice.language import syntax
from sluice.language.names import near

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
