"""Key values and bounds, checked against the type of the column that they are compared with."""

from base64 import b64decode
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sluice.errors import UsageError
from sluice.language.interval import IntervalError, parse_time
from sluice.language.names import unknown

NAMES = {
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INT",
    "int64": "BIGINT",
    "date32[day]": "DATE",
    "bool": "BOOLEAN",
}
LiteralReader = Callable[[str], Any]
ACCEPTED: tuple[tuple[Callable[[pa.DataType], bool], Any], ...] = (
    (pa.types.is_boolean, bool),
    (pa.types.is_integer, int),
    (pa.types.is_floating, (int, float)),
    (pa.types.is_decimal, (int, Decimal)),
    (pa.types.is_timestamp, datetime),
    (pa.types.is_date, date),
    (pa.types.is_binary, bytes),
)


def field_at(schema: pa.Schema, path: str) -> pa.Field | None:
    """Return a column, or the field of a STRUCT by its dotted path, named in full; None without it.

    Case counts only where it distinguishes names.
    """
    found, fields, names = None, list(schema), list[str]()
    for part in path.split("."):
        same = [f for f in fields if f.name == part]
        found = next(iter(same or [f for f in fields if f.name.lower() == part.lower()]), None)
        if found is None:
            return None
        names.append(found.name)
        fields = list(found.type) if pa.types.is_struct(found.type) else []
    return found and found.with_name(".".join(names))


def values_at(rows: pa.RecordBatch | pa.Table, path: str) -> pa.Array | pa.ChunkedArray:
    """Return the values of a column or of a STRUCT's field; null where the STRUCT is null."""
    column, *inner = path.split(".")
    return pc.struct_field(rows.column(column), inner) if inner else rows.column(column)


NAN = float("nan")


def values_of_columns(row: Mapping[str, Any], names: Iterable[str]) -> tuple[Any, ...]:
    """Return a row's values of columns; NaN is one object, so that tuples with it are equal."""
    values = (row[name] for name in names)
    return tuple(NAN if isinstance(v, float) and v != v else v for v in values)  # noqa: PLR0124


def type_name(kind: pa.DataType) -> str:
    """Return the type as the configuration spells it."""
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP" if kind.tz else "TIMESTAMP_NTZ"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pa.types.is_list(kind):
        return f"ARRAY<{type_name(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"STRUCT<{','.join(f'{f.name}: {type_name(f.type)}' for f in kind)}>"
    if pa.types.is_map(kind):
        return f"MAP<{type_name(kind.key_type)},{type_name(kind.item_type)}>"
    return NAMES.get(str(kind), str(kind).upper())


def check_columns(
    table: str, columns: Iterable[str] | None, visible: Collection[str]
) -> tuple[str, ...]:
    """Return the columns that a reader asks for, each once; all by default.

    Raises UsageError for names that the table does not show.
    """
    if columns is None:
        return tuple(visible)
    if not isinstance(columns, Iterable):
        raise UsageError(f"{table}: columns must be names, not {columns!r}")
    named = (columns,) if isinstance(columns, str) else tuple(columns)
    for column in named:
        if column not in visible:
            raise UsageError(f"{table}: {unknown('column', str(column), visible)}")
    return tuple(dict.fromkeys(named)) or tuple(visible)


def from_text(text: str, kind: pa.DataType, column: str) -> Any:
    """Return the value of a command line's text in a column of that type; bytes are in base64."""
    try:
        return check(_reader(kind)(text), kind, column)
    except (ValueError, InvalidOperation):
        raise UsageError(
            f"{text!r} is not a value of column {column!r} ({type_name(kind)})",
            hint="bytes are in base64" if pa.types.is_binary(kind) else "",
        ) from None


def check(value: Any, kind: pa.DataType, column: str) -> Any:
    """Return the value in the column's own type. Refuses wrong types and values out of range."""
    if value is None:
        return None
    if pa.types.is_timestamp(kind) and isinstance(value, str | date):
        value = _time(value, kind, column)
    if not _fits(value, kind):
        raise UsageError(f"{value!r} is not a value of column {column!r} ({type_name(kind)})")
    try:
        if isinstance(value, Decimal):
            value = _within_digits(value, kind)
        found = pa.scalar(value, kind)  # or it does not fit
        return value if isinstance(value, datetime) else found.as_py()
    except (pa.ArrowException, OverflowError, ValueError):
        shown = value if isinstance(value, Decimal) else repr(value)
        raise UsageError(f"{shown} does not fit column {column!r} ({type_name(kind)})") from None


def _within_digits(value: Decimal, kind: pa.DataType) -> Decimal:
    """Return a number if the type has its digits; else raise ValueError. Arrow may end the process
    for one that has far more.
    """
    if not value:
        return Decimal(0)
    if not value.is_finite():
        raise ValueError
    number = "".join(map(str, value.as_tuple().digits))
    digits = number.rstrip("0")
    exponent = int(value.as_tuple().exponent) + len(number) - len(digits)
    if exponent < -kind.scale or len(digits) + exponent > kind.precision - kind.scale:
        raise ValueError
    return value


def _time(value: str | date, kind: pa.DataType, column: str) -> datetime:
    try:
        found = parse_time(value)
    except IntervalError as error:
        raise UsageError(
            f"{value!r} is not a value of column {column!r} ({type_name(kind)})", hint=error.hint
        ) from None
    return found if kind.tz else found.replace(tzinfo=None)


def _fits(value: Any, kind: pa.DataType) -> bool:
    accepted = next((types for is_kind, types in ACCEPTED if is_kind(kind)), str)
    if isinstance(value, bool):
        return accepted is bool
    if isinstance(value, datetime):
        return accepted is datetime
    return isinstance(value, accepted)


def _reader(kind: pa.DataType) -> LiteralReader:
    if pa.types.is_boolean(kind):
        return _truth
    if pa.types.is_integer(kind):
        return partial(_number, int)
    if pa.types.is_floating(kind):
        return partial(_number, float)
    if pa.types.is_decimal(kind):
        return partial(_number, Decimal)
    if pa.types.is_date(kind):
        return date.fromisoformat
    return partial(b64decode, validate=True) if pa.types.is_binary(kind) else str


def _number(read: LiteralReader, text: str) -> Any:
    """Return a number, which Python also reads from other digits, and with underscores."""
    if "_" in text or not text.isascii():
        raise ValueError(text)
    return read(text)


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"
