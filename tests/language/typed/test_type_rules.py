"""Types that don't go together are refused as Spark refuses them, and nothing else is."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from sqlglot import exp
from tests.language.examples import COLUMNS, EXAMPLES
from tests.support.engines import differs

from sluice.language import syntax
from sluice.language.expression import Aggregate, Expression
from sluice.language.type_rules import SIGNATURES, aggregate_problem, problems
from sluice.language.types import KINDS, fits

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

REFUSED = """
d + at | + takes two numbers, a time and an interval, or a DATE and a number of days, not
at + 1 | not TIMESTAMP and INT
b + dt | not BIGINT and DATE
at - 1 | not TIMESTAMP and INT
dt - f | not DATE and DOUBLE
s + s2 | not STRING and STRING
s - 'x' | not STRING and STRING
at * 2 | * takes two numbers, or a number and an interval, not TIMESTAMP and INT
at / 2 | / takes two numbers, or an interval and a number, not TIMESTAMP and INT
flag + 1 | not BOOLEAN and INT
bin + 1 | not BINARY and INT
xs + 1 | not ARRAY<INT> and INT
m + 1 | not MAP<STRING, INT> and INT
d % at | % takes two numbers, not DECIMAL(12, 2) and TIMESTAMP
f div 2 | div takes two whole numbers or decimals, not DOUBLE and INT
a & f | a bitwise operator takes two whole numbers, not INT and DOUBLE
interval 1 day + d | not INTERVAL DAY and DECIMAL(12, 2)
interval 1 day + interval 1 month | not INTERVAL DAY and INTERVAL YEAR TO MONTH
-at | - takes a number or an interval, not TIMESTAMP
~f | ~ takes a whole number, not DOUBLE
not a | NOT takes true or false, not INT
a and flag | AND takes true or false, not INT
flag or d | OR takes true or false, not DECIMAL(12, 2) (d)
a is true | IS takes true or false, not INT
a = at | INT can't be compared with TIMESTAMP
a > flag | INT can't be compared with BOOLEAN
at < d | TIMESTAMP can't be compared with DECIMAL(12, 2)
bin = a | BINARY can't be compared with INT
xs = s | ARRAY<INT> can't be compared with STRING
m = m | MAP<STRING, INT> has no order, unlike MAP<STRING, INT>
st <=> a | STRUCT<x: INT, y: STRING> can't be compared with INT
a in (1, at) | INT can't be compared with TIMESTAMP
dt in (20170101) | DATE can't be compared with INT
at between 1 and 2 | TIMESTAMP can't be compared with INT
a between dt and 2 | INT can't be compared with DATE
case a when flag then 1 end | INT can't be compared with BOOLEAN
case when a then 1 end | WHEN takes true or false, not INT
case when s then 1 end | WHEN takes true or false, not STRING
case when flag then a else at end | its results must be of one type, not INT and TIMESTAMP
case when flag then xs else s end | its results must be of one type, not ARRAY<INT> and STRING
if(a, 1, 2) | IF takes true or false, not INT
if(flag, dt, 1) | its results must be of one type, not DATE and INT
coalesce(d, at) | its results must be of one type, not DECIMAL(12, 2) and TIMESTAMP
nvl(flag, 0) | its results must be of one type, not BOOLEAN and INT
greatest(a, dt) | its results must be of one type, not INT and DATE
array(a, flag) | its results must be of one type, not INT and BOOLEAN
nullif(a, flag) | INT can't be compared with BOOLEAN
s like xs | a pattern takes a STRING, or a value that can be cast to one, not ARRAY<INT> (xs)
m rlike 'x' | a pattern takes a STRING, or a value that can be cast to one, not MAP<STRING, INT>
xs || s | joining takes texts, or arrays, not ARRAY<INT> and STRING
concat(s, m) | joining takes texts, or arrays, not STRING and MAP<STRING, INT>
upper(xs) | upper takes a STRING, or a value that can be cast to one, not ARRAY<INT>
trim(m) | TRIM takes a STRING, or a value that can be cast to one, not MAP<STRING, INT>
trim(both 'x' from st) | TRIM takes a STRING
abs(at) | abs takes a number or an interval, not TIMESTAMP
abs(flag) | abs takes a number or an interval, not BOOLEAN
round(at, 2) | round takes a number, not TIMESTAMP
floor(flag) | floor takes a number, not BOOLEAN
sqrt(dt) | sqrt takes a number, not DATE
year(a) | year takes a date or a time, not INT
hour(d) | hour takes a date or a time, not DECIMAL(12, 2)
date_add(dt, b) | date_add takes an INT, not BIGINT (b)
datediff(a, dt) | datediff takes a date or a time, not INT
date_format(a, 'yyyy') | date_format takes a date or a time, not INT
date_trunc('day', a) | date_trunc takes a date or a time, not INT (a)
extract(year from a) | EXTRACT takes a date, a time or an interval, not INT (a)
unix_seconds(dt) | unix_seconds takes a TIMESTAMP, not DATE
size(a) | size takes an ARRAY or a MAP, not INT
element_at(s, 1) | element_at takes an ARRAY or a MAP, not STRING
map_keys(xs) | map_keys takes a MAP, not ARRAY<INT>
array_contains(s, 'x') | array_contains takes an ARRAY, not STRING
array_distinct(m) | array_distinct takes an ARRAY, not MAP<STRING, INT>
transform(s, x -> x) | transform takes an ARRAY, not STRING
sha2(a, 256) | sha2 takes a STRING or BINARY, not INT
get_json_object(a, '$.x') | get_json_object takes a STRING, not INT
a[0] | [...] takes an ARRAY, a MAP or a STRUCT, not INT
cast(at as boolean) | TIMESTAMP can't be cast to BOOLEAN
cast(a as date) | INT can't be cast to DATE
cast(xs as int) | ARRAY<INT> can't be cast to INT
cast(a as binary) | INT can't be cast to BINARY
try_cast(dt as int) | DATE can't be cast to INT
length(upper(a + at)) | + takes two numbers
"""
# What looks wrong to some, and Spark takes: mostly texts, which are read when they are met.
ACCEPTED = """
a + s | s = a | s > 5 | s > at | s in (1, 2) | s between 1 and 2 | s and flag | not s | s = flag
dt + 1 | 1 + dt | dt - 7 | dt = at | dt < at | dt between '2017-01-01' and at | at - dt | dt - dt
at + interval 2 hours | interval 1 day * a | interval 1 day / 2 | interval 1 day + interval 2 day
a = f | d > f | d = a | a in (1.5, 2) | case when flag then a else d end | coalesce(s, a)
case when flag then s else a end | coalesce(dt, at) | if(flag, null, a) | nvl(null, at)
upper(a) | upper(at) | length(d) | a || s | concat(a, at, s) | concat(xs, xs) | s like a
abs(s) | round(s, 1) | sqrt(s) | year(s) | date_add(s, 1) | date_add(dt, s) | at || dt
xs = xs | st = st | m['x'] | st['x'] | xs[a] | cast(at as bigint) | cast(a as timestamp)
cast(s as date) | cast(flag as int) | cast(m as string) | bin = s | bin || bin | hash(xs, st)
map(a, at) | struct(a, m) | array(a, d, s) | to_json(m) | transform(xs, s -> s + 1) | null + a
filter(ss, at -> at like 'x%') | aggregate(xs, 0, (flag, a) -> flag + a) | null = m['x']
a <=> null | timestampdiff(day, dt, at) | dateadd(day, 1, at) | d div 2 | a % s
greatest(dt, at) | -s
"""
RULES = [tuple(map(str.strip, line.rsplit(" | ", 1))) for line in REFUSED.strip().splitlines()]
TAKEN = [text.strip() for line in ACCEPTED.strip().splitlines() for text in line.split(" | ")]


@pytest.fixture(scope="module")
def rows(real_spark: "SparkSession") -> "DataFrame":
    """No rows of the columns that the examples read."""
    return real_spark.createDataFrame([], ", ".join(f"{n} {t}" for n, t in COLUMNS.items()))


def told(text: str) -> list[str]:
    return list(problems(Expression.parse(text), COLUMNS, {}))


def of_spark(rows: "DataFrame", sql: str) -> str:
    """The type that Spark gives, or `refused`."""
    from pyspark.errors import AnalysisException

    try:
        return rows.selectExpr(f"{sql} AS x").schema[0].dataType.simpleString()
    except AnalysisException:
        return "refused"


@pytest.mark.parametrize(("text", "message"), RULES)
def test_types_that_do_not_fit_are_reported_with_what_is_accepted(text: str, message: str) -> None:
    (problem,) = told(text)
    assert message in problem


@pytest.mark.parametrize("text", [*TAKEN, *(example[0] for example in EXAMPLES)])
def test_what_spark_takes_is_not_refused(text: str) -> None:
    assert told(text) == []


def test_spark_refuses_and_takes_the_same(rows: "DataFrame") -> None:
    for text, _ in RULES:
        assert of_spark(rows, Expression.parse(text).sql) == "refused", text
    for text in TAKEN:
        assert of_spark(rows, Expression.parse(text).sql) != "refused", text


def test_the_types_of_the_examples_are_sparks(rows: "DataFrame") -> None:
    for text, type_ in EXAMPLES:
        if type_:
            found = of_spark(rows, Expression.parse(text).sql)
            if differs(text) and "is_valid_variant" in text:  # others differ in values alone
                assert found == "refused"
                continue
            assert found == type_.lower().replace(", ", ",").replace(": ", ":"), text


def test_types_that_are_not_known_are_let_through() -> None:
    columns = dict.fromkeys(COLUMNS, "")
    of_columns = [text for text, _ in RULES if "interval" not in text and "cast" not in text]
    assert [t for t in of_columns if list(problems(Expression.parse(t), columns, {}))] == []


def misfits() -> Iterator[str]:
    """Each declared argument of each function once with a column that its kind does not take."""
    calls: dict[tuple[str, int], list[syntax.Tree]] = {}
    for text, _ in EXAMPLES:
        for call in syntax.parse(text).find_all(exp.Anonymous):
            calls.setdefault((call.name.lower(), len(call.expressions)), call.expressions)
    for nth, ((name, count), kinds) in enumerate(SIGNATURES.items()):
        for i, kind in enumerate(kinds):
            wrong = [column for column, type_ in COLUMNS.items() if not fits(type_, kind)]
            if wrong:
                arguments = [syntax.render(e) for e in calls[name, count]]
                arguments[i] = wrong[nth % len(wrong)]
                yield f"{name}({', '.join(arguments)})"


def test_no_function_takes_what_its_signature_does_not(rows: "DataFrame") -> None:
    calls = list(misfits())
    assert len(calls) > 200
    assert [call for call in calls if not told(call)] == []
    assert [call for call in calls if of_spark(rows, call) != "refused"] == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sum(s)", "sum takes a number, not STRING"),
        ("sum(at)", "sum takes a number, not TIMESTAMP"),
        ("avg(at)", "avg takes a number, not TIMESTAMP"),
        ("avg(flag)", "avg takes a number, not BOOLEAN"),
        ("sum(xs)", "sum takes a number, not ARRAY<INT>"),
        ("min(m)", "min takes what can be compared, not MAP<STRING, INT>"),
        ("max(array(m))", "max takes what can be compared, not ARRAY<MAP<STRING, INT>>"),
        ("max(struct(m))", ""),
        ("collect_set(m)", "collect_set takes what can be compared, not MAP<STRING, INT>"),
        ("count(distinct m)", "count_distinct takes what can be compared, not MAP<STRING, INT>"),
        ("approx_count_distinct(m)", "takes what can be compared, not MAP<STRING, INT>"),
        ("any(a)", "bool_or takes true or false, not INT"),
        ("every(s)", "bool_and takes true or false, not STRING"),
        ("approx_percentile(flag, 0.5)", "takes a number or a time, not BOOLEAN"),
        ("approx_top_k(xs)", "takes a number, a time or a text, not ARRAY<INT>"),
        ("sum(case when flag then d else 0 end)", ""),
        ("avg(f)", ""),
        ("sum(timestampdiff(second, dt, at))", ""),
        ("min(st)", ""),
        ("max(xs)", ""),
        ("collect_set(xs)", ""),
        ("count(m)", ""),
        ("count(*)", ""),
        ("first(m order by at)", ""),
        ("approx_count_distinct(s)", ""),
    ],
)
def test_an_aggregate_takes_what_it_can_aggregate(text: str, message: str) -> None:
    problem = aggregate_problem(Aggregate.parse(text), COLUMNS)
    assert message in problem
    assert bool(problem) == bool(message)


def test_every_kind_has_words_for_what_it_takes() -> None:
    assert {kind for kinds in SIGNATURES.values() for kind in kinds} - {"any"} <= set(KINDS)


def test_a_long_expression_costs_no_recursion() -> None:
    assert told("+".join(["a"] * 4900)) == []
    assert told("+".join(["a"] * 4900) + " + at") != []
