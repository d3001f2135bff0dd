"""Lines of JSON as rows of texts: each value as it was written, each bad line with its reason.

Spark's parser reads numbers with a fraction as binary ones, stops after the first object, and takes
the last of two fields with one name. So numbers are first quoted between delimiters that the line
can't hold. Field names are checked before values.

In this process, lines give the same rows, reasons and texts. Cases that depend on Java's JSON
parser raise UnsupportedLocally.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from sluice.declare import declared
from sluice.declare.declared import FILE, RAW, Declared
from sluice.files.conversion import BLOCK, NESTED, ROW, SHOWN, ddl, texts_of
from sluice.files.filehead import FileHead
from sluice.files.here import PLACE, as_texts, content_of, frame
from sluice.files.spelled import Texts, of_texts
from sluice.gate.sql import field_name, text
from sluice.gate.sql import name as quoted
from sluice.interpreter import UnsupportedLocally

LINE = "value"
MARK, DOCUMENT, OBJECT, NAMES, FAULT = (
    f"_sluice_{what}" for what in ("mark", "document", "object", "names", "fault")
)
CORRUPT = "_sluice_corrupt"
SYNTAX = ("allow", "max")  # prefixes of the options that concern the syntax
FINITE = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
ANY_NUMBER = rf"{FINITE}|-?Infinity|NaN"
MAY_BE_ALTERED = r"[0-9][.eE]|[:\[, \t]-0|[0-9]{39}|NaN|Infinity"
HIGH, LOW = r"\\u[dD][89abAB][0-9a-fA-F]{2}", r"\\u[dD][c-fC-F]"
UNPAIRED = rf"{HIGH}(?!{LOW})|(?<!{HIGH}){LOW}"
ESCAPES = (("\\\\", "\\u005c"), ('\\"', "\\u0022"))
CODE = text("\\u")
NO_OBJECT = "does not parse as the declared schema"
UNDECODED = "has bytes that are invalid in the encoding"
HALF = "has half of a surrogate pair"
BEHIND = "only the first object of this line could be read"
TWICE_WITHIN = "an object in it has a field twice, or is too large"


def rows_of_lines(lines: DataFrame, spec: Declared) -> DataFrame:
    """Return the objects of lines in `value`, as declared, with FILE, BLOCK and perhaps ROW."""
    return of_texts(_objects(lines, spec), spec, Texts(spec.options, MARK), reason=f"`{FAULT}`")


def names_of_lines(lines: DataFrame, spec: Declared) -> list[str]:
    """Return the names of all fields of the objects of good lines. One Spark job."""
    named = _name_fields(lines, _Syntax.of(spec), ())
    good = named.where(f"{FAULT} IS NULL")
    names = good.selectExpr(f"explode({NAMES}) AS name").distinct().toArrow()
    return sorted(names["name"].to_pylist())


def _name_fields(lines: DataFrame, syntax: "_Syntax", place: Sequence[str]) -> DataFrame:
    """Return the objects of lines with their MARK, their line's FAULT, and their fields' NAMES.

    MARK is a delimiter that the line can't hold: its hash; null if no number needs it.
    """
    is_altered = f"{LINE} RLIKE {text(MAY_BE_ALTERED)}"
    mark = f"CASE WHEN {is_altered} THEN concat('#', xxhash64({LINE}), '#') END"
    marked = lines.selectExpr(LINE, *place, f"{mark} AS {MARK}")
    documents = marked.selectExpr("*", f"{_document(syntax)} AS {DOCUMENT}")
    judged = documents.selectExpr("*", f"{_fault_of_line(syntax)} AS {FAULT}")
    of_list = f"coalesce({syntax.objects(DOCUMENT)}, array({DOCUMENT}))"
    is_list = f"{FAULT} IS NULL AND {_is_list(DOCUMENT)}"
    each = f"CASE WHEN {is_list} THEN {of_list} ELSE array({DOCUMENT}) END"
    objects = judged.selectExpr("*", f"explode({each}) AS {OBJECT}")
    return objects.selectExpr("*", f"{syntax.names(OBJECT)} AS {NAMES}")


def _objects(lines: DataFrame, spec: Declared) -> DataFrame:
    """Return the declared columns of each object as texts, with its MARK, FAULT and RAW."""
    schema = lines.sparkSession.createDataFrame([], ddl(spec)).schema
    declared = [schema[own] for own in spec.of_files.values()]
    syntax = _Syntax.of(spec)
    place = [c for c in (FILE, BLOCK, ROW) if c in lines.columns]
    named = _name_fields(lines, syntax, place)
    bare = Texts(mark=MARK).restore(OBJECT)
    texts = [f"{_field(f, spec.names)} {texts_of(f.dataType)}" for f in declared]
    schema_of_texts = ", ".join([*texts, f"{CORRUPT} STRING"])
    parsed = named.selectExpr("*", f"{syntax.parse(OBJECT, schema_of_texts)} AS _sluice_texts")
    return parsed.selectExpr(
        *(f"_sluice_texts.{_field(f, spec.names)} AS {quoted(f.name)}" for f in declared),
        *place,
        MARK,
        f"coalesce({FAULT}, {_fault_of_object(declared, syntax, spec.names)}) AS {FAULT}",
        f"CASE WHEN {_is_list(LINE)} THEN coalesce({bare}, 'null') ELSE {LINE} END AS {RAW}",
    )


def _escaped_sql() -> str:
    """Return SQL for the line with quotes only around texts, and no escaped backslash."""
    escaped = LINE
    for pair, code in ESCAPES:
        escaped = f"replace({escaped}, {text(pair)}, {text(code)})"
    return escaped


def _document(syntax: "_Syntax") -> str:
    """Return SQL for the line with its numbers between quotes and delimiters."""
    quoted = f"concat('$1\"', {MARK}, '$2', {MARK}, '\"')"
    number = rf"([:\[,][ \t\r\n]*)({syntax.number})(?=[ \t\r\n]*(?:[,\]}}]|\z))"
    outside = f"regexp_replace(part, {text(number)}, {quoted})"
    marked = f"(part, i) -> CASE WHEN i % 2 = 0 THEN {outside} ELSE part END"
    parts = f"transform(split({_escaped_sql()}, '\"', -1), {marked})"
    return f"CASE WHEN {MARK} IS NULL THEN {LINE} ELSE array_join({parts}, '\"') END"


def _is_list(sql: str) -> str:
    return f"startswith(ltrim(' \\t\\r\\n', {sql}), '[')"


@dataclass(frozen=True)
class _Syntax:
    """Syntax of JSON as in RFC 8259, unless options differ."""

    options: Mapping[str, str]

    @classmethod
    def of(cls, spec: Declared) -> "_Syntax":
        return cls({o: v for o, v in spec.options.items() if o.startswith(SYNTAX)})

    @property
    def number(self) -> str:
        is_finite = self.options.get("allowNonNumericNumbers", "true").lower() == "false"
        return FINITE if is_finite else ANY_NUMBER

    def names(self, sql: str) -> str:
        """Return SQL for the names of an object's fields; null if it is no object."""
        if not self.options:
            return f"json_object_keys({sql})"
        return f"map_keys(from_json({sql}, 'MAP<STRING, STRING>', {self._map_options()}))"

    def is_whole(self, sql: str) -> str:
        """Return SQL that is true of a single JSON value: an appended field directly follows it."""
        last = f"string(xxhash64({LINE}))"
        wrapped = f"concat('{{\"a\":', {sql}, '\\n,\"', {last}, '\":0}}')"
        return f"{self.names(wrapped)} <=> array('a', {last})"

    def parse(self, sql: str, schema: str) -> str:
        return f"from_json({sql}, {text(schema)}, {self._map_options()})"

    def objects(self, sql: str) -> str:
        """Return SQL for the texts of a list's objects; null if it holds anything else."""
        is_of_objects = f"{self.parse(sql, 'ARRAY<MAP<STRING, STRING>>')} IS NOT NULL"
        return f"CASE WHEN {is_of_objects} THEN {self.parse(sql, 'ARRAY<STRING>')} END"

    def _map_options(self) -> str:
        own = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
        given = {"allowSingleQuotes": "false", **self.options, **own}
        return f"map({', '.join(text(part) for pair in given.items() for part in pair)})"


def _fault_of_line(syntax: _Syntax) -> str:
    is_unpaired = f"contains({LINE}, {CODE}) AND {_escaped_sql()} RLIKE {text(UNPAIRED)}"
    return (
        f"CASE WHEN {LINE} IS NULL THEN 'the message has no value' "
        f"WHEN NOT is_valid_utf8({LINE}) THEN {text(UNDECODED)} "
        f"WHEN {is_unpaired} THEN {text(HALF)} "
        f"WHEN {syntax.is_whole(DOCUMENT)} THEN NULL "
        f"WHEN {syntax.names(DOCUMENT)} IS NOT NULL THEN {text(BEHIND)} ELSE {text(NO_OBJECT)} END"
    )


def _fault_of_object(declared: list[StructField], syntax: _Syntax, names: Mapping[str, str]) -> str:
    again = f"filter({NAMES}, (n, i) -> array_position({NAMES}, n) <= i)"
    return (
        f"CASE WHEN {NAMES} IS NULL THEN {text(NO_OBJECT)} "
        f"WHEN size(array_distinct({NAMES})) < size({NAMES}) "
        f"THEN concat('field ', left(element_at({again}, 1), {SHOWN}), ' is repeated') "
        f"{_fault_of_nested(declared, syntax, names)}END"
    )


def _fault_of_nested(declared: list[StructField], syntax: _Syntax, names: Mapping[str, str]) -> str:
    """Return SQL for faults of nested columns: another shape, or a field repeated in an object."""
    nested = [f for f in declared if isinstance(f.dataType, NESTED)]
    if not nested:
        return f"WHEN _sluice_texts.{CORRUPT} IS NOT NULL THEN {text(NO_OBJECT)} "
    field = {f.name: _field(f, names) for f in nested}
    plain = syntax.parse(OBJECT, ", ".join(f"{one} STRING" for one in field.values()))
    written = {n: Texts(mark=MARK).restore(f"{plain}.{one}") for n, one in field.items()}
    wrong = " ".join(
        f"WHEN _sluice_texts.{field[f.name]} IS NULL AND {plain}.{field[f.name]} IS NOT NULL THEN "
        f"concat({text(f'column {f.name}: ')}, left({written[f.name]}, {SHOWN}), "
        f"{text(f' is not a valid {f.dataType.simpleString().upper()}')})"
        for f in nested
    )
    return (
        f"WHEN _sluice_texts.{CORRUPT} IS NOT NULL "
        f"THEN CASE {wrong} ELSE {text(NO_OBJECT)} END "
        f"WHEN try_parse_json({OBJECT}) IS NULL THEN {text(TWICE_WITHIN)} "
    )


def _field(column: StructField, names: Mapping[str, str]) -> str:
    return field_name(names.get(column.name, column.name))


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
    if further := sorted(spec.options.keys() - {"multiLine", *declared.PATTERN_OPTIONS}):
        raise UnsupportedLocally(f"JSON with {', '.join(f'`{name}`' for name in further)}")
    is_whole = spec.options.get("multiLine", "false").lower() == "true"
    schema = session.createDataFrame([], ddl(spec)).schema
    expected = {name: schema[own] for name, own in spec.of_files.items()}
    types = {name: as_texts(f.dataType, session) for name, f in expected.items()}
    nested = {name: f for name, f in expected.items() if isinstance(f.dataType, NESTED)}
    rows: list[tuple[Any, ...]] = []
    for head in heads:
        data = content_of(head)
        for found in _rows([data] if is_whole else _LINE_END.split(data), nested):
            if is_whole and found.fault:
                raise UnsupportedLocally("a malformed JSON document")
            values = _values(found, types)
            own = (found.mark or None, found.fault, found.raw)
            rows.append((*values, *own, head.file.uri, 0, len(rows)))
    texts = (StructField(expected[name].name, type_) for name, type_ in types.items())
    return frame(session, rows, [*texts, *OWN, StructField(RAW, StringType()), *PLACE])


def _rows(lines: Sequence[bytes], nested: DeclaredFields) -> Iterator[_Found]:
    for line in lines:
        text = line.decode("utf-8", "replace").lstrip("\ufeff")
        if len(text) > LONGEST:
            raise UnsupportedLocally("a very long line of JSON")
        if text.strip(_SPACE):
            fault = _find_undecoded(line, text)
            if not fault and "\\u" in text and _UNPAIRED.search(_escape(text)):
                fault = HALF
            yield from (
                [_Found(_Object(), _as_is(text), fault=fault)] if fault else _of_line(text, nested)
            )


def _find_undecoded(line: bytes, text: str) -> str | None:
    try:
        line.decode()
    except UnicodeDecodeError:
        if _as_is(text) != text:
            raise UnsupportedLocally("a JSON array with bytes that are not UTF-8") from None
        return UNDECODED
    return None


def _escape(text: str) -> str:
    for pair, code in ESCAPES:
        text = text.replace(pair, code)
    return text


def _as_is(text: str) -> str:
    """Return a line as its row's text: a list of changed numbers has lost its escapes."""
    is_list = text.lstrip(_SPACE).startswith("[")
    return _escape(text) if is_list and _ALTERED.search(text) else text


def _of_line(text: str, nested: DeclaredFields) -> Iterator[_Found]:
    found, is_whole = _parse(text)
    mark = f"#{hash(text)}#" if nested and _ALTERED.search(text) else ""
    if isinstance(found, _Object):
        fault = _fault(found, nested) if is_whole else BEHIND
        yield _Found(found, text, mark, fault)
    elif is_whole and isinstance(found, list) and all(isinstance(o, _Object | None) for o in found):
        for one in found:
            fault = _fault(one, nested) if one is not None else NO_OBJECT
            yield _Found(one or _Object(), _write(one), mark, fault)
    else:
        yield _Found(_Object(), _as_is(text), fault=NO_OBJECT)


def _parse(text: str) -> tuple[Any, bool]:
    """Return the first value of a text, null if there is none, and whether it is the only one."""
    if text.count("[") + text.count("{") >= MOST_NESTED - 1 and _depth(text) >= MOST_NESTED - 1:
        if _depth(text) <= MOST_NESTED:
            raise UnsupportedLocally("deeply nested JSON")
        return None, False
    start = len(text) - len(text.lstrip(_SPACE))
    try:
        found, end = _parser().raw_decode(text, start)
    except ValueError:
        return None, False
    except RecursionError:
        raise UnsupportedLocally("deeply nested JSON") from None
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
            type_ = f.dataType.simpleString().upper()
            return f"column {f.name}: {_plain(value)[:SHOWN]} is not a valid {type_}"
    if nested and _repeats(found):
        return TWICE_WITHIN
    return None


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
    return value if isinstance(value, str) else _write(value, mark)


def _write(value: Any, mark: str = "") -> str:
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
            pairs = (f"{_write(name)}:{_write(v, mark)}" for name, v in value)
            return f"{{{','.join(pairs)}}}"
    return f"[{','.join(_write(v, mark) for v in value)}]"


def _pair(found: re.Match[str]) -> str:
    """Return a character of two UTF-16 units as Java escapes it in JSON."""
    high, low = divmod(ord(found[0]) - 0x10000, 0x400)
    return f"\\u{0xD800 + high:X}\\u{0xDC00 + low:X}"


def _values(found: _Found, types: dict[str, DataType]) -> list[Any]:
    if found.fault:
        return [None] * len(types)
    fields, lower = dict(found.fields), {name.lower(): name for name in types}
    if any(lower.get(key.lower(), key) != key for key in fields):
        raise UnsupportedLocally("a JSON field whose name differs from a column's only in case")
    return [_text(fields.get(name), type_, found.mark) for name, type_ in types.items()]


def _text(value: Any, type_: DataType, mark: str) -> Any:
    """Return a value of JSON as the texts of a type.

    Raises UnsupportedLocally if its shape is another.
    """
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
    raise UnsupportedLocally("a JSON value whose structure differs from its column's type")
