"""Python values and column names as Spark SQL, so that a rule is one printable expression.

All user input in a rule passes through here. Text is escaped, names are quoted, and values of a
type without a Spark literal are refused.
"""

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

LARGEST_INT = 2**31 - 1


def name(column: str) -> str:
    """Return a column's name, quoted; `a.b` is field `b` of the struct `a`."""
    return ".".join(map(field_name, column.split(".")))


def field_name(name: str) -> str:
    """Return the name of a struct's field, quoted; a dot in it is an ordinary letter."""
    return f"`{name.replace('`', '``')}`"


def text(value: str) -> str:
    """Return a string literal, with backslashes escaped, so a regex stays unchanged."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def literal(value: object) -> str:
    """Return the literal that `functions.lit(value)` would make."""
    for kind, write in WRITERS.items():
        if isinstance(value, kind):
            return write(value)
    raise TypeError(f"no SQL literal for {value!r} ({type(value).__name__})")


def as_json(row: str) -> str:
    """Return a struct as JSON that loses nothing: nulls are written, times have microseconds."""
    local = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
    formats = {"timestampFormat": f"{local}XXX", "timestampNTZFormat": local}
    given = ", ".join(f"{text(o)}, {text(v)}" for o, v in formats.items())
    return f"to_json({row}, map({given}, 'ignoreNullFields', 'false'))"


def every(conditions: Iterable[str]) -> str:
    """Return SQL that all conditions hold; of none, true."""
    return " AND ".join(f"({c})" for c in conditions) or "true"


def some(conditions: Iterable[str]) -> str:
    """Return SQL that at least one condition holds; of none, false."""
    return " OR ".join(f"({c})" for c in conditions) or "false"


# bool before int, datetime before date, because the first matching type counts.
WRITERS: Mapping[type, Callable[[Any], str]] = {
    type(None): lambda _: "NULL",
    bool: lambda value: str(value).lower(),
    int: lambda value: f"{value}" if abs(value) <= LARGEST_INT else f"{value}L",
    float: lambda value: f"CAST({text(repr(value))} AS DOUBLE)",
    Decimal: lambda value: f"{value:f}BD",
    str: text,
    dt.datetime: lambda value: f"TIMESTAMP {text(value.isoformat(sep=' '))}",
    dt.date: lambda value: f"DATE {text(value.isoformat())}",
}
