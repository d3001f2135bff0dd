"""`where` against a brute-force three-valued logic, and what it refuses."""

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.errors import UsageError
from sluice.read.where import parse

SCHEMA = pa.schema(
    [
        ("i", pa.int64()),
        ("j", pa.int32()),
        ("d", pa.decimal128(12, 2)),
        ("f", pa.float64()),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("on_day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("_sluice_id", pa.string()),
    ]
)
rows = st.lists(
    st.fixed_dictionaries(
        {
            "i": st.one_of(st.none(), st.integers(-2, 2)),
            "j": st.one_of(st.none(), st.integers(-2, 2)),
            "f": st.one_of(st.none(), st.sampled_from([-1.0, 0.0, 1.5, math.nan])),
        }
    ),
    max_size=8,
)


def above(a, b):
    """Spark's order: NaN above every number."""
    return (math.isnan(a) and not math.isnan(b)) or (not math.isnan(b) and a > b)


def same(a, b):
    return a == b or (math.isnan(a) and math.isnan(b))


COMPARE = {
    "=": same,
    "<>": lambda a, b: not same(a, b),
    ">": above,
    "<": lambda a, b: above(b, a),
    ">=": lambda a, b: not above(b, a),
    "<=": lambda a, b: not above(a, b),
}


@st.composite
def predicates(draw, depth=2):
    """A predicate's text, and a function that evaluates it to True, False or None."""
    if not depth or draw(st.booleans()):
        return draw(on_one_column())
    one, other = draw(predicates(depth=depth - 1)), draw(predicates(depth=depth - 1))
    how = draw(st.sampled_from(["and", "or", "not"]))
    return negated(*one) if how == "not" else joined(how, one, other)


@st.composite
def on_one_column(draw):
    kind = draw(st.sampled_from(["compare", "in", "null", "between", "columns", "same"]))
    column, number = draw(st.sampled_from("ijf")), draw(st.integers(-2, 2))
    if kind == "null":
        return f"{column} is null", lambda r: r[column] is None
    if kind == "in":
        return is_in(column, draw(st.lists(st.one_of(st.none(), st.integers(-2, 2)), min_size=1)))
    if kind == "between":
        _, test = joined("and", compared(column, ">=", number), compared(column, "<=", number + 1))
        return f"{column} between {number} and {number + 1}", test
    if kind == "same":
        return f"{column} <=> {number}", lambda r: r[column] is not None and same(r[column], number)
    how = draw(st.sampled_from(sorted(COMPARE)))
    return compared(column, how, number if kind == "compare" else draw(st.sampled_from("ijf")))


def compared(column, how, other):
    def test(row):
        value = row[other] if isinstance(other, str) else other
        return None if row[column] is None or value is None else COMPARE[how](row[column], value)

    return f"{column} {how} {other}", test


def negated(text, test):
    return f"not ({text})", lambda row: None if test(row) is None else not test(row)


def joined(how, one, other):
    def test(row):
        found = {one[1](row), other[1](row)}
        decides = how == "or"
        if decides in found:
            return decides
        return None if None in found else not decides

    return f"({one[0]}) {how} ({other[0]})", test


def is_in(column, values):
    def test(row):
        if row[column] is None:
            return None
        return True if row[column] in values else (None if None in values else False)

    listed = ", ".join("null" if v is None else str(v) for v in values)
    return f"{column} in ({listed})", test


@given(rows, predicates())
def test_only_true_keeps_a_row(data, predicate):
    text, test = predicate
    table = pa.Table.from_pylist(data, SCHEMA)
    kept = [(r["i"], r["j"], r["f"]) for r in parse(text, SCHEMA).rows(table).to_pylist()]
    assert repr(kept) == repr([(r["i"], r["j"], r["f"]) for r in data if test(r) is True])


@given(rows, predicates())
def test_its_spans_hold_every_row_that_it_keeps(data, predicate):
    where = parse(predicate[0], SCHEMA)
    kept = where.rows(pa.Table.from_pylist(data, SCHEMA))
    for key_range in where.ranges:
        if set(key_range.columns) <= {"i", "j"}:
            assert key_range.rows(kept).num_rows == kept.num_rows


ROW = {
    "i": 7,
    "d": Decimal("12.50"),
    "f": 0.1,
    "s": "a_b\n%c",
    "b": True,
    "on_day": date(2017, 1, 2),
    "at": datetime(2017, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
}


@pytest.mark.parametrize(
    "text",
    [
        "i = 7",
        "7 = i",
        "I = 7.0",
        "6 < i",
        "i > 6.5",
        "i < 1e3",
        "i < 99999999999999999999999",
        "i = '7'",
        "i = -(-7)",
        "d = 12.5",
        "d > 12.499",
        "d < 12.5001",
        "d >= i",
        "f = 0.1",
        "s like 'a%c'",
        r"s like 'a\\_b%'",
        "s not like 'b%'",
        "b",
        "b = true",
        "not b = false",
        "true",
        "on_day = '2017-01-02'",
        "on_day = date '2017-01-02'",
        "on_day between '2017-01-01' and '2017-01-02'",
        "at > '2017-01-02'",
        "at = '2017-01-02T04:04:05.000006+01:00'",
        "at < timestamp '2017-01-02 03:04:06'",
        "at >= date '2017-01-02'",
        "j is null and i is not null",
        "s in ('x', 'a_b\n%c')",
        "`i` == 7 and (d <> 3 or f > 1)",
        "j <=> null",
    ],
)
def test_literals_are_compared_in_the_columns_type(text):
    assert parse(text, SCHEMA).rows(pa.Table.from_pylist([ROW], SCHEMA)).num_rows == 1


NUMBERS = {
    pa.int64(): [-(2**63), -1, 0, 1, 2**63 - 1],
    pa.decimal128(38, 0): [Decimal(-(10**38) + 1), Decimal(0), Decimal(10**38 - 1)],
    pa.decimal128(38, 38): [Decimal(f"-0.{'9' * 38}"), Decimal(0), Decimal("1e-38")],
    pa.decimal128(12, 2): [Decimal("-9999999999.99"), Decimal("0.01"), Decimal("12.50")],
}


@pytest.mark.parametrize("kind", NUMBERS, ids=str)
@pytest.mark.parametrize(
    "number",
    ["1e80", "-1e76", "1e-400", "-1e-400", "0.5", "1e400", "12.5", "0.011", "9" * 90, "1e-38"],
)
def test_a_number_of_any_size_is_compared_exactly(kind, number):
    table = pa.table({"n": pa.array([*NUMBERS[kind], None], kind)})
    for sign in ("=", "<>", "<", ">", "<=", ">="):
        found = parse(f"n {sign} {number}", table.schema).rows(table)["n"].to_pylist()
        expected = [n for n in NUMBERS[kind] if COMPARE[sign](Decimal(n), Decimal(number))]
        assert found == expected, sign
    assert parse(f"n in ({number}, {number})", table.schema).rows(table).num_rows in (0, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("upper(s) = 'A'", r"does not support 'UPPER\(s\)'"),
        ("i + 1 = 2", r"does not support 'i \+ 1'"),
        ("i in (select 1)", "does not support"),
        ("exists (select 1)", "does not support"),
        ("select 1", "does not support"),
        ("case when b then true end", "does not support"),
        ("s rlike 'a'", "does not support"),
        ("s ilike 'a'", "does not support"),
        ("s like 'a' escape '#'", "does not support"),
        ("i between symmetric 2 and 1", "does not support"),
        ("i is distinct from 1", "does not support"),
        ("s like concat('a', 'b')", "does not support"),
        ("b is true", "does not support 'b IS TRUE'"),
        ("t.i = 1", "unknown column 't.i'"),
        ("1 = 1", "does not support '1'"),
        ("i = ", "does not parse"),
        ("i = 1; drop table t", "does not parse|does not support"),
        ("", "does not parse"),
        ("s = '\ud800'", "is no text of UTF-8"),
        ("ii = 1", "unknown column 'ii'; did you mean 'i'"),
        ("_sluice_id = 'x'", "unknown column '_sluice_id'"),
        ("i = 'x'", "'x' does not compare with column 'i' "),
        ("s = 1", "1 does not compare with column 's' "),
        ("at > 'noon'", "'noon' does not compare with column 'at'"),
        ("on_day = '2017-01-02 03:00'", "does not compare with column 'on_day'"),
        ("d = 'nan'", "does not compare"),
        ("d = 1e99999999999999999999", "1e99999999999999999999 does not compare"),
        ("i", "not a condition"),
        ("i like 'x'", "like needs text"),
        ("s = i", "where 's = i'"),
    ],
)
def test_everything_else_is_refused_naming_the_part(text, message):
    with pytest.raises(UsageError, match=message):
        parse(text, SCHEMA)


@pytest.mark.parametrize("text", ["s = 'O''Brien'", r"s = 'O\'Brien'", 's = "O\'Brien"'])
def test_a_quote_in_a_text_is_written_twice_or_behind_a_backslash(text):
    rows = pa.table({"s": ["O'Brien", "OBrien"]})
    assert parse(text, rows.schema).rows(rows)["s"].to_pylist() == ["O'Brien"]


def test_adjacent_texts_are_refused():
    with pytest.raises(UsageError) as refused:
        parse("s = 'O' 'Brien'", SCHEMA)
    assert "write one text" in refused.value.hint


def test_a_field_of_a_struct_is_compared_at_any_depth():
    deep = {"No": "1", "a": {"b": {"c": {"d": 5}}}}
    rows = pa.table({"n": [1, 2, 3], "p": [deep, {"No": "2", "a": None}, None]})
    for text, found in (
        ("p.no = '2'", [2]),
        ("P.a.b.c.D >= 5", [1]),
        ("p.a.b.c.d is null", [2, 3]),
        ("p.No in ('1', '2') and n < 2", [1]),
    ):
        where = parse(text, rows.schema)
        assert where.rows(rows)["n"].to_pylist() == found, text
        assert where.columns <= {"n", "p"}
