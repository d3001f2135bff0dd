"""Calls that Spark may answer otherwise are left to it."""

import pytest
from tests.interpreter.refusing import refused

from sluice.interpreter.local_session import Session, interpreting


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


ONE = "CAST(id AS INT)"
LARGE = f"CAST('{'9' * 37}' AS DECIMAL(37, 0)) + id - 1"
BOTH_SIDES = {
    # What is left to Spark, and what beside it is not, with its answer where `id` is 1.
    "double(id) % double('NaN')": ("double(id + 6) % 4.0D", 3.0),
    "double('Infinity') % double(id)": ("double(-7) % double(id + 3)", -3.0),
    "id + NULL": ("id + CAST(NULL AS BIGINT)", None),
    "id + true": ("id + 1", 2),
    "float(id) + float(id)": ("float(id) + double(id)", 2.0),
    "pmod(double(id), 2D)": ("pmod(-id, 3)", 2),
    "id div 2.0": ("id * 7 div 2", 3),
    "abs('a')": ("abs(-id)", 1),
    "ceil(id * 1.55, 1)": ("ceil(id * 1.55)", 2),
    "floor(float(id))": ("floor(double(id) / 2)", 0),
    "ceil(double('NaN') * id)": ("ceil(double(id) / 2)", 1),
    "round(id * 1.5D, -1)": ("round(id * 1.5D, 0)", 2.0),
    f"round(id * 1.25D, {ONE})": ("round(id * 1.25D, 1)", 1.3),
    "round(float(id))": ("round(double(id))", 1.0),
    f"array(1, 2)[{ONE} + 1]": (f"array(1, 2)[{ONE}]", 2),
    f"array(1, 2)[-{ONE}]": (f"array(1, 2)[{ONE} - 1]", 1),
    f"element_at(array(1, 2), {ONE} - 1)": (f"element_at(array(1, 2), {ONE})", 1),
    f"element_at(array(1, 2), {ONE} + 2)": (f"element_at(array(1, 2), {ONE} + 1)", 2),
    f"element_at(array(1, 2), -{ONE} - 2)": (f"element_at(array(1, 2), -{ONE} - 1)", 1),
    f"try_element_at(array(1, 2), {ONE} - 1)": (f"try_element_at(array(1, 2), {ONE} + 2)", None),
    f"slice(array(1, 2, 3), {ONE} - 1, 1)": (f"slice(array(1, 2, 3), {ONE} + 1, 0)", []),
    f"slice(array(1, 2, 3), 1, {ONE} - 2)": (f"slice(array(1, 2, 3), -2, {ONE})", [2]),
    f"sort_array(array({ONE}, 2), id > 0)": (f"sort_array(array({ONE}, 2), false)", [2, 1]),
    "array_repeat(NULL, 2)": (f"array_repeat({ONE}, 2)", [1, 1]),
    "array_repeat(1, id)": (f"array_repeat(7, {ONE} - 1)", []),
    f"sequence({ONE}, 3, 0)": (f"sequence({ONE}, 1, 0 + 1)", [1]),
    f"sequence({ONE}, 3, -1)": (f"sequence({ONE}, 3, 2)", [1, 3]),
    f"sequence(3, {ONE}, 1)": (f"sequence(3, {ONE}, -2)", [3, 1]),
    f"size(sequence({ONE}, 1000002))": (f"size(sequence({ONE}, 1000001))", 1_000_001),
    f"sequence({ONE}, 3, 1L)": (f"sequence({ONE}, 3)", [1, 2, 3]),
    "concat(id, binary('a'))": ("concat(id, 'a')", "1a"),
    f"array_join(array({ONE}, 2), ',')": ("array_join(array(string(id), '2'), ',')", "1,2"),
    f"array_append(array({ONE}), 2L)": (f"array_append(array({ONE}), 2)", [1, 2]),
    f"array_contains(array({ONE}), '1')": (f"array_contains(array({ONE}), 1L)", True),
    f"map_from_entries(array(struct({ONE}, 1, 2)))": (
        f"map_keys(map_from_entries(array(struct({ONE}, 2))))",
        [1],
    ),
    f"map_from_entries(array(struct({ONE}, 1), struct({ONE}, 2)))": (
        f"map_values(map_from_entries(array(struct({ONE}, 1), struct({ONE} + 1, 2))))",
        [1, 2],
    ),
    f"map({ONE}, 1, {ONE}, 2)": (f"map_keys(map({ONE}, 1, {ONE} + 1, 2))", [1, 2]),
    f"map(nullif({ONE}, 1), 1)": (f"map_values(map({ONE}, nullif({ONE}, 1)))", [None]),
    f"map_from_arrays(array({ONE}), array(1, 2))": (
        f"map_values(map_from_arrays(array({ONE}), array(3)))",
        [3],
    ),
    f"map_from_arrays(array({ONE}, 1), array(1, 2))": (
        f"map_values(map_from_arrays(array({ONE}, 2), array(1, 2)))",
        [1, 2],
    ),
    f"map_contains_key(map({ONE}, 2), 1L)": (f"map_contains_key(map({ONE}, 2), 1)", True),
    f"element_at(map({ONE}, 2), 'a')": (f"element_at(map({ONE}, 2), 2)", None),
    f"filter(array({ONE}), x -> x)": (f"filter(array({ONE}, 2), x -> x > 1)", [2]),
    f"exists(array({ONE}), (x, i) -> x > i)": (f"exists(array({ONE}), x -> x > 0)", True),
    f"aggregate(array({ONE}), 0, (a, x) -> a + 1L)": (
        f"aggregate(array({ONE}, 4), 0, (a, x) -> a + x)",
        5,
    ),
    f"array_sort(array({ONE}, 2), (a, b) -> 0L)": (
        f"array_sort(array({ONE}, 2), (a, b) -> b - a)",
        [2, 1],
    ),
    f"array_sort(array({ONE}, 2), (a, b) -> nullif(a - b, 1))": (
        f"array_sort(array({ONE} + 1, 1), (a, b) -> a - b)",
        [1, 2],
    ),
    f"array_sort(sequence({ONE}, 201), (a, b) -> b - a)[0]": (
        f"array_sort(sequence({ONE}, 200), (a, b) -> b - a)[0]",
        200,
    ),
    "to_json(id)": ("to_json(struct(id))", '{"id":1}'),
    "to_json(struct(id), map('pretty', 'true'))": (
        "to_json(struct(nullif(id, 1) AS a), map('ignoreNullFields', 'false'))",
        '{"a":null}',
    ),
    f"""get_json_object('{{"a": 1}}', concat('$.', '{"a"}', string(id)))""": (
        """get_json_object(concat('{"a": ', string(id), '}'), '$.a')""",
        "1",
    ),
    """get_json_object(concat('{"a": ', string(id), '}'), '$..a')""": (
        """get_json_object(concat('{"a": [', string(id), ', 5]}'), '$.a[1]')""",
        "5",
    ),
    """get_json_object(concat('{"a": 1, "a": ', string(id), '}'), '$.a')""": (
        """get_json_object(concat('{"a": 1, "b": ', string(id), '}'), '$.b')""",
        "1",
    ),
    """get_json_object(concat("{'a': ", string(id), "}"), '$.a')""": (
        """get_json_object(concat('{"a" ', string(id), '}'), '$.a')""",
        None,
    ),
    "CASE WHEN NULL THEN id END": ("CASE WHEN CAST(NULL AS BOOLEAN) THEN id ELSE 3 END", 3),
    "nanvl(float(id), float(2))": ("nanvl(double('NaN') * id, 2D)", 2.0),
    f"xxhash64(map({ONE}, 1)) = 0": (f"xxhash64(array({ONE})) = xxhash64(array(1))", True),
    f"add_months(DATE'9999-12-31', {ONE})": (
        f"string(add_months(DATE'9999-11-30', {ONE}))",
        "9999-12-30",
    ),
    f"add_months(DATE'0001-01-31', -{ONE})": (
        f"string(add_months(DATE'0001-02-28', -{ONE}))",
        "0001-01-28",
    ),
    f"-({LARGE})": (f"-({LARGE} - {LARGE} + 5)", -5),
    "unbase64(concat('QQ', string(id)))": (
        "string(unbase64(concat('QQ', repeat('=', CAST(2 * id AS INT)))))",
        "A",
    ),
    r"concat('a', id) LIKE '\\_%'": ("concat('a', id) LIKE '_1'", True),
    "concat('a', id) LIKE concat('a', id)": ("concat('A', id) ILIKE 'a%'", True),
    "concat('a', id) ILIKE concat('a', id)": ("concat('a', id) ILIKE 'b%'", False),
    f"locate('a', concat('ba', id), {ONE})": ("locate('a', concat('baa', id), 3)", 3),
    "locate('a', concat('ba', id), -1)": ("locate('a', concat('ba', id), 3)", 0),
    f"substring_index(concat('a.b', id), '.', -{ONE} - 2147483647)": (
        f"substring_index(concat('a.b', id), '.', -{ONE} - 2147483646)",
        "a.b1",
    ),
    r"translate(concat('ab', id), 'b', '\0')": ("translate(concat('ab', id), 'b1', 'c')", "ac"),
    f"split_part(concat('a.b', id), '.', {ONE} - 1)": (
        f"split_part(concat('a.b', id), '.', -{ONE})",
        "b1",
    ),
    "concat('ä', id) RLIKE 'ä'": ("concat('ä', id) RLIKE '^.1$'", True),
    "split(concat('ab', id), 'c*')": ("split(concat('ab', id), 'b')", ["a", "1"]),
    "regexp_extract(concat('a', id), '(.)', 2)": (
        "regexp_extract(concat('a', id), '.(.)', 1)",
        "1",
    ),
    "regexp_extract(concat('a', id), '(.)', -1)": (
        "regexp_extract(concat('a', id), '.(.)', 0)",
        "a1",
    ),
    "regexp_replace(concat('a', id), 'a', '$0')": (
        "regexp_replace(concat('a', id), 'a', 'b')",
        "b1",
    ),
    "to_date(concat('2024-01-0', id), 'yyyy-MM-dd-dd')": (
        "string(to_date(concat('2024-01-0', id), 'yyyy-MM-dd'))",
        "2024-01-01",
    ),
    "to_date(concat('2024é0', id), 'yyyyéMM')": (
        "string(to_date(concat('2024/0', id), 'yyyy/MM'))",
        "2024-01-01",
    ),
    "to_date(concat('0000-0', id), 'yyyy-MM')": (
        "string(to_date(concat('0001-0', id), 'yyyy-MM'))",
        "0001-01-01",
    ),
    "try_to_timestamp(concat('2024-01-0', id))": (
        "string(try_to_timestamp(concat('2024-01-x', id), 'yyyy-MM-dd'))",
        None,
    ),
    "timestampadd(FORTNIGHT, id, TIMESTAMP'2024-01-01')": (
        f"string(timestampadd(WEEK, {ONE}, TIMESTAMP'2024-01-01'))",
        "2024-01-08 00:00:00",
    ),
    "trunc(date_add(DATE'2024-02-02', id), concat('month', ''))": (
        f"string(trunc(date_add(DATE'2024-02-02', {ONE}), 'month'))",
        "2024-02-01",
    ),
    f"date_trunc(concat('da', repeat('y', {ONE})), TIMESTAMP'2024-01-01 12:00:00')": (
        "string(date_trunc('day', TIMESTAMP'2024-01-01 12:00:00' + make_interval(0, 0, 0, 0)))",
        "2024-01-01 00:00:00",
    ),
    f"date_format(date_add(DATE'0999-12-30', {ONE}), 'yyyy-MM-dd')": (
        f"date_format(date_add(DATE'0999-12-31', {ONE}), 'yyyy-MM-dd')",
        "1000-01-01",
    ),
    f"date_format(date_add(DATE'2024-01-01', {ONE}), 'EEEEE')": (
        f"date_format(date_add(DATE'2024-01-01', {ONE}), 'yyyy-MM')",
        "2024-01",
    ),
    f"make_date(2023, 2, 28 + {ONE})": (f"string(make_date(2024, 2, 28 + {ONE}))", "2024-02-29"),
    f"next_day(date_add(DATE'2024-01-01', {ONE}), 'noday')": (
        f"string(next_day(date_add(DATE'2024-01-01', {ONE}), 'tu'))",
        "2024-01-09",
    ),
    f"date_part('eon', date_add(DATE'2024-01-01', {ONE}))": (
        f"date_part('year', date_add(DATE'2024-12-31', {ONE}))",
        2025,
    ),
    "sum(string(id))": ("sum(id) + avg(id)", 2.0),
    "max_by(id, id, 100001)": ("max_by(id, id, 1)", [1]),
    "first(id, id > 0)": ("first(id, true)", 1),
    "mode(double(id))": ("mode(id)", 1),
    "count(*, id)": ("count(id, id)", 1),
    "max(id, id)": ("max(id)", 1),
    "every(DISTINCT id > 0)": ("count(DISTINCT id)", 1),
    "no_such_function(id)": ("abs(id)", 1),
}


@pytest.mark.parametrize("sql", BOTH_SIDES)
def test_a_call_is_left_to_spark_and_its_neighbour_is_not(sql: str) -> None:
    refused(sql)
    taken, answer = BOTH_SIDES[sql]
    with interpreting(Session()) as session:
        (row,) = session.range(1, 2).selectExpr(f"{taken} AS found").collect()
    assert row.found == answer
