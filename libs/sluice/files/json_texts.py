"""Lines of JSON as rows of texts: each value as it was written, each bad line with its reason.

Spark's parser reads numbers with a fraction as binary ones, stops after the first object, and takes
the last of two fields with one name. So numbers are first quoted between delimiters that the line
can't hold. Field names are checked before values.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.types import StructField

from sluice.declare.declared import Declared
from sluice.declare.delivered_row import FILE, RAW
from sluice.files.conversion import BLOCK, ROW, SHOWN, ddl
from sluice.files.nested_types import texts_of
from sluice.files.retyped import NESTED
from sluice.files.spelled import Texts
from sluice.files.texts import of_texts
from sluice.gate.rules.sql import field_name, name, text

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
    named = _named(lines, _Syntax.of(spec), ())
    good = named.where(f"{FAULT} IS NULL")
    names = good.selectExpr(f"explode({NAMES}) AS name").distinct().toArrow()
    return sorted(names["name"].to_pylist())


def _named(lines: DataFrame, syntax: "_Syntax", place: Sequence[str]) -> DataFrame:
    """Return the objects of lines with their MARK, their line's FAULT, and their fields' NAMES."""
    marked = lines.selectExpr(LINE, *place, f"{_mark()} AS {MARK}")
    documents = marked.selectExpr("*", f"{_document(syntax)} AS {DOCUMENT}")
    judged = documents.selectExpr("*", f"{_fault_of_line(syntax)} AS {FAULT}")
    objects = judged.selectExpr("*", f"explode({_objects_of_line(syntax)}) AS {OBJECT}")
    return objects.selectExpr("*", f"{syntax.names(OBJECT)} AS {NAMES}")


def _objects(lines: DataFrame, spec: Declared) -> DataFrame:
    """Return the declared columns of each object as texts, with its MARK, FAULT and RAW."""
    schema = lines.sparkSession.createDataFrame([], ddl(spec)).schema
    declared = [schema[own] for own in spec.of_files.values()]
    syntax = _Syntax.of(spec)
    place = [c for c in (FILE, BLOCK, ROW) if c in lines.columns]
    named = _named(lines, syntax, place)
    bare = Texts(mark=MARK).restored(OBJECT)
    parsed = named.selectExpr(
        "*", f"{syntax.parsed(OBJECT, _texts(declared, spec.names))} AS _sluice_texts"
    )
    return parsed.selectExpr(
        *(f"_sluice_texts.{_field(f, spec.names)} AS {name(f.name)}" for f in declared),
        *place,
        MARK,
        f"coalesce({FAULT}, {_fault_of_object(declared, syntax, spec.names)}) AS {FAULT}",
        f"CASE WHEN {_is_list(LINE)} THEN coalesce({bare}, 'null') ELSE {LINE} END AS {RAW}",
    )


def _mark() -> str:
    """Return SQL for a delimiter that the line can't hold: its hash; null if no number needs it."""
    is_altered = f"{LINE} RLIKE {text(MAY_BE_ALTERED)}"
    return f"CASE WHEN {is_altered} THEN concat('#', xxhash64({LINE}), '#') END"


def _escaped() -> str:
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
    parts = f"transform(split({_escaped()}, '\"', -1), {marked})"
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
        """The pattern of a number."""
        is_finite = self.options.get("allowNonNumericNumbers", "true").lower() == "false"
        return FINITE if is_finite else ANY_NUMBER

    def names(self, sql: str) -> str:
        """Return SQL for the names of an object's fields; null if it is no object."""
        if not self.options:
            return f"json_object_keys({sql})"
        return f"map_keys(from_json({sql}, 'MAP<STRING, STRING>', {self._given()}))"

    def is_whole(self, sql: str) -> str:
        """Return SQL that is true of a single JSON value: an appended field directly follows it."""
        last = f"string(xxhash64({LINE}))"
        wrapped = f"concat('{{\"a\":', {sql}, '\\n,\"', {last}, '\":0}}')"
        return f"{self.names(wrapped)} <=> array('a', {last})"

    def parsed(self, sql: str, schema: str) -> str:
        return f"from_json({sql}, {text(schema)}, {self._given()})"

    def objects(self, sql: str) -> str:
        """Return SQL for the texts of a list's objects; null if it holds anything else."""
        is_of_objects = f"{self.parsed(sql, 'ARRAY<MAP<STRING, STRING>>')} IS NOT NULL"
        return f"CASE WHEN {is_of_objects} THEN {self.parsed(sql, 'ARRAY<STRING>')} END"

    def _given(self) -> str:
        own = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
        given = {"allowSingleQuotes": "false", **self.options, **own}
        return f"map({', '.join(text(part) for pair in given.items() for part in pair)})"


def _fault_of_line(syntax: _Syntax) -> str:
    is_unpaired = f"contains({LINE}, {CODE}) AND {_escaped()} RLIKE {text(UNPAIRED)}"
    return (
        f"CASE WHEN {LINE} IS NULL THEN 'the message has no value' "
        f"WHEN NOT is_valid_utf8({LINE}) THEN {text(UNDECODED)} "
        f"WHEN {is_unpaired} THEN {text(HALF)} "
        f"WHEN {syntax.is_whole(DOCUMENT)} THEN NULL "
        f"WHEN {syntax.names(DOCUMENT)} IS NOT NULL THEN {text(BEHIND)} ELSE {text(NO_OBJECT)} END"
    )


def _objects_of_line(syntax: _Syntax) -> str:
    of_list = f"coalesce({syntax.objects(DOCUMENT)}, array({DOCUMENT}))"
    is_list = f"{FAULT} IS NULL AND {_is_list(DOCUMENT)}"
    return f"CASE WHEN {is_list} THEN {of_list} ELSE array({DOCUMENT}) END"


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
    plain = syntax.parsed(OBJECT, ", ".join(f"{one} STRING" for one in field.values()))
    written = {n: Texts(mark=MARK).restored(f"{plain}.{one}") for n, one in field.items()}
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
    """Return the name, quoted, of the field that a column is read from."""
    return field_name(names.get(column.name, column.name))


def _texts(declared: list[StructField], names: Mapping[str, str]) -> str:
    columns = (f"{_field(f, names)} {texts_of(f.dataType)}" for f in declared)
    return ", ".join([*columns, f"{CORRUPT} STRING"])
