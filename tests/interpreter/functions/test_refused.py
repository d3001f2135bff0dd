"""Calls that Spark may answer otherwise are left to it."""

import pytest
from tests.interpreter.refusing import refused


@pytest.mark.parametrize(
    "pattern", ["a{,2}", "a{", "(?is)(a.*)b", "(?x)a b", "(?a)a", r"\\\\ba", r"\\\\{"]
)
def test_patterns_that_java_reads_otherwise(pattern: str) -> None:
    refused(f"concat('a', CAST(id AS STRING)) RLIKE '{pattern}'")


@pytest.mark.parametrize("pattern", ["x*", "a??", "|a", "()", ""])
def test_replacements_where_there_is_nothing(pattern: str) -> None:
    refused(f"regexp_replace(concat('a', CAST(id AS STRING)), '{pattern}', '-')")


@pytest.mark.parametrize(
    "sql",
    [
        "substring_index(CAST(id AS STRING), '1', -2147483648)",
        "regexp_replace(CAST(id AS STRING), '1', '$0')",
        r"translate(CAST(id AS STRING), '1', '\0')",
        "locate('1', CAST(id AS STRING), CAST(id AS INT))",
        "row_number() OVER ()",
        "lag(id) OVER (PARTITION BY id)",
        "lag(CAST(id AS INT), 1, id) OVER (ORDER BY id)",
        "filter(array(1, 2), x -> x)",
        "exists(array(1, 2), x -> x + 1)",
        "forall(array(1, 2), x -> NULL)",
        "aggregate(array(1, 2), 0, (t, x) -> t + 1L)",
        "aggregate(array(1, 2), CAST(0 AS DECIMAL(10, 0)), (t, x) -> t + x)",
        "array_sort(array(2, 1), (a, b) -> NULL)",
        "positive(CAST(id AS STRING))",
        "DATE'2024-03-01' + timestamp_seconds(id)",
        "timestamp_seconds(id) + DATE'2024-03-01'",
        "DATE'2024-03-01' + date_add(DATE'2024-03-01', CAST(id AS INT))",
        "CASE WHEN NULL THEN id END",
        "array_contains(array(1, 2), NULL)",
        "array_contains(array(), NULL)",
        "array_distinct(array(map(1, id)))",
        "array_except(array(1, 2), array(1.5))",
        "arrays_overlap(array(1, 2), array(1.5))",
        "array(1, 2) = array(1.5)",
        "struct(1) <=> struct(1.5)",
        "concat(array(1), NULL)",
        "concat()",
        "concat(CAST('a' AS BINARY), CAST('b' AS BINARY))",
        "forall(array(1), x -> x > 0, x -> x > 1)",
        "exists(array(1), (x, n) -> n > 0)",
        "named_struct(CAST(id AS STRING), 1)",
        "element_at(map('1', id), 1)",
        "to_utc_timestamp(timestamp_seconds(id), IF(id > 1, array('UTC'), NULL))",
        "split_part('abc', 'b', -2147483648)",
        "CAST(id AS STRING COLLATE UTF8_LCASE) = 'A'",
        "CAST(struct('a') AS STRUCT<a: STRING COLLATE UTF8_LCASE>).a = 'A'",
        "CAST(struct(id) AS STRUCT<a: BIGINT NOT NULL>)",
        "map(map(1, id), 2)",
        "map_from_arrays(array(map(1, id)), array(2))",
        "to_utc_timestamp(timestamp(date_add(DATE'2024-01-01', 0)), 'America/Coyhaique')",
    ],
)
def test_calls_that_spark_refuses_or_fails_at(sql: str) -> None:
    refused(sql)
