"""Values of every type that are likely to go wrong, and expressions by chance over them."""

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from itertools import count, product
from random import Random
from typing import Any

from sluice.interpreter.expressions.compiling import COUNTS, FUNCTIONS
from sluice.interpreter.relations.aggregates import AGGREGATES

ROWS = 32
_DAY = dt.date
_AT = dt.datetime
_UTC = dt.UTC
VALUES: dict[str, tuple[str, tuple[Any, ...]]] = {
    "y": ("TINYINT", (0, 1, -1, 5, 127, -128)),
    "i": ("INT", (0, 1, -1, 2, 3, 7, -7, 100, 2**31 - 1, -(2**31))),
    "j": ("INT", (0, 1, 2, -1, -2, 3, 12, 366)),
    "l": ("BIGINT", (0, 1, -1, 86_400_000_000, 2**40, 2**63 - 1, -(2**63), 1_709_614_800_500_000)),
    "f": ("FLOAT", (0.0, -0.0, 1.5, -2.25, float("nan"), float("inf"))),
    "d": ("DOUBLE", (0.0, -0.0, 1.0, 0.1, -2.5, 1e7, 1e-3, 9.999e-4, 1.5e300, 1e22, 123456.789)),
    "e": ("DOUBLE", (1.0, 2.0, float("nan"), float("inf"), float("-inf"), -0.0, 4.0, 5e-324)),
    "m": ("DECIMAL(10, 2)", ("0.00", "1.00", "-1.50", "12.34", "99999999.99", "-0.01", "2.50")),
    "n": ("DECIMAL(38, 18)", ("0", "1.5", "-1.5", "1e-18", "12345678901234567890.123456789", "2")),
    "k": ("DECIMAL(20, 0)", ("0", "7", "-7", "99999999999999999999", "12")),
    "s": (
        "STRING",
        ("", "a", "b", "ab", "A b", " a ", "é", "12", "-7", "1.50", "zz", "\U0001f600"),
    ),
    "t": ("STRING", ("a", "", "b", " ", "ab", "2024-02-29", "2024-2-3", "month", "\u2028", "a%b")),
    "b": ("BOOLEAN", (True, False)),
    "x": ("BINARY", (b"", b"a", b"\xff\x00", b"ab")),
    "u": ("DATE", ("1970-01-01", "2024-02-29", "2023-12-31", "0001-01-01", "9999-12-31")),
    "v": ("DATE", ("2024-01-31", "2024-03-01", "1969-12-31", "1582-10-15")),
    "p": (
        "TIMESTAMP",
        (
            *("1970-01-01 00:00:00", "2024-02-29 23:59:59.999999", "1969-12-31 23:59:59.5"),
            *("2024-03-31 01:30:00", "2024-10-27 00:59:59", "0001-01-01 00:00:00"),
        ),
    ),
    "q": ("TIMESTAMP_NTZ", ("2024-03-31 02:30:00", "1970-01-01 12:00:00.000001")),
    "r": ("ARRAY<INT>", ([], [1], [3, 1, 2], [1, None, 1], [None], [5, 5])),
    "w": ("ARRAY<STRING>", ([], ["a"], ["b", "a", None], ["é", "z"], ["a", "a"])),
    "z": ("STRUCT<a: INT, b: STRING>", ((1, "x"), (None, "x"), (1, None), (2, "a"))),
    "o": ("STRUCT<a: INT, b: STRING>", ((1, "x"), (2, "x"), (None, None))),
    "zs": (
        "STRUCT<a: INT, c: STRUCT<a: STRUCT<b: STRING>, w: ARRAY<STRING>>>",
        ((1, (("x",), ["a", None])), (None, ((None,), [])), (2, (None, None)), (3, None)),
    ),
    "g": ("MAP<STRING, INT>", ({}, {"a": 1}, {"b": 2, "a": None})),
    "h": ("ARRAY<DOUBLE>", ([], [0.0, -0.0], [float("nan"), 1.0], [2.5, None])),
}
SCHEMA = ", ".join(["id INT", *(f"{name} {type_}" for name, (type_, _) in VALUES.items())])
CONSTANTS = (
    *("1", "0", "-1", "2", "3L", "1.5", "0.25", "2e0", "'a'", "''", "'%a%'", "'month'", "'day'"),
    *("'UTC'", "'Europe/Berlin'", "true", "NULL", "DATE'2024-03-01'", "'yyyy-MM-dd'", "','"),
    *(r"'\\A[a-z]+\\z'", "'[0-9]+'", "'week'", "'hour'", "100", "CAST(NULL AS INT)"),
)
CASTS = (
    *("TINYINT", "INT", "BIGINT", "DOUBLE", "DECIMAL(10, 2)", "DECIMAL(38, 18)", "DECIMAL(5, 0)"),
    *("STRING", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "ARRAY<STRING>", "BINARY"),
    *("STRUCT<a: BIGINT, b: STRING>", "ARRAY<BIGINT>", "FLOAT"),
)
_INFIX = frozenset(
    {"+", "-", "*", "/", "%", "div", "<", "<=", ">", ">=", "==", "!=", "<=>", "&", "|", "^"}
)
UNITS = ("YEAR", "quarter", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MICROSECOND")
INTERVAL_UNITS = (*UNITS[:1], *UNITS[2:], "MILLISECONDS")
ENDS = (r"'\n'", r"'\r\n'", r"'\r'", "'\u2028'", "'\x85'", r"'\n\r'", r"'\r\n\n'", "''")
FORMS = (r"\\d+", r"^\\S+\\s", r"[\\w.]+$", r"(?i)B.$", r"..$", r"[.$]", r"\\W$")
LAMBDAS = (
    *("transform(r, x -> x + i)", "filter(r, x -> x > 1)", "exists(r, x -> x > 2)"),
    *("forall(r, x -> x > 0)", "aggregate(r, 0, (a, x) -> a + coalesce(x, 0))"),
    *("transform(w, (x, n) -> x || string(n))", "filter(w, x -> x IS NOT NULL)"),
    *("array_sort(r)", "array_sort(w)", "array_sort(h)", "array_sort(array(z, o))"),
    "array_sort(h, (a, c) -> CASE WHEN a <=> c THEN 0 WHEN a IS NULL OR a < c THEN 1 ELSE -1 END)",
    *(
        "transform(array(z, o), x -> x.a)",
        "transform(r, x -> transform(w, y -> concat(y, string(x))))",
    ),
    *(
        "to_json(g)",
        "to_json(g, map('ignoreNullFields', 'false'))",
        "unbase64('QUI=')",
        "base64(t)",
        "base64(unbase64('QUI='))",
        "double('-Infinity')",
    ),
    *("CAST('16777217.1' AS FLOAT)", "CAST('1.00000017881393432617187499' AS FLOAT)"),
    *("s NOT LIKE '%a%'", "NOT s LIKE 'a%'", "i NOT IN (1, 2)", "i NOT BETWEEN 1 AND 7"),
    *("s NOT RLIKE 'a'", "i IS NOT NULL", "NOT b", "i BETWEEN j AND 100"),
    *(f"dateadd({unit}, y, {moment})" for unit in UNITS for moment in "vpq"),
    *("map('a', i, 'b', j)", "map(i, s, i + 1L, t)", "split(w[0], 'a', 2)", "split(t, '-')"),
    *(f"timestampdiff({unit}, {pair})" for unit in UNITS for pair in ("p, v", "u, p", "v, u")),
    *("xxhash64(f)", "xxhash64(CAST(d AS FLOAT), array(f))", "string(f)", "to_json(struct(f, x))"),
    "from_csv(concat('\"', t, '\"'), 'v DATE', map('dateFormat', 'yyyy-MM-d', 'escape', '\"')).v",
    *("substring_index('aaaaa', 'aa', j)", "substring_index('aaa', concat('a', 'a'), -1)"),
    *("try_cast(9223372036854775807D AS BIGINT)", "CAST(16777217.0000000001 + i AS FLOAT)"),
    *("to_json(struct(n, m, k))", "coalesce(n, CAST(k AS DECIMAL(38, 0)))"),
    *("n < CAST(i AS DECIMAL(38, 0))", "n = CAST(i AS DECIMAL(38, 0))"),
    *("array_distinct(array(-0D, d))", "array_except(array(-0D, d), h)"),
    *("map_keys(map_from_entries(array(struct(-0D, i))))", "i & j ^ y | 3"),
    r"regexp_extract(concat(s, '\r', t), '(.*)', 1)",
    *(f"concat(s, {end}, t) RLIKE '{form}'" for end in ENDS for form in ("^[a-z]*$", "a.b", "b$")),
    *(f"regexp_replace(concat(s, {end}), '[a-z]$', '-')" for end in ENDS),
    *(f"regexp_extract(concat(s, t, {end}), '{form}', 0)" for end in ENDS for form in FORMS),
    *("regexp_replace(s, 'a+', '-')", "date_add(u, i) > v"),
    *("regexp_replace(s, '^a*', '')", "regexp_replace(s, '[^a-c]*', '')", "s RLIKE '[{}]|a'"),
    *("try_divide(i, 0)", "try_divide(n, 0.0)", "try_cast(CAST('1e19' AS FLOAT) AS INT)"),
    *(r"concat(s, '\\z') RLIKE 'b\\\\z'", r"concat(s, '\\z') RLIKE 'b\\z'", "locate('', s, 2)"),
    *(r"concat(s, '\\1') RLIKE 'b\\\\{1}1'", r"concat('[', s) RLIKE '\\[a'"),
    *(
        f"try_cast(CASE WHEN b THEN '0000-02-29' ELSE '0000-13-01' END AS {t})"
        for t in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ")
    ),
    "year(try_cast(CASE WHEN b THEN '0000-02-29' ELSE '0001-01-01' END AS DATE))",
    *("array(z, o).b", "z.a + o.a", "named_struct('c', z, 'd', i).c.b", "struct(i, s)", "r[0]"),
)

_MIXED = """concat('{"a": ', i, ', "b" : [1.50, -0.0, 1e10, "x", null, {"c":true}]}')"""
_NESTED = """concat('{"a":{"b":"', s, '"},"b":"', t, '"} rest')"""
_LIST = "concat('[', string(d), ',-0,12345678901234567890,{}, [ ]]')"
_ODD = r"""'{"a b":"\\u00e9\\n\\/", "b":"\\t", "a":null}'"""
OF_JSON = [  # texts, and paths into them
    f"get_json_object({text}, '{path}')"
    for text, paths in {
        _MIXED: (
            "$",
            "$.a",
            "$.b",
            "$.a.b",
            "$.b[1]",
            "$.b[4]",
            "$.b[4].c",
            "$.b[5].c",
            "$[0]",
            "$.b[9]",
        ),
        _NESTED: ("$", "$.a", "$.b", "$.a.b", "$.b.c", "$.a[0]"),
        _LIST: ("$", "$[0]", "$[1]", "$[2]", "$[3]", "$.a"),
        _ODD: ("$", "$.a", "$.b", r"$[\'a b\']"),
        "to_json(zs)": ("$", "$.a", "$.c.w[0]"),
        **dict.fromkeys(("'{\"a\":01}'", "'{\"a\":[NaN]}'", "'[1,]'", "''", "s"), ("$", "$.a")),
        **dict.fromkeys(("'\"top\"'", "' 12 '", "'null'"), ("$", "$[0]")),
    }.items()
    for path in paths
]
# Columns that functions of texts take as Spark casts them.
AS_TEXT = "yilfdemnkbuvpq"
# Functions whose arguments are rarely of the right types by chance.
TYPED = (
    *("add_months(v, j)", "date_sub(v, y)", "date_diff(u, v)", "make_date(2024, y + 1, 5)"),
    *("date_format(p, 'yyyy-MM-dd HH:mm:ss')", "date_trunc('month', p)", "trunc(v, 'month')"),
    *("from_utc_timestamp(q, 'Europe/Berlin')", "to_utc_timestamp(q, 'Europe/Berlin')"),
    *(
        "p + make_interval(1, 2)",
        "i div j",
        "sequence(1, y, 2)",
        "slice(r, j, 2)",
        "slice(w, -1, 2147483647)",
        "get(r, j)",
    ),
    *("element_at(w, -1)", "try_element_at(r, j)", "flatten(array(r, r))", "array_join(w, '-')"),
    *OF_JSON,
    *("i IN (1, j)", "i NOT IN (j, 2, NULL)", "s IN ('a', t)", "v IN (u, DATE'2024-03-01')"),
    *("ceil(e)", "ceiling(m)", "floor(d)", "ceil(-n)", "floor(m)", "ceil(i)"),
    *("array_except(w, array(s))", "map_entries(g)", "map_from_arrays(w, w)"),
    *("map_from_entries(array(struct(s, i)))", "lpad(s, j, 'xy')", "rpad(s, y, t)"),
    *("repeat(s, j)", "substr(s, j, y)", "instr(s, 'b')", "translate(s, 'ab', t)"),
    *("regexp_extract(s, '([a-z])b?', 1)", "substring_index(s, 'b', j)"),
    *("pmod(i, j)", "right(s, j)", "substring(s, 2)", "unix_millis(p)", "-0.5D + round(e, 1)"),
    *(
        "array_position(r, 1)",
        "array_position(w, s)",
        "array_append(r, i)",
        "array_prepend(r, i)",
        "array_union(r, array(i, 1))",
        "ascii(s)",
    ),
    *("array_intersect(r, array(i, 1))", "array_remove(r, 1L)", "arrays_overlap(r, array(i, 5))"),
    *("array_union(h, array(-0D, d))", "array_intersect(h, array(0D, d))", "array_remove(h, -0D)"),
    *("arrays_overlap(w, array('a', s))", "array_join(w, '-', '?')", "array_append(w, s)"),
    *("split_part(t, '-', j)", "split_part(s, 'b', -1)", "find_in_set(s, 'a,,b,ab')", "initcap(s)"),
    *(
        "initcap('ab cD  e' || s)",
        "space(j)",
        "chr(i)",
        "char(97 + j)",
        "btrim(t)",
        "btrim(s, 'ab')",
    ),
    *("bit_length(t)", "sha(s)", "sha1(t)", "sha2(s, 0)", "sha2(t, 224)", "sha2(t, 384)"),
    *("sha2(s, 512)", "crc32(t)", "locate('b', s, 2)", "position('a', t, 1)", "s ILIKE '%A%'"),
    *("s LIKE 'a_'", "t LIKE '_%_'", "s LIKE '_'", "lpad(s, 5)", "rpad(t, 3)", "bin(i)", "bin(l)"),
    *("shiftleft(i, j)", "shiftright(l, j)", "shiftrightunsigned(i, j)", "shiftleft(l, 63)"),
    *("bit_count(i)", "bit_count(l)", "try_add(i, j)", "try_subtract(l, i)", "try_multiply(l, l)"),
    *("try_multiply(i, i)", "try_mod(i, j)", "try_mod(l, 0)", "degrees(d)", "radians(d)"),
    *("round(d, 2)", "round(d)", "round(l / 7D, 3)", "round(1.005D * i, 2)", "round(-0.4D + i)"),
    *("date_part('year', v)", "datepart('dow', p)", "date_part('HOUR', v)", "date_part('week', q)"),
    *("dayname(v)", "monthname(p)", "next_day(v, 'Mon')", "next_day(u, 'TU')", "unix_timestamp(p)"),
    *(
        "to_unix_timestamp(v)",
        "timestamp_seconds(i)",
        "from_unixtime(i)",
        "from_unixtime(l, 'yyyy')",
    ),
    *("map_contains_key(g, 'a')", "map_contains_key(g, s)", "zeroifnull(i)", "zeroifnull(n)"),
    *(
        "nullifzero(j)",
        "nullifzero(d)",
        "nanvl(e, d)",
        "nanvl(i, j)",
        "greatest(make_valid_utf8(NULL), s)",
        "typeof(g)",
        "typeof(n)",
    ),
    *(f"p + INTERVAL '{n}' {unit}" for n, unit in zip(count(1), INTERVAL_UNITS, strict=False)),
    *(f"v - INTERVAL '3' {unit}" for unit in INTERVAL_UNITS),
    *("q - INTERVAL 1 DAY 2 HOURS", "INTERVAL 1 YEAR 2 MONTHS + u"),
    *("p - INTERVAL '1.0000019' SECOND", "q + INTERVAL '-1 02:03:04.5' DAY TO SECOND"),
    *("v + INTERVAL '7 3' DAY TO HOUR", "p - INTERVAL '90:10' HOUR TO MINUTE"),
    *("v - INTERVAL '1-11' YEAR TO MONTH", "p + INTERVAL '100:00.25' MINUTE TO SECOND"),
    *("v + j * INTERVAL '1' DAY", "p - INTERVAL '1' MONTH * y", "-INTERVAL '1' DAY + v"),
    *("p - v > INTERVAL '1' HOUR", "v - DATE'2024-02-01' < INTERVAL '1 0' DAY TO HOUR"),
    *("p - p = INTERVAL '0' SECOND", "q - q IN (INTERVAL '0' DAY)", "p - INTERVAL '1' DAY < u"),
    *("p + INTERVAL '1 day 2 hours'", "q - INTERVAL '1 week -2 Days + 3.25 seconds'"),
    *("v + INTERVAL '1 year 2 months'", "INTERVAL '2 hours 1 day' = INTERVAL '1 2' DAY TO HOUR"),
    *("INTERVAL '1' YEAR > INTERVAL '11' MONTH", "v + (v - DATE'2024-02-01')"),
    *("p + (INTERVAL '1' HOUR - INTERVAL '1' MINUTE)", "p + make_interval(0, j, 1, y, j, 2, 1.5)"),
    *("v - make_interval(1, j, y)", "p + make_dt_interval(y, j, 1, 2.25)"),
    *("v - make_ym_interval(1, y)", "p - make_ym_interval(y)", "v - 1", "v - y", "u + j"),
    *("CAST(i AS TIMESTAMP)", "to_timestamp(j)", "TRY_CAST(m AS TIMESTAMP)", "to_timestamp(d)"),
    *("CAST(f AS TIMESTAMP)", "to_timestamp(l DIV 1000000)", "CAST(y AS TIMESTAMP)"),
    *("to_timestamp(-1.5)", "to_timestamp(n)", "timestamp(j)"),
    *("to_date(date_format(v, 'yyyyMMdd'), 'yyyyMMdd')", "to_date('31/12/2023', 'dd/MM/yyyy')"),
    *("to_date('2024-02-29 23:59', 'yyyy-MM-dd HH:mm')", "to_date('2024-3', 'yyyy-M')"),
    "to_timestamp(date_format(p, 'yyyy-MM-dd HH:mm:ss'), 'yyyy-MM-dd HH:mm:ss')",
    "to_timestamp_ntz('2024-02-29 1:02:03.5', 'yyyy-MM-dd H:mm:ss.S')",
    *("try_to_timestamp(t, 'yyyy-MM-dd')", "try_to_timestamp(s, 'yyyy')"),
    *("string(r)", "string(array(z, o))", "string(g)", "string(struct(z, h, p, v, m))"),
    *("string(map(i, z))", "CAST(array(r, r) AS STRING)", "zs.a", "zs.c.a.b", "zs.c.w[0]"),
    *("array(zs).a", "named_struct('n', zs).n.c.a", "zs.c <=> zs.c", "to_json(zs)", "string(zs)"),
    *("xxhash64(zs)", "coalesce(zs, zs).c.a.b"),
    *("array_contains(r, 1)", "datediff(v, u)", "regexp_like(s, '[ab]')", "unix_micros(p)"),
    "CAST(zs AS STRUCT<a: STRING, c: STRUCT<a: STRUCT<b: STRING>, w: ARRAY<STRING>>>)",
    *("concat(i, '-', s)", "concat(v, p, q)", "concat(b, n)", "i || s", "concat(NULL, i)"),
    *("regexp_count(s, 'a|b')", "regexp_substr(t, '[a-z]+')", "regexp_extract_all(t, '([a-z])')"),
    *(r"regexp_extract_all(t, '([a-z])(\\d)?', 2)", "regexp_extract_all(s, 'a', 0)", "float(s)"),
    *(f"concat_ws('|', {name}, s, {name})" for name in AS_TEXT),
    *(f"upper({name})" for name in AS_TEXT),
    *("concat_ws(1, l, r, w)", "concat_ws(m, h, 'a', NULL)", "md5(concat_ws('|', l, v, n))"),
    *("length(l)", "octet_length(m)", "bit_length(p)", "trim('0', m)", "ltrim(y)", "btrim(m, 0)"),
    *("substring(v, 1, 7)", "left(p, 10)", "right(l, 2)", "repeat(y, 2)", "lpad(j, 6, 0)"),
    *("rpad(b, 9)", "replace(m, 0, i)", "translate(l, 0, j)", "substring_index(m, 0, 1)"),
    *("startswith(l, j)", "endswith(m, y)", "contains(v, 2)", "instr(l, 1)", "locate(1, l)"),
    *("locate(1, l, 2)", "split_part(v, '-', 2)", "find_in_set(j, '1,2')", "initcap(b)"),
    *("ascii(m)", "l LIKE '1%'", "v ILIKE '20__-%'", "p RLIKE '^2024'", "split(v, '-')"),
    *("regexp_extract(p, '([0-9]+)', 1)", "regexp_replace(v, '-', '')", "regexp_count(m, '1')"),
    *("regexp_substr(p, '[0-9]+')", "regexp_extract_all(v, '([0-9])')"),
    *("is_valid_utf8(i)", "make_valid_utf8(v)", "lower(b)"),
)


def rows(chance: Random) -> list[tuple[Any, ...]]:
    """Rows of all columns; a fifth of the values is null."""
    return [(n, *(_value(chance, *VALUES[name]) for name in VALUES)) for n in range(ROWS)]


def _value(chance: Random, type_: str, values: tuple[Any, ...]) -> Any:
    if chance.random() < 0.2:
        return None
    found = chance.choice(values)
    if type_.startswith("DECIMAL"):
        return Decimal(found)
    if type_ == "DATE":
        return _DAY.fromisoformat(found)
    if type_.startswith("TIMESTAMP"):
        return _AT.fromisoformat(found).replace(tzinfo=_UTC if type_ == "TIMESTAMP" else None)
    return found


def expressions(seed: str) -> Iterator[Iterator[str]]:
    """For each cast, operator and function, endless expressions, whatever the others are."""
    for type_ in CASTS:
        yield _casts(Random(f"{seed} {type_}"), type_)
    for name in sorted(FUNCTIONS):
        yield _calls(Random(f"{seed} {name}"), name)


def _casts(chance: Random, type_: str) -> Iterator[str]:
    return (_cast(chance, type_) for _ in count())


def _calls(chance: Random, name: str) -> Iterator[str]:
    return (call(chance, name, 2) for _ in count())


def _cast(chance: Random, type_: str) -> str:
    return f"{chance.choice(('CAST', 'TRY_CAST'))}({_argument(chance, 0)} AS {type_})"


def _argument(chance: Random, depth: int) -> str:
    if depth and chance.random() < 0.25:
        return call(chance, chance.choice(sorted(FUNCTIONS)), depth - 1)
    return chance.choice([*VALUES, *VALUES, *CONSTANTS])


def call(chance: Random, name: str, depth: int) -> str:  # noqa: C901, PLR0911 - one per form
    """One call by chance, perhaps of other calls."""

    def argument() -> str:
        return _argument(chance, depth)

    if name in _INFIX:
        return f"({argument()} {name} {argument()})"
    match name:
        case "and" | "or":
            return f"({_condition(chance)} {name} {_condition(chance)})"
        case "not" | "!":
            return f"(NOT {_condition(chance)})"
        case "in":
            return f"({argument()} IN ({argument()}, {argument()}))"
        case "when" | "if":
            return f"CASE WHEN {_condition(chance)} THEN {argument()} ELSE {argument()} END"
        case "=" | "<>":
            return f"({argument()} {name} {argument()})"
        case "negative" | "~":
            return f"({'-' if name == 'negative' else name} {argument()})"
        case "like" | "rlike" | "regexp":
            pattern = chance.choice(("'%a%'", "'a%'", "'%b'", "'ab'"))
            return f"(s {'LIKE' if name == 'like' else 'RLIKE'} {pattern})"
        case "split":
            pattern = chance.choice(("''", "'a'", "','", "'[0-9]+'", "' '", "'(a)|b'", "'[^a]'"))
            return f"split(s, {pattern}{chance.choice(('', ', 1', ', 2', ', 0', ', -1', ', j'))})"
        case "map":
            return (
                f"map({chance.choice('stu')}, {argument()}, {chance.choice('stv')}, {argument()})"
            )
        case "timestampdiff" | "timestampadd" | "dateadd":
            first = chance.choice("uvpq" if name == "timestampdiff" else "iyj")
            return f"{name}({chance.choice(UNITS)}, {first}, {chance.choice('uvpq')})"
        case "raise_error" | "positive":
            return f"abs({argument()})"
    most = COUNTS[name][-1] if name in COUNTS else 3
    several = chance.randrange(COUNTS[name][0] if name in COUNTS else 1, min(most, 3) + 1)
    return f"{name}({', '.join(argument() for _ in range(several))})"


def _condition(chance: Random) -> str:
    a, b = chance.choice(list(VALUES)), chance.choice(list(VALUES))
    return chance.choice(("b", f"({a} IS NULL)", f"(i > {chance.randrange(3)})", f"({a} <=> {b})"))


def aggregates(chance: Random, each: int) -> Iterator[str]:
    """So many calls of each aggregate whose answer the order of rows does not change."""
    by_order = {"approx_count_distinct", "first", "first_value", "any_value", "last", "last_value"}
    lists = {"collect_list", "array_agg", "collect_set"}
    for name in sorted(set(AGGREGATES) - by_order):
        for _ in range(each):
            first = chance.choice(list(VALUES))
            by = name in ("min_by", "max_by")
            where = chance.choice(("", "", " FILTER (WHERE b)"))
            distinct = chance.choice(("", "DISTINCT ")) if name in ("count", "sum") else ""
            found = f"{name}({distinct}{first}{', id' if by else ''}){where}"
            yield f"sort_array({found})" if name in lists else found


def windows(chance: Random, each: int) -> Iterator[str]:
    """So many calls of each window function, in an order without ties."""
    names = ["row_number()", "rank()", "dense_rank()", "percent_rank()", "cume_dist()"]
    names += ["lag({0})", "lead({0}, 2)", "lag({0}, 1)", "sum({0})", "count({0})", "min({0})"]
    names += ["max({0})", "avg({0})", "first({0})", "last({0})", "collect_list({0})", "count(*)"]
    frames = ("", "", "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", "ROWS UNBOUNDED PRECEDING")
    frames += ("ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING", "RANGE UNBOUNDED PRECEDING")
    frames += (
        "ROWS BETWEEN 5 PRECEDING AND 3 PRECEDING",
        "ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING",
        "ROWS BETWEEN 3 FOLLOWING AND 9 FOLLOWING",
    )
    for name in names:
        for _ in range(each):
            function = name.format(chance.choice(list(VALUES)))
            ranks = "rank" in name or "row_" in name or "dist" in name or name[:2] == "la"
            frame = "" if ranks or name[:4] == "lead" else chance.choice(frames)
            order = chance.choice(("id", "i DESC NULLS FIRST, id", "s, id DESC", "e DESC, id"))
            group = chance.choice(("", "PARTITION BY b ", "PARTITION BY j, b ", "PARTITION BY e "))
            yield f"{function} OVER ({group}ORDER BY {order} {frame})"
    yield from (
        f"sum(0.1D) OVER (PARTITION BY b ORDER BY {order})" for order in "yjuf"
    )  # with ties
    for name, frame in product(
        ("sum(d)", "avg(d)", "avg(e)", "avg(l)", "avg(y)", "avg(m)"), frames[2:]
    ):
        yield f"{name} OVER (PARTITION BY b ORDER BY id {frame})"
    yield from _near(chance, each)


def _near(chance: Random, each: int) -> Iterator[str]:
    """So many calls over values near in the order, and over those that are not null."""
    distances = {
        "j": ("1", "3", "40"),
        "i": ("2000000000", "7"),
        "u": ("2", "30"),
        "v": ("INTERVAL '3' DAYS", "INTERVAL '60' DAYS"),
        "p": ("INTERVAL '2' HOURS", "INTERVAL '1' WEEK", "INTERVAL '90' SECONDS"),
    }
    for name in ("count(*)", "sum(j)", "min(s)", "max(t)", "count(y)", "avg(y)", "avg(m)"):
        for order, near in distances.items():
            lower = chance.choice((f"{chance.choice(near)} PRECEDING", "UNBOUNDED PRECEDING"))
            upper = chance.choice((f"{chance.choice(near)} FOLLOWING", "CURRENT ROW"))
            how = chance.choice(("", "DESC", "DESC NULLS FIRST", "NULLS LAST"))
            frame = f"RANGE BETWEEN {lower} AND {upper}"
            yield f"{name} OVER (PARTITION BY b ORDER BY {order} {how} {frame})"
    rows = ("", "ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING")
    for name in ("lag({0})", "lead({0}, 2)", "lag({0}, 3)", "first({0})", "last({0})"):
        for _ in range(each):
            frame = "" if name.startswith(("lag", "lead")) else chance.choice(rows)
            function = name.format(chance.choice(list(VALUES)))
            yield f"{function} IGNORE NULLS OVER (PARTITION BY b ORDER BY id {frame})"
