"""Spellings accepted for each type in any text, and the SQL that reads values in them.

Every expression is null if its text is not accepted. So if a text is given but its value is null,
the row gets a reason and goes to quarantine.

A text is accepted if it matches its type's patterns, ignoring surrounding spaces and tabs, and its
value is within the type's bounds. Patterns mean the same in Java, RE2 and Python: no look-around,
no back-references, ASCII classes alone. Every reader of texts uses them:

- A number with an exponent is written out before it is matched against `exact`: `1.5e1` is `15.`.
- FLOAT and DOUBLE take the nearest binary fraction. These are out of bounds: a finite text that
  would become infinite, and a nonzero text that would become zero.
- Dates and times exist in the calendar, in years 1 to 9999, also in UTC; a local time exists in its
  zone, and is the earlier one of two.
- Base64 has a multiple of four characters.
- A locale lets a decimal be grouped: GROUPS_OF_COMMA if its point is a comma, else
  GROUPS_OF_POINT. Once its groups are removed and its comma is a point, it is as above.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from sluice.declare.declared import CUT, FILE, RAW, REASON, Declared
from sluice.files.conversion import METADATA, NESTED, SHOWN, ddl, finish
from sluice.gate.sql import as_json, every, field_name, name, text
from sluice.language.types import INTEGERS, Decimal, base_name

AROUND = " \t"
NUMBER = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)"
EXPONENT = "[eE]"
NOT_ZERO = "[^eE1-9]*[1-9].*"
NOT_FINITE = r"(?i:nan)|[+-]?(?i:inf|infinity)"
YES = "(?i:true|t|yes|y|1)"
NO = "(?i:false|f|no|n|0)"
DAY = "[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
MIDNIGHT = r"[T ]00:00(:00(\.0+)?)?Z?"
SECONDS = r":[0-9]{2}(\.[0-9]{1,6}0*)?"
LOCAL = rf"{DAY}([T ][0-9]{{1,2}}:[0-9]{{2}}({SECONDS})?)?"
REGION = "[A-Za-z_]{1,40}(/[A-Za-z0-9_+-]{1,40}){1,3}"
ZONE = f" ?(Z|UTC|GMT|[+-][0-9]{{2}}(:?[0-9]{{2}})?|{REGION})"
INSTANT = f"{LOCAL}|{DAY}[T ][0-9]{{1,2}}:[0-9]{{2}}({SECONDS})?{ZONE}"
BASE64 = "[A-Za-z0-9+/]*([AEIMQUYcgkosw048]=|[AQgw]==)?"  # no bits are left over
GROUPS_OF_COMMA = (
    r"[+-]?[0-9]{1,3}([. '\u00a0\u202f\u2019][0-9]{3}){1,12}(,[0-9]*)?|[+-]?[0-9]*(,[0-9]*)?"
)
GROUPS_OF_POINT = r"[+-]?[0-9]{1,3}([,'\u2019][0-9]{3}){1,12}(\.[0-9]*)?|[+-]?[0-9]*(\.[0-9]*)?"


@dataclass(frozen=True)
class Spelling:
    """Accepted texts of a type: their shape and, for exact numbers, the written-out form."""

    shape: str
    exact: str = ""


def spelling(type_: str) -> Spelling:
    """Return the spelling of a scalar type that is not text itself."""
    if base_name(type_) in INTEGERS:
        return Spelling(f"{NUMBER}({EXPONENT}[+-]?[0-9]{{1,2}})?", r"[+-]?[0-9]*(\.0*)?")
    if decimal := Decimal.of(type_):
        # No more digits than the type has, except zeros.
        exact = rf"[+-]?0*[0-9]{{0,{decimal.whole}}}(\.[0-9]{{0,{decimal.scale}}}0*)?"
        return Spelling(f"{NUMBER}({EXPONENT}[+-]?[0-9]{{1,2}})?", exact)
    return _OF_TYPES[base_name(type_)]


_BINARY_FRACTION = Spelling(f"{NUMBER}({EXPONENT}[+-]?[0-9]{{1,4}})?|{NOT_FINITE}")
_OF_TYPES = {
    "FLOAT": _BINARY_FRACTION,
    "DOUBLE": _BINARY_FRACTION,
    "BOOLEAN": Spelling(f"{YES}|{NO}"),
    "DATE": Spelling(f"{DAY}({MIDNIGHT})?"),
    "TIMESTAMP": Spelling(INSTANT),
    "TIMESTAMP_NTZ": Spelling(LOCAL),
    "BINARY": Spelling(BASE64),
}
FORMATS = {
    "DATE": "dateFormat",
    "TIMESTAMP": "timestampFormat",
    "TIMESTAMP_NTZ": "timestampNTZFormat",
}
HAS_OFFSET = re.compile("[OXxZ]")
QUOTED = re.compile("'[^']*'")
OFFSET = r"\A([+-]|(Z|UTC|GMT)\z)"
MICROSECOND = 6  # digits of a second
CULTURE = ("locale", "timeZone")
TextStep = Callable[[str], str]
NUMBERS = (*INTEGERS, "DECIMAL", "FLOAT", "DOUBLE")
GROUPS = ". '\u00a0\u202f\u2019"
COMMA_LOCALES = """bg-BG cs-CZ da-DK de-AT de-DE el-GR es-ES fi-FI fr-FR hr-HR hu-HU it-IT nb-NO
    nl-BE nl-NL pl-PL pt-BR pt-PT ro-RO ru-RU sk-SK sl-SI sv-SE tr-TR uk-UA""".split()  # noqa: SIM905
POINT_LOCALES = ("de-CH", "en-GB", "en-US", "ja-JP", "zh-CN")
HAS_COMMA = dict.fromkeys(COMMA_LOCALES, "true") | dict.fromkeys(POINT_LOCALES, "false")


@dataclass(frozen=True)
class Texts:
    """Texts of one format, read with a source's options.

    `mark`: SQL for the delimiters of quoted numbers; null if none were quoted.
    """

    options: Mapping[str, str] = field(default_factory=dict)
    mark: str = ""

    @property
    def is_json(self) -> bool:
        return bool(self.mark)

    def steps(self, type_: DataType) -> tuple[TextStep, ...]:
        """Return the steps from a text to a value; each is SQL over the result of the one before.

        They are separate because each names its text several times.
        """
        match type_:
            case ArrayType():
                return (lambda sql: self._array(sql, type_.elementType),)
            case MapType():
                return (lambda sql: self._map(sql, type_),)
            case StructType():
                return (lambda sql: self._struct(sql, type_),)
        return (self.restore, *self._scalar(type_.simpleString().upper()))

    def restore(self, sql: str, *quotes: str) -> str:
        """Return SQL for a text without delimiters: its numbers as they were written.

        `quotes`: how quotes around delimiters may be written besides.
        """
        if not self.mark:
            return sql
        bare = sql
        for quote in (*quotes, '"', ""):
            for marked in (f"concat('{quote}', {self.mark})", f"concat({self.mark}, '{quote}')"):
                bare = f"replace({bare}, {marked}, '')"
        return f"CASE WHEN {self.mark} IS NULL THEN {sql} ELSE {bare} END"

    def show(self, sql: str) -> str:
        """Return SQL for a nested value's text, in which an object may be a text."""
        return self.restore(f"to_json({sql})", r'\\"')

    def _each(self, sql: str, type_: DataType) -> str:
        """Return SQL for all values of a list of texts; null where one is not accepted."""
        for step in self.steps(type_):
            v = _variable(sql)
            sql = f"transform({sql}, {v} -> {step(v)})"
        return sql

    def _array(self, sql: str, type_: DataType) -> str:
        values = self._each(sql, type_)
        return f"CASE WHEN {_nulls(values)} = {_nulls(sql)} THEN {values} END"

    def _map(self, sql: str, type_: MapType) -> str:
        keys, values = f"map_keys({sql})", self._array(f"map_values({sql})", type_.valueType)
        read = self._array(keys, type_.keyType)
        is_map = f"size(array_distinct({read})) = size({keys}) AND {values} IS NOT NULL"
        return f"CASE WHEN {is_map} THEN map_from_arrays({read}, {values}) END"

    def _struct(self, sql: str, type_: StructType) -> str:
        if not type_.fields:
            return sql
        inner = {f.name: f"{sql}.{field_name(f.name)}" for f in type_.fields}
        values = {
            f.name: f"element_at({self._each(f'array({inner[f.name]})', f.dataType)}, 1)"
            for f in type_.fields
        }
        made = ", ".join(f"{text(n)}, {value}" for n, value in values.items())
        v = _variable(made)
        kept = every(f"{inner[n]} IS NULL OR {v}.{field_name(n)} IS NOT NULL" for n in inner)
        checked = f"transform(array(named_struct({made})), {v} -> CASE WHEN {kept} THEN {v} END)"
        return f"CASE WHEN {sql} IS NOT NULL THEN element_at({checked}, 1) END"

    def _scalar(self, type_: str) -> tuple[TextStep, ...]:
        if type_ == "STRING":
            return ()
        if type_ == "BINARY" and not self.is_json:
            return (lambda sql: f"CAST({sql} AS BINARY)",)
        if FORMATS.get(type_) in self.options:
            return (lambda sql: self._by_pattern(sql, type_),)
        around = text(AROUND)
        return (lambda sql: f"trim(BOTH {around} FROM {sql})", *self._steps_of(type_))

    def _steps_of(self, type_: str) -> tuple[TextStep, ...]:
        kind = base_name(type_)
        if kind == "TIMESTAMP":
            return (lambda sql: _instant(sql, self.options.get("timeZone", "")),)
        steps: tuple[TextStep, ...] = (
            (lambda sql: _OTHERS[kind](sql, type_),)
            if kind in _OTHERS
            else (lambda sql: _written_out(sql, type_), lambda sql: _exact(sql, type_))
        )
        is_grouped = kind in NUMBERS and "locale" in self.options and not self.is_json
        return (self._ungroup, *steps) if is_grouped else steps

    def _by_pattern(self, sql: str, type_: str) -> str:
        """Return SQL for a value by the pattern in the options, as Spark reads CSV."""
        cell = f"concat('\"', replace({sql}, '\"', '\"\"'), '\"')"
        read = f"from_csv({cell}, 'v {type_}', {self.culture(FORMATS[type_])}).v"
        is_kept = f"NOT {sql} RLIKE '[\\\\r\\\\n]'"
        pattern = self.options[FORMATS[type_]]
        if (
            type_ == "TIMESTAMP"
            and "timeZone" in self.options
            and not HAS_OFFSET.search(QUOTED.sub("", pattern))
        ):
            wall = Texts({"timestampNTZFormat": pattern, **self.options})
            local = f"from_csv({cell}, 'v TIMESTAMP_NTZ', {wall.culture('timestampNTZFormat')}).v"
            shown = f"from_utc_timestamp({read}, {text(self.options['timeZone'])})"
            is_kept += f" AND {shown} = CAST({local} AS TIMESTAMP)"  # false if the zone skips it
        return f"CASE WHEN {is_kept} THEN {_within(read)} END"

    def cut(self, sql: str, type_: DataType) -> str:
        """Return SQL that is true if a pattern cuts digits of the text; '' if none does."""
        kinds = set(re.findall(r"[A-Z_]+", type_.simpleString().upper()))
        places = [self._places(kind) for kind in FORMATS if kind in kinds]
        further = max(places, default=0) - MICROSECOND
        if further <= 0:
            return ""
        digits = rf"[0-9]{{{MICROSECOND}}}(?!0{{{further}}})[0-9]{{{further}}}(?![0-9])"
        return f"{sql} RLIKE {text(digits)}"

    def _places(self, kind: str) -> int:
        return max(map(len, re.findall("S+", self.options.get(FORMATS[kind], ""))), default=0)

    def culture(self, *more: str) -> str:
        """Return SQL for the options of Spark's reader: locale, zone and these."""
        given = {o: self.options[o] for o in (*CULTURE, *more) if o in self.options}
        parts = (text(part) for pair in {**given, "escape": '"'}.items() for part in pair)
        return f"map({', '.join(parts)})"

    def _ungroup(self, sql: str) -> str:
        """Return SQL for a number grouped as in the locale, without groups and with a point.

        What Java knows of rarer locales, Spark is asked.
        """
        asked = f"from_csv('\"1,5\"', 'v DECIMAL(3, 1)', {self.culture()}).v = 1.5BD"
        has_comma = HAS_COMMA.get(self.options["locale"], asked)
        comma, point = (_is(sql, pattern) for pattern in (GROUPS_OF_COMMA, GROUPS_OF_POINT))
        between = text(",'\u2019")
        with_point = f"translate({sql}, {text(',' + GROUPS)}, '.')"
        return (
            f"CASE WHEN {_is(sql, NOT_FINITE)} THEN {sql} "
            f"WHEN {has_comma} THEN CASE WHEN {comma} THEN {with_point} END "
            f"WHEN {point} THEN translate({sql}, {between}, '') END"
        )


def _variable(sql: str) -> str:
    return next(v for n in count() if (v := f"v{n}") not in sql)


def _is(sql: str, pattern: str) -> str:
    whole = rf"\A(?:{pattern})\z"
    return f"{sql} RLIKE {text(whole)}"


def _nulls(sql: str) -> str:
    return f"size(filter({sql}, v -> v IS NULL))"


def _exact(sql: str, type_: str) -> str:
    number = f"try_cast({sql} AS DECIMAL(38, 0))" if type_ in INTEGERS else sql
    return f"CASE WHEN {_is(sql, spelling(type_).exact)} THEN try_cast({number} AS {type_}) END"


def _written_out(sql: str, type_: str) -> str:
    """Return SQL for a number without its exponent; the number itself if it has none."""
    before, behind, shift = (
        f"regexp_extract({sql}, {text(pattern)}, 1)"
        for pattern in (r"\A[+-]?([0-9]*)", r"\.([0-9]*)", r"[eE](.*)\z")
    )
    exponent = f"CAST({shift} AS INT)"
    place = f"greatest(-({exponent}), length({before}))"
    digits = (
        f"concat(lpad({before}, {place}, '0'),"
        f" rpad({behind}, greatest({exponent}, length({behind})), '0'))"
    )
    sign = f"CASE WHEN startswith({sql}, '-') THEN '-0' ELSE '0' END"
    whole = f"left({digits}, {place} + {exponent})"
    rest = f"substr({digits}, {place} + {exponent} + 1)"
    has_exponent = f"{sql} RLIKE '{EXPONENT}' AND {_is(sql, spelling(type_).shape)}"
    return f"CASE WHEN {has_exponent} THEN concat({sign}, {whole}, '.', {rest}) ELSE {sql} END"


def _binary_fraction(sql: str, type_: str) -> str:
    value = f"try_cast({sql} AS {type_})"
    is_held = f"abs({value}) < double('Infinity')"
    is_zero = f"{value} = 0 AND {_is(sql, NOT_ZERO)}"
    is_finite = _is(sql, f"{NUMBER}({EXPONENT}[+-]?[0-9]{{1,4}})?")
    return (
        f"CASE WHEN {_is(sql, NOT_FINITE)} THEN {value} "
        f"WHEN {is_finite} AND {is_held} AND NOT ({is_zero}) THEN {value} END"
    )


def _boolean(sql: str, _: str) -> str:
    yes, no = _is(sql, YES), _is(sql, NO)
    return f"CASE WHEN {yes} THEN true WHEN {no} THEN false END"


def _local_time(sql: str, type_: str) -> str:
    shown = f"regexp_extract({sql}, '^[0-9-]+', 0)" if base_name(type_) == "DATE" else sql
    value = _within(f"try_cast({shown} AS {type_})")
    return f"CASE WHEN {_is(sql, spelling(type_).shape)} THEN {value} END"


def _instant(sql: str, zone: str) -> str:
    """Return SQL for a time in the zone behind it; without one, in the given zone or UTC."""
    local = f"try_cast({sql} AS TIMESTAMP)"
    if zone:
        is_date = f"length({sql}) <= 10"
        wall = f"CASE WHEN {is_date} THEN concat({sql}, ' 00:00') ELSE {sql} END"
        local = _in_zone(wall, text(zone))
    first = rf"\A({LOCAL})"
    wall = f"regexp_extract({sql}, {text(first)}, 1)"
    behind = f"trim(substr({sql}, length({wall}) + 1))"
    return (
        f"CASE WHEN {_is(sql, LOCAL)} THEN {_within(local)} "
        f"WHEN {_is(sql, spelling('TIMESTAMP').shape)} THEN {_within(_in_zone(wall, behind))} END"
    )


def _in_zone(wall: str, zone: str) -> str:
    """Return SQL for a local time of a zone; null for one that the zone skips."""
    seconds = f"CASE WHEN {wall} RLIKE ':[0-9]{{2}}:' THEN '' ELSE ':00' END"
    value = f"try_cast(concat({wall}, {seconds}, ' ', {zone}) AS TIMESTAMP)"
    shown = f"from_utc_timestamp({value}, {zone}) = try_cast({wall} AS TIMESTAMP)"
    is_offset = f"{zone} RLIKE {text(OFFSET)}"
    return f"CASE WHEN {is_offset} OR {shown} THEN {value} END"


def _within(sql: str) -> str:
    return f"CASE WHEN year({sql}) BETWEEN 1 AND 9999 THEN {sql} END"


def _base64(sql: str, type_: str) -> str:
    is_taken = f"{_is(sql, spelling(type_).shape)} AND length({sql}) % 4 = 0"
    return f"CASE WHEN {is_taken} THEN unbase64({sql}) END"


_OTHERS = {
    "FLOAT": _binary_fraction,
    "DOUBLE": _binary_fraction,
    "BOOLEAN": _boolean,
    "DATE": _local_time,
    "TIMESTAMP_NTZ": _local_time,
    "BINARY": _base64,
}
REPLACEMENT = "\ufffd"  # a decoder's replacement for bytes outside its encoding
VALUE = "_sluice_value_"


def of_texts(
    rows: DataFrame, spec: Declared, texts: Texts, *, reason: str, values: Collection[str] = ()
) -> DataFrame:
    """Return the declared columns in their types, and conversion.OWN.

    `reason`: SQL for what the reader reports of a row. A column that the rows lack is null.
    `values`: columns that are of their types already.
    """
    declared = rows.sparkSession.createDataFrame([], ddl(spec)).schema.fields
    lacking = [f for f in declared if f.name not in rows.columns]
    nulls = (f"CAST(NULL AS STRING) AS {name(f.name)}" for f in lacking)
    known = rows.selectExpr("*", *nulls, *(() if FILE in rows.columns else METADATA))
    read = [f for f in declared if f.name not in values]
    typed = _convert(known, read, texts)
    types = {c.name: c.type for c in spec.columns}
    said = (_says(f, types[f.name], texts) for f in read)
    says = f"coalesce({', '.join([reason, *filter(None, said), 'NULL'])})"
    cut = filter(None, (texts.cut(_text_in_file(f, texts), f.dataType) for f in read))
    counted = " + ".join(f"coalesce(CAST({condition} AS INT), 0)" for condition in cut)
    noted = [f"CAST({says} AS STRING) AS {REASON}", *([f"{counted} AS {CUT}"] if counted else [])]
    judged = typed.selectExpr("*", *noted)
    kept = {f.name: name(f.name) for f in declared}
    kept |= {f.name: f"{VALUE}{f.name}" for f in read}
    whole = as_json(f"struct({', '.join(name(f.name) for f in declared)})")
    raw = f"coalesce({RAW}, {whole})" if RAW in rows.columns else whole
    return finish(judged, spec, kept, raw)


def _convert(rows: DataFrame, read: Sequence[StructField], texts: Texts) -> DataFrame:
    """Return the rows with the values of their texts, computed a step at a time."""
    typed = rows.selectExpr("*", *(f"{name(f.name)} AS {VALUE}{f.name}" for f in read))
    steps = {f"{VALUE}{f.name}": texts.steps(f.dataType) for f in read}
    for nth in range(max(map(len, steps.values()), default=0)):
        now = {column: made[nth](column) for column, made in steps.items() if nth < len(made)}
        typed = typed.withColumns({column: F.expr(sql) for column, sql in now.items()})
    return typed


def _says(field: StructField, written: str, texts: Texts) -> str:
    """Return SQL for the reason of a badly encoded or rejected text; '' if there can be none."""
    column, type_ = name(field.name), field.dataType
    if isinstance(type_, (StringType, BinaryType)) and not texts.is_json:
        undecoded = f"NOT is_valid_utf8({column}) OR contains({column}, '{REPLACEMENT}')"
        why = text(f"column {field.name} has bytes that are invalid in the encoding")
        return f"CASE WHEN {undecoded} THEN {why} END"
    if isinstance(type_, StringType):
        return ""
    is_lost = f"{column} IS NOT NULL AND {VALUE}{field.name} IS NULL"
    shown = f"left({_text_in_file(field, texts)}, {SHOWN})"
    before, after = text(f"column {field.name}: "), text(f" is not a valid {written}")
    return f"CASE WHEN {is_lost} THEN concat({before}, {shown}, {after}) END"


def _text_in_file(field: StructField, texts: Texts) -> str:
    column = name(field.name)
    is_nested = isinstance(field.dataType, NESTED)
    return texts.show(column) if is_nested else texts.restore(column)
