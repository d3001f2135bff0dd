"""Values as JSON, in the form of Spark's `to_json`, and parts of JSON."""

import json
import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from pyspark.sql import types as T

from sluice.interpreter import UnsupportedLocally
from sluice.interpreter.functions import only_text
from sluice.interpreter.values import STRING
from sluice.interpreter.values.column_batch import Function, Value, each
from sluice.interpreter.values.texts import (
    date_text,
    decimal_text,
    double_text,
    moment_text,
    single_text,
)

Writer = Callable[[Any], str]
_ESCAPED = re.compile(r"\\(?:u(00..)|.)")
_TIMES = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


def _text(value: str) -> str:
    """Return a text between quotes; Jackson writes control characters with capital digits."""
    escaped = json.dumps(value, ensure_ascii=False)
    return _ESCAPED.sub(lambda m: f"\\u{m[1].upper()}" if m[1] else m[0], escaped)


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


def _local(value: int) -> str:
    day, clock = moment_text(value - value % 1_000_000).split(" ")
    return f"{day}T{clock}.{value % 1_000_000:06}"


_FLAT: Mapping[type[T.DataType], Writer] = {
    **dict.fromkeys((T.ByteType, T.ShortType, T.IntegerType, T.LongType), str),
    T.BooleanType: lambda v: "true" if v else "false",
    T.StringType: _text,
    T.DoubleType: lambda v: _fraction(double_text(v)),
    T.FloatType: lambda v: _fraction(single_text(v)),
    T.BinaryType: lambda v: f'"{b64encode(v).decode()}"',
    T.DateType: lambda v: f'"{date_text(v)}"',
}
_MOMENTS: Mapping[type[T.DataType], Writer] = {
    T.TimestampType: lambda v: f'"{_local(v)}Z"',
    T.TimestampNTZType: lambda v: f'"{_local(v)}"',
}


def writer(type_: T.DataType, *, with_nulls: bool, has_times: bool) -> Writer:
    """Return the function that writes a value that is not null."""

    def of(inner: T.DataType) -> Writer:
        found = writer(inner, with_nulls=with_nulls, has_times=has_times)
        return lambda v: "null" if v is None else found(v)

    match type_:
        case T.DecimalType():
            return lambda v: _decimal(v, type_.scale)
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
    known = {**_FLAT, **(_MOMENTS if has_times else {})}
    if type(type_) not in known:
        raise UnsupportedLocally(f"{type_.simpleString()} as JSON")
    return known[type(type_)]


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


_PATH = re.compile(r"\$(?:\.\w[\w-]*|\['\w[\w -]*'\]|\[\d+\])*", re.ASCII)
_WIDE, _HALF = re.compile("[\U00010000-\U0010ffff]"), re.compile("[\ud800-\udfff]")
_STEP = re.compile(r"\.([\w-]+)|\['([\w -]+)'\]|\[(\d+)\]", re.ASCII)


def _get_json_object(arguments: list[Value]) -> Value:
    """Return a part of a JSON text. Texts that Jackson may read otherwise are left to Spark."""
    path = arguments[1].literal
    if not isinstance(path, str) or not _PATH.fullmatch(path):
        raise UnsupportedLocally("get_json_object by a path of more than names and numbers")
    steps = [int(n) if n else name or quoted for name, quoted, n in _STEP.findall(path)]

    def find(text: str) -> str | None:
        try:
            found = _parsed(text.lstrip(" \t\r\n"))
        except ValueError:
            return None
        for step in steps:
            if isinstance(step, str):
                found = found.get(step) if isinstance(found, dict) else None
                if found is None:
                    return None
            elif isinstance(found, list) and step < len(found):
                found = found[step]
            else:
                return None
        shown = found if isinstance(found, str) else _json(found)
        if _HALF.search(shown):
            raise UnsupportedLocally("JSON with half a character")
        return shown

    return each(STRING, find, only_text(arguments[0]))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise UnsupportedLocally("JSON with a name twice")
    return found


def _finite(text: str) -> float:
    if not isfinite(value := float(text)):
        raise UnsupportedLocally("JSON with a number beyond DOUBLE")
    return value


def _no_number(text: str) -> float:
    raise ValueError(text)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_finite, parse_constant=_no_number, strict=False
)


def _parsed(text: str) -> Any:
    """Return the value of a JSON text, without what follows an object. Raises ValueError."""
    try:
        value, end = _DECODER.raw_decode(text)
    except RecursionError:
        raise UnsupportedLocally("JSON nested too deeply") from None
    except ValueError:
        if "'" in text or len(text) > 1_000:  # which Jackson takes as quotes; a long number
            raise UnsupportedLocally("JSON that is not strict") from None
        raise
    if not isinstance(value, dict | list) and text[end:].strip():
        raise UnsupportedLocally("JSON that is not strict")
    return value


def _json(value: Any) -> str:
    match value:
        case dict():
            return f"{{{','.join(f'{_json(k)}:{_json(v)}' for k, v in value.items())}}}"
        case list():
            return f"[{','.join(map(_json, value))}]"
        case str():  # Jackson writes a character beyond 16 bits as two
            return _WIDE.sub(
                lambda m: json.dumps(m[0])[1:-1].upper().replace("U", "u"), _text(value)
            )
        case float():
            return double_text(value)
    return json.dumps(value)


JSON: Mapping[str, Function] = {"to_json": _to_json, "get_json_object": _get_json_object}
