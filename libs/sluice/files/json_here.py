"""Lines of JSON read in this process: the rows, reasons and texts that `json_texts` gives in Spark.

Cases that depend on Java's JSON parser raise NotHere.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from sluice.declare import pattern_problems
from sluice.declare.declared import Declared
from sluice.declare.delivered_row import RAW
from sluice.files.conversion import SHOWN, ddl
from sluice.files.filehead import FileHead
from sluice.files.here import PLACE, as_texts, frame, held
from sluice.files.json_texts import (
    BEHIND,
    ESCAPES,
    FAULT,
    HALF,
    MARK,
    MAY_BE_ALTERED,
    NO_OBJECT,
    TWICE_WITHIN,
    UNDECODED,
    UNPAIRED,
)
from sluice.files.retyped import NESTED
from sluice.interpreter.refusals import NotHere

MOST_NESTED, LONGEST_NAME, LONGEST = 1000, 50_000, 15_000_000  # Java's limits, the last one below
OWN = (StructField(MARK, StringType()), StructField(FAULT, StringType()))
DeclaredFields = Mapping[str, StructField]  # declared columns by the names of their fields
_SPACE = " \t\r\n"
_ALTERED, _UNPAIRED = re.compile(MAY_BE_ALTERED), re.compile(UNPAIRED)
_LINE_END = re.compile(rb"\r\n|\r|\n")
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_BEYOND = re.compile("[\U00010000-\U0010ffff]")
_ESCAPED = {ord(c): f"\\{e}" for c, e in zip('"\\\b\t\n\f\r', '"\\btnfr', strict=True)}
_ESCAPED = {**{n: f"\\u{n:04X}" for n in range(32)}, **_ESCAPED}


class _Number(str):
    """A number as written."""

    __slots__ = ()


class _Object(list[tuple[str, Any]]):
    """Fields of an object, in order; a name may occur twice."""


@dataclass(frozen=True)
class _Found:
    """One row of a line: an object, or a fault; `raw`: its text; `mark`: what encloses numbers."""

    fields: _Object
    raw: str
    mark: str = ""
    fault: str | None = None


def lines_here(session: SparkSession, spec: Declared, heads: Sequence[FileHead]) -> DataFrame:
    """Return the objects of lines: declared columns as texts, MARK, FAULT, RAW and place."""
    if further := sorted(spec.options.keys() - {"multiLine", *pattern_problems.OPTIONS}):
        raise NotHere(f"JSON with {', '.join(f'`{name}`' for name in further)}")
    is_whole = spec.options.get("multiLine", "false").lower() == "true"
    schema = session.createDataFrame([], ddl(spec)).schema
    declared = {name: schema[own] for name, own in spec.of_files.items()}
    types = {name: as_texts(f.dataType, session) for name, f in declared.items()}
    nested = {name: f for name, f in declared.items() if isinstance(f.dataType, NESTED)}
    rows: list[tuple[Any, ...]] = []
    for head in heads:
        data = held(head)
        for found in _rows([data] if is_whole else _LINE_END.split(data), nested):
            if is_whole and found.fault:
                raise NotHere("a malformed JSON document")
            values = _values(found, types)
            own = (found.mark or None, found.fault, found.raw)
            rows.append((*values, *own, head.file.uri, 0, len(rows)))
    texts = (StructField(declared[name].name, type_) for name, type_ in types.items())
    return frame(session, rows, [*texts, *OWN, StructField(RAW, StringType()), *PLACE])


def _rows(lines: Sequence[bytes], nested: DeclaredFields) -> Iterator[_Found]:
    for line in lines:
        text = line.decode("utf-8", "replace").lstrip("\ufeff")
        if len(text) > LONGEST:
            raise NotHere("a very long line of JSON")
        if text.strip(_SPACE):
            fault = _undecoded(line, text) or (HALF if _is_unpaired(text) else None)
            yield from (
                [_Found(_Object(), _as_is(text), fault=fault)] if fault else _of_line(text, nested)
            )


def _undecoded(line: bytes, text: str) -> str | None:
    try:
        line.decode()
    except UnicodeDecodeError:
        if _as_is(text) != text:
            raise NotHere("a JSON array with bytes that are not UTF-8") from None
        return UNDECODED
    return None


def _escaped(text: str) -> str:
    for pair, code in ESCAPES:
        text = text.replace(pair, code)
    return text


def _is_unpaired(text: str) -> bool:
    return "\\u" in text and _UNPAIRED.search(_escaped(text)) is not None


def _as_is(text: str) -> str:
    """Return a line as its row's text: a list of changed numbers has lost its escapes."""
    is_list = text.lstrip(_SPACE).startswith("[")
    return _escaped(text) if is_list and _ALTERED.search(text) else text


def _of_line(text: str, nested: DeclaredFields) -> Iterator[_Found]:
    found, is_whole = _parsed(text)
    mark = f"#{hash(text)}#" if nested and _ALTERED.search(text) else ""
    if isinstance(found, _Object):
        fault = _fault(found, nested) if is_whole else BEHIND
        yield _Found(found, text, mark, fault)
    elif is_whole and isinstance(found, list) and all(_is_object(one) for one in found):
        for one in found:
            fault = _fault(one, nested) if one is not None else NO_OBJECT
            yield _Found(one or _Object(), _written(one), mark, fault)
    else:
        yield _Found(_Object(), _as_is(text), fault=NO_OBJECT)


def _is_object(value: Any) -> bool:
    return value is None or isinstance(value, _Object)


def _parsed(text: str) -> tuple[Any, bool]:
    """Return the first value of a text, null if there is none, and whether it is the only one."""
    if text.count("[") + text.count("{") >= MOST_NESTED - 1 and _depth(text) >= MOST_NESTED - 1:
        if _depth(text) <= MOST_NESTED:
            raise NotHere("deeply nested JSON")
        return None, False
    start = len(text) - len(text.lstrip(_SPACE))
    try:
        found, end = _parser().raw_decode(text, start)
    except ValueError:
        return None, False
    except RecursionError:
        raise NotHere("deeply nested JSON") from None
    return found, not text[end:].strip(_SPACE)


def _depth(text: str) -> int:
    depth = most = 0
    for sign in re.findall(r"[\[{\]}]", _TEXT.sub("", text)):
        depth += 1 if sign in "[{" else -1
        most = max(most, depth)
    return most


@lru_cache(maxsize=1)
def _parser() -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=_object, parse_float=_Number, parse_int=_Number, parse_constant=_Number
    )


def _object(pairs: list[tuple[str, Any]]) -> _Object:
    if any(len(name) > LONGEST_NAME for name, _ in pairs):
        raise ValueError("a name is too long")
    return _Object(pairs)


def _fault(found: _Object, nested: DeclaredFields) -> str | None:
    """Return the faults of an object, regardless of its scalars' types."""
    if twice := _twice(found):
        return f"field {twice[:SHOWN]} is repeated"
    fields = dict(found)
    for name, f in nested.items():
        if (value := fields.get(name)) is not None and not _has_shape(value, f.dataType):
            return f"column {f.name}: {_plain(value)[:SHOWN]} is not a valid {_type(f.dataType)}"
    if nested and _repeats(found):
        return TWICE_WITHIN
    return None


def _type(type_: DataType) -> str:
    return type_.simpleString().upper()


def _twice(found: _Object) -> str | None:
    seen = set[str]()
    for name, _ in found:
        if name in seen:
            return name
        seen.add(name)
    return None


def _repeats(value: Any) -> bool:
    """True if an object in it has a field twice."""
    if isinstance(value, _Object):
        names = {name for name, _ in value}
        return len(names) < len(value) or any(_repeats(v) for _, v in value)
    return isinstance(value, list) and any(map(_repeats, value))


def _has_shape(value: Any, type_: DataType) -> bool:
    is_object = isinstance(value, _Object)
    if isinstance(type_, ArrayType):
        return isinstance(value, list) and not is_object
    return is_object


def _plain(value: Any, mark: str = "") -> str:
    """Return a value of JSON as a text."""
    if isinstance(value, _Number):
        return f"{mark}{value}{mark}"
    return value if isinstance(value, str) else _written(value, mark)


def _written(value: Any, mark: str = "") -> str:
    """Return a value as Java writes JSON; marked numbers are texts."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case _Number():
            return f'"{mark}{value}{mark}"' if mark else value
        case str():
            return f'"{_BEYOND.sub(_pair, value.translate(_ESCAPED))}"'
        case _Object():
            pairs = (f"{_written(name)}:{_written(v, mark)}" for name, v in value)
            return f"{{{','.join(pairs)}}}"
    return f"[{','.join(_written(v, mark) for v in value)}]"


def _pair(found: re.Match[str]) -> str:
    """Return a character of two UTF-16 units as Java escapes it in JSON."""
    high, low = divmod(ord(found[0]) - 0x10000, 0x400)
    return f"\\u{0xD800 + high:X}\\u{0xDC00 + low:X}"


def _values(found: _Found, types: dict[str, DataType]) -> list[Any]:
    if found.fault:
        return [None] * len(types)
    fields, lower = dict(found.fields), {name.lower(): name for name in types}
    if any(lower.get(key.lower(), key) != key for key in fields):
        raise NotHere("a JSON field whose name differs from a column's only in case")
    return [_text(fields.get(name), type_, found.mark) for name, type_ in types.items()]


def _text(value: Any, type_: DataType, mark: str) -> Any:
    """Return a value of JSON as the texts of a type. Raises NotHere if its shape is another."""
    match value, type_:
        case None, _:
            return None
        case _, StringType():
            return _plain(value, mark)
        case _Object(), MapType():
            return [(k, _text(v, type_.valueType, mark)) for k, v in value]
        case _Object(), StructType():
            fields = dict(value)
            return {f.name: _text(fields.get(f.name), f.dataType, mark) for f in type_.fields}
        case list(), ArrayType() if not isinstance(value, _Object):
            return [_text(v, type_.elementType, mark) for v in value]
    raise NotHere("a JSON value whose structure differs from its column's type")
