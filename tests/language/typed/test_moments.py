"""Texts that Spark reads the clock for are refused where they become times, and only there."""

from time import process_time
from typing import TYPE_CHECKING

import pytest
from tests.language.examples import COLUMNS

from sluice.language.expression import Expression
from sluice.language.syntax import CLOCK
from sluice.language.type_rules import problems

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BY_THE_CLOCK = """
date('today')
timestamp(' Now ')
to_date('today')
try_to_timestamp('now')
timestamp_ltz 'now'
date 'today Europe/Berlin'
cast('today+01:00' as timestamp)
cast(trim('now') as timestamp)
at > 'now'
dt = ('today')
at <=> 'now'
at in ('2024-01-01', 'now')
at between 'yesterday' and 'tomorrow'
at - 'now'
timestampadd(hour, 1, at) > 'now'
coalesce(at, 'now')
if(flag, at, 'now')
nullif(at, 'now')
case when flag then at else 'now' end
case at when 'now' then 1 end
year('now')
extract(year from 'now')
date_part('year', 'now')
date_add('today', 1)
date_trunc('day', 'now')
datediff('today', dt)
array(at, 'now')
exists(array(at), x -> x > 'now')
transform(array(array(at)), xs -> filter(xs, x -> x >= 'today'))
"""
TEXTS = """
s = 'now'
s in ('today', 'tomorrow')
coalesce(s, 'today')
case s when 'today' then 'now' end
case when flag then 'now' else s end
s like 'now%'
concat(s, 'now')
date_format(at, 'yyyy')
struct(at as x, 'now' as y)
map('now', at)
at > '2024-01-01'
at > timestampadd(day, 1, timestamp '2024-01-01')
cast('epoch' as timestamp)
coalesce(to_timestamp(s), at)
dt > 'nowhere'
exists(array(s), x -> x = 'now')
transform(array(at), x -> 'now')
"""


def lines(text: str) -> list[str]:
    return text.strip().splitlines()


def told(text: str) -> list[str]:
    try:
        return list(problems(Expression.parse(text), COLUMNS, {}))
    except ValueError as refused:
        return [str(refused)]


@pytest.mark.parametrize("text", lines(BY_THE_CLOCK))
def test_a_text_that_becomes_a_time_by_the_clock_is_refused(text: str) -> None:
    assert any(CLOCK in problem for problem in told(text))


@pytest.mark.parametrize("text", lines(TEXTS))
def test_what_stays_a_text_is_taken(text: str) -> None:
    assert told(text) == []


def test_an_expression_as_long_as_may_be_is_reported_soon() -> None:
    started = process_time()
    assert told(" - ".join(["unknown"] * 1_900)) == []
    assert process_time() - started < 4


@pytest.mark.usefixtures("real_spark")
def test_spark_reads_the_clock_for_them(spark: "SparkSession") -> None:
    """Of another text that is no time it says so."""
    from pyspark.errors import DateTimeException

    values = {"at": "'2024-01-01'", "dt": "'2024-01-01'", "flag": "false"}
    row = spark.sql(
        "SELECT "
        + ", ".join(f"CAST({values.get(n, 'NULL')} AS {t}) AS {n}" for n, t in COLUMNS.items())
    )
    row.selectExpr(*lines(BY_THE_CLOCK)).collect()
    with pytest.raises(DateTimeException):
        row.selectExpr("at > 'nowhere'").collect()
