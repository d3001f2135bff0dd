"""Values as JSON, in the form of Spark's `to_json`."""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import types as T

from sluice.interpreter.refusals import UnsupportedLocally
from sluice.interpreter.values.casts import caster_of
from sluice.interpreter.values.column_batch import Value, each
from sluice.interpreter.values.texts import decimal_text, double_text, moment_text, single_text
from sluice.interpreter.values.value_types import STRING, is_integer

Writer = Callable[[Any], str]
_TIMES = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


def _text(value: str) -> str:
    """Return a text between quotes; Jackson writes control characters with capital digits."""
    escaped = json.dumps(value, ensure_ascii=False)
    if "\\u00" not in escaped:
        return escaped
    return (
        '"'
        + "".join(
            _control(c) if c < " " else json.dumps(c, ensure_ascii=False)[1:-1] for c in value
        )
        + '"'
    )


def _control(character: str) -> str:
    short = {"\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return short.get(character, f"\\u{ord(character):04X}")


def _decimal(value: int, scale: int) -> str:
    """Return a decimal as Java's BigDecimal writes itself: small ones with an exponent."""
    digits = str(abs(value))
    power = len(digits) - 1 - scale
    if power >= -6:
        return decimal_text(value, scale)
    point = "." if len(digits) > 1 else ""
    return f"{'-' if value < 0 else ''}{digits[0]}{point}{digits[1:]}E{power}"


def _fraction(text: str) -> str:
    return f'"{text}"' if text[-1] in "Ny" else text


def _moment(value: int) -> str:
    return f'"{_local(value)}Z"'


def _local(value: int) -> str:
    day, clock = moment_text(value - value % 1_000_000).split(" ")
    return f"{day}T{clock}.{value % 1_000_000:06}"


def writer(type_: T.DataType, *, with_nulls: bool, has_times: bool) -> Writer:  # noqa: C901, PLR0911, PLR0912 - one per type
    """Return the function that writes a value that is not null."""

    def of(inner: T.DataType) -> Writer:
        found = writer(inner, with_nulls=with_nulls, has_times=has_times)
        return lambda v: "null" if v is None else found(v)

    if is_integer(type_):
        return str
    match type_:
        case T.BooleanType():
            return caster_of(type_, STRING)
        case T.StringType():
            return _text
        case T.DoubleType():
            return lambda v: _fraction(double_text(v))
        case T.FloatType():
            return lambda v: _fraction(single_text(v))
        case T.BinaryType():
            return lambda v: f'"{b64encode(v).decode()}"'
        case T.DecimalType():
            return lambda v: _decimal(v, type_.scale)
        case T.DateType():
            written = caster_of(type_, STRING)
            return lambda v: f'"{written(v)}"'
        case T.TimestampType() if has_times:
            return _moment
        case T.TimestampNTZType() if has_times:
            return lambda v: f'"{_local(v)}"'
        case T.ArrayType():
            item = of(type_.elementType)
            return lambda v: f"[{','.join(map(item, v))}]"
        case T.MapType(keyType=T.StringType()):  # its nulls are not fields, so they stay
            value = of(type_.valueType)
            return lambda v: f"{{{','.join(f'{_text(k)}:{value(x)}' for k, x in v)}}}"
        case T.StructType():
            parts = [(_text(f.name), of(f.dataType)) for f in type_.fields]

            def row(values: tuple[Any, ...]) -> str:
                pairs = zip(parts, values, strict=True)
                given = (f"{k}:{w(v)}" for (k, w), v in pairs if with_nulls or v is not None)
                return f"{{{','.join(given)}}}"

            return row
    raise UnsupportedLocally(f"{type_.simpleString()} as JSON")


def _to_json(arguments: list[Value]) -> Value:
    value, *options = arguments
    if not isinstance(value.type, T.ArrayType | T.StructType | T.MapType):
        raise UnsupportedLocally("to_json of a value that is not a struct, an array or a map")
    given = options[0].literal if options else ()
    if not isinstance(given, tuple):
        raise UnsupportedLocally("to_json with options that are not constant")
    found = dict(given)
    times = {name: found.pop(name) for name in _TIMES if name in found}
    with_nulls = found.pop("ignoreNullFields", "true") == "false"
    if found or times not in ({}, _TIMES):
        raise UnsupportedLocally("to_json with unsupported options")
    write = writer(value.type, with_nulls=with_nulls, has_times=bool(times))
    return each(STRING, write, value)


JSON: Mapping[str, Callable[[list[Value]], Value]] = {"to_json": _to_json}
