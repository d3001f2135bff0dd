"""Spark SQL types as text: a schema's DDL read, and what kind of type a text names."""

from sqlglot import exp

from sluice.specs import syntax
from sluice.specs.names import near

SIMPLE = (
    "TINYINT SMALLINT INT BIGINT FLOAT DOUBLE DECIMAL STRING BINARY BOOLEAN DATE TIMESTAMP TIMESTAMP_NTZ "
    "ARRAY MAP STRUCT"
).split()
INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
EVENT_TIMES = ("TIMESTAMP", "TIMESTAMP_NTZ", "DATE")


def read_columns(ddl: str) -> list[tuple[str, str]]:
    """`a INT, b DECIMAL(12,2)` as (name, type) pairs; ValueError says which part can't be read."""
    parts = split_columns(ddl)
    if not parts:
        raise ValueError("a schema is wanted, e.g. 'id INT, name STRING'")
    pairs = [_read_column(part) for part in parts]
    names = [name for name, _ in pairs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"column {twice[0]!r} is declared twice")
    return pairs


def split_columns(ddl: str) -> list[str]:
    """The text cut at its outermost commas."""
    parts, depth = [""], 0
    for character in ddl:
        depth += {"(": 1, "<": 1, ")": -1, ">": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def _read_column(part: str) -> tuple[str, str]:
    name, _, type_ = part.partition(" ")
    if not type_.strip():
        raise ValueError(f"{part!r}: a column is written as a name and a type")
    return name.rstrip(":"), canonical(type_)


def canonical(text: str) -> str:
    """A type as Spark writes it: `long` is BIGINT; ValueError for what is no type."""
    wrong = f"unknown type {text.strip()!r}; types are: {', '.join(SIMPLE)}"
    guess = near(text.split("(")[0], [name.lower() for name in SIMPLE])
    wrong = wrong.replace(";", f"; did you mean {guess.upper()!r}?", 1) if guess else wrong
    try:
        tree = syntax.parse_as(text, exp.DataType)
    except ValueError:
        raise ValueError(wrong) from None
    if not isinstance(tree, exp.DataType):
        raise ValueError(wrong)
    rendered = syntax.render(tree)
    return "DECIMAL(10, 0)" if rendered == "DECIMAL" else rendered


def head(type_: str) -> str:
    """The type's name without parameters: DECIMAL of DECIMAL(12, 2)."""
    return type_.split("(")[0].split("<")[0].strip().upper()
