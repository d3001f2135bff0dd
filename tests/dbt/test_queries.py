"""SQL of several warehouses as Spark SQL that means the same, or a refusal that says why."""

from dataclasses import replace

import pytest
from tests.dbt.warehouse import MANIFEST
from tests.support.wording import cells

from sluice.dbt import DbtNode, Relations, free_names, read_artifacts, type_in_spark
from sluice.dbt.queries import READS_ITSELF, TranslatedQuery, translate, translated_condition

PROJECT = read_artifacts(MANIFEST, None)
NAMES = free_names(PROJECT.nodes)
CUT = "UNIX_SECONDS(DATE_TRUNC('HOUR', {}))"
ORDERS = PROJECT.nodes["model.bakery.orders"]


def query(sql: str, dialect: str = "duckdb", node: DbtNode = ORDERS) -> TranslatedQuery:
    relations = Relations(replace(PROJECT, dialect=dialect))
    columns = {"_actionts": "actionts"}
    return translate(replace(node, sql=sql), dialect, relations, NAMES, "bakery", columns)


def text(sql: str, dialect: str = "duckdb") -> str:
    """The query in one line."""
    return " ".join(query(sql, dialect).text.split())


@pytest.mark.parametrize(
    ("sql", "spark"),
    [
        (
            'select x.id from "bakery"."raw"."orders" as x',
            "SELECT x.id FROM raw_orders AS x",
        ),
        (  # columns that name the table in full
            'select "bakery"."raw"."orders".id from "bakery"."raw"."orders"',
            "SELECT `orders`.id FROM raw_orders AS orders",
        ),
        (  # a CTE with the name that the table has in the pipeline
            'with payments as (select * from "bakery"."raw"."payments") select id from payments',
            "WITH payments AS ( SELECT * FROM bakery.payments ) SELECT id FROM payments",
        ),
        ("select id from raw.payments", "SELECT id FROM payments"),
        (  # a column whose name can't be declared
            'with c(_ActionTS) as (select "_ActionTS" from payments) select _actionts as b from c',
            "WITH c(actionts) AS ( SELECT actionts FROM payments ) SELECT actionts AS b FROM c",
        ),
        (  # fields of a struct in a struct
            "select p.a.b.c, orders.raw.x.y, raw.orders.z.y from raw.orders, payments p",
            "SELECT p.a.b.c, orders.raw.x.y, orders.z.y FROM raw_orders AS orders, payments AS p",
        ),
        ("select Id from RAW.Payments", "SELECT Id FROM payments"),
    ],
)
def test_relations_have_their_names_in_the_pipeline(sql: str, spark: str) -> None:
    assert text(sql) == spark


@pytest.mark.parametrize(
    ("dialect", "expression", "spark"),
    [
        ("duckdb", "date_diff('day', a, b)", "(DATEDIFF(b, a))"),
        ("snowflake", "datediff(day, a, b) * 2", "(DATEDIFF(b, a)) * 2"),
        ("bigquery", "date_diff(b, a, year)", "(YEAR(b) - YEAR(a))"),
        (
            "redshift",
            "datediff(month, a, b) * 2",
            "((YEAR(b) - YEAR(a)) * 12 + MONTH(b) - MONTH(a)) * 2",
        ),
        ("databricks", "datediff(day, a, b)", "DATEDIFF(DAY, a, b)"),
        ("trino", "date_diff('day', a, b)", "DATEDIFF(DAY, a, b)"),
        ("duckdb", "a is distinct from b", "NOT (a IS NOT DISTINCT FROM b)"),
        ("duckdb", "a is not distinct from b", "a IS NOT DISTINCT FROM b"),
        ("bigquery", "cast(a as numeric)", "CAST(a AS DECIMAL(38, 9))"),
        ("redshift", "a::numeric", "CAST(a AS DECIMAL(18, 0))"),
        ("postgres", "a::numeric(10, 2)", "CAST(a AS DECIMAL(10, 2))"),
        (
            "postgres",
            "a::varchar(3)::varchar(2)",
            "LEFT(CAST(LEFT(CAST(a AS STRING), 3) AS STRING), 2)",
        ),
        ("snowflake", "a::varchar(3)", "CAST(a AS STRING)"),
        ("postgres", "a::timestamp", "CAST(a AS TIMESTAMP)"),
        ("postgres", "a::int / b::int", "CAST(a AS INT) DIV CAST(b AS INT)"),
        ("snowflake", "iff(a > 1, b, c)", "IF(a > 1, b, c)"),
        (
            "duckdb",
            "date_diff('hour', a, b)",
            f"(({CUT.format('b')} - {CUT.format('a')}) DIV 3600)",
        ),
        ("snowflake", "dateadd(month, -1, a)", "(a - INTERVAL '1' MONTH)"),
        ("redshift", "dateadd(day, 2, a)", "(a + INTERVAL '2' DAY)"),
        ("bigquery", "date_sub(a, interval 3 day)", "(a - INTERVAL '3' DAY)"),
        ("postgres", "extract(dow from a)", "(DAYOFWEEK(a) - 1)"),
        ("duckdb", "date_part('dow', a)", "(DAYOFWEEK(a) - 1)"),
        ("duckdb", "isodow(a)", "(WEEKDAY(a) + 1)"),
        ("bigquery", "extract(dayofweek from a)", "DAYOFWEEK(a)"),
        ("postgres", "percentile_cont(0.5) within group (order by a)", "PERCENTILE(a, 0.5)"),
        ("postgres", "log(a)", "LOG10(a)"),
        ("bigquery", "log(a)", "LN(a)"),
        ("postgres", "regexp_replace(a, 'x', 'y', 'g')", "REGEXP_REPLACE(a, 'x', 'y')"),
        ("snowflake", "regexp_replace(a, 'x', 'y')", "REGEXP_REPLACE(a, 'x', 'y')"),
    ],
)
def test_an_expression_means_the_same(dialect: str, expression: str, spark: str) -> None:
    found = text(f"select {expression} as x from raw.orders", dialect)
    tight = found.replace("( ", "(").replace(" )", ")")
    assert tight == f"SELECT {spark} AS x FROM raw_orders AS orders"


@pytest.mark.parametrize(
    ("dialect", "sql", "says"),
    [
        *cells("""
            postgres | select a::numeric from raw.orders | a DECIMAL without places
            snowflake | select datediff(week, a, b) from raw.orders | weeks start on a different day
            snowflake | select dateadd(day, n, a) from raw.orders | only a constant number of units
            bigquery | select extract(week from a) from raw.orders | weeks start on a different day
            postgres | select regexp_replace(a, 'x', 'y') from raw.orders | add 'g'
            postgres | select percentile_disc(0.5) within group (order by a) from raw.orders
                | Spark's exact percentile interpolates
            duckdb | select 1; select 2 | not a single SELECT
            duckdb | create table t (a int) | not a single SELECT
            duckdb | select * from read_csv('a.csv') | which is not a table
            duckdb | select * from nowhere | 'nowhere', which dbt doesn't know
            duckdb | select ( | can't be read as duckdb: line 1
        """),
        ("duckdb", "select * from main.orders", READS_ITSELF),
    ],
)
def test_what_would_be_another_result_is_refused(dialect: str, sql: str, says: str) -> None:
    with pytest.raises(ValueError, match=r".+") as refused:
        query(sql, dialect)
    assert says in str(refused.value)


def test_a_division_of_unknown_types_is_to_be_checked_where_whole_numbers_are_cut() -> None:
    sql = "select a / b, a / 2.0, a::float / b from raw.orders"
    (caution,) = query(sql, "postgres").cautions
    assert caution.startswith("a / b: Spark's / keeps the fraction")
    assert query(sql, "snowflake").cautions == ()


def test_a_function_that_is_not_known_is_to_be_checked() -> None:
    (caution,) = query("select hash(id) from raw.orders").cautions
    assert caution == "hash() is taken for Spark's function of that name"


def test_a_condition_on_is_incremental_that_leaves_no_trace_is_to_be_checked() -> None:
    raw = "select 1 {% if is_incremental() %} where a > {{ var('since') }} {% endif %}"
    node = replace(ORDERS, raw=raw)
    (caution,) = query("select id from raw.orders", node=node).cautions
    assert "dbt compile --full-refresh" in caution


def test_a_condition_of_a_test_is_translated() -> None:
    assert translated_condition("d > '2024-01-01'::date", "postgres") == (
        "d > CAST('2024-01-01' AS DATE)"
    )
    with pytest.raises(ValueError, match="can't be read as postgres"):
        translated_condition("d >", "postgres")


@pytest.mark.parametrize(
    ("dialect", "type_", "spark"),
    [
        ("duckdb", "TIMESTAMP", "TIMESTAMP"),
        ("duckdb", "HUGEINT", "DECIMAL(38, 0)"),
        ("duckdb", "STRUCT(a UINTEGER, b VARCHAR[])", "STRUCT<a: BIGINT, b: ARRAY<STRING>>"),
        ("postgres", "character varying(20)", "STRING"),
        ("postgres", "timestamp without time zone", "TIMESTAMP"),
        ("postgres", "jsonb", "STRING"),
        ("postgres", "numeric", "?"),
        ("postgres", "", "?"),
        ("postgres", "geometry", "?"),
        ("snowflake", "NUMBER(38,0)", "DECIMAL(38, 0)"),
        ("snowflake", "TIMESTAMP_NTZ", "TIMESTAMP"),
        ("bigquery", "INT64", "BIGINT"),
        ("bigquery", "NUMERIC", "DECIMAL(38, 9)"),
        ("redshift", "double precision", "DOUBLE"),
    ],
)
def test_a_type_of_a_warehouse_is_one_of_spark_or_a_gap(
    dialect: str, type_: str, spark: str
) -> None:
    assert type_in_spark(type_, dialect) == spark


def test_clashing_and_reserved_names_become_free_ones() -> None:
    names = free_names(
        {
            i: replace(ORDERS, id=i, type=type_, name=name, group=group)
            for i, type_, name, group in (
                ("m1", "model", "orders", "main"),
                ("m2", "model", "stg__orders", "main"),
                ("m3", "model", "stg_orders", "main"),
                ("s1", "source", "Orders", "raw"),
                ("s2", "source", "orders", "RAW"),
                ("s3", "source", "orders", "raw"),
                ("s4", "source", "2024", "raw"),
            )
        }
    )
    assert names == {
        "m1": "orders",
        "m2": "stg_orders",
        "m3": "main_stg_orders",
        "s1": "raw_orders",
        "s2": "raw_source_orders",
        "s3": "raw_source_orders_2",
        "s4": "t_2024",
    }
