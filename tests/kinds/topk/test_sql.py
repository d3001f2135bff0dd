"""A top-k as SQL: the two spellings that are read, and all that is refused by name."""

from collections.abc import Callable
from typing import Any

import pytest

from sluice.kinds.topk.spec import TopK
from sluice.kinds.topk.sql import read_topk

Refusal = Callable[..., str]

RANKED = "row_number() over (partition by d order by s desc) as rank"


def declared(**fields: Any) -> TopK:
    return TopK.model_validate({"name": "t", "pipeline": "p", **fields})


def same(sql: str, **fields: Any) -> bool:
    read = declared(sql=sql).model_dump(exclude={"sql"})
    return bool(read == declared(**fields).model_dump(exclude={"sql"}))


def test_the_numbered_subquery_is_the_declaration() -> None:
    sql = f"SELECT * FROM (SELECT *, {RANKED} FROM sales) WHERE rank <= 10"
    assert same(sql, **{"from": "sales"}, partition_by=["d"], order_by=["s desc"], limit=10)


def test_qualify_is_the_declaration_without_a_rank_column() -> None:
    sql = "SELECT * FROM sales QUALIFY dense_rank() OVER (PARTITION BY d ORDER BY s DESC) <= 3"
    assert same(
        sql,
        **{"from": "sales"},
        partition_by=["d"],
        order_by=["s desc"],
        limit=3,
        rank=None,
        function="dense_rank",
    )


def test_a_table_of_another_pipeline_keeps_its_pipeline() -> None:
    sql = "SELECT * FROM other.sales QUALIFY rank() OVER (ORDER BY s) = 1"
    assert read_topk(sql)["from"] == "other.sales"


@pytest.mark.parametrize(
    ("condition", "limit", "offset"),
    [
        ("rank <= 10", 10, 0),
        ("rank < 10", 9, 0),
        ("rank = 1", 1, 0),
        ("rank = 3", 1, 2),
        ("rank between 2 and 5", 4, 1),
        ("rank >= 2 and rank <= 5", 4, 1),
        ("rank > 2 and rank <= 5", 3, 2),
        ("rank >= 0 and rank < 3", 2, 0),
        ("rank <= most", "most", 0),
        ("(rank <= 4)", 4, 0),
        ("10 >= rank", 10, 0),
        ("10 > RANK", 9, 0),
        ("2 < rank and 5 >= rank", 3, 2),
    ],
)
def test_the_condition_gives_limit_and_offset(
    condition: str, limit: int | str, offset: int
) -> None:
    fields = read_topk(f"SELECT * FROM (SELECT *, {RANKED} FROM sales) WHERE {condition}")
    assert (fields["limit"], fields["offset"]) == (limit, offset)


def test_selected_columns_are_expressions_over_the_input() -> None:
    sql = f"SELECT u, rank FROM (SELECT upper(d) AS u, s, {RANKED} FROM sales) WHERE rank <= 1"
    fields = read_topk(sql)
    assert {name: e.sql for name, e in fields["select"].items()} == {"u": "UPPER(d)"}
    assert fields["rank"] == "rank"


def test_a_rank_that_is_not_selected_is_no_column() -> None:
    sql = f"SELECT d, s FROM (SELECT *, {RANKED} FROM sales) WHERE rank <= 1"
    assert read_topk(sql)["rank"] is None


def test_a_partition_by_an_expression_takes_its_name_from_the_select_list() -> None:
    sql = (
        "SELECT upper(d) AS u, s, row_number() OVER (PARTITION BY upper(d) ORDER BY s) AS n "
        "FROM sales QUALIFY n <= 2"
    )
    (partition,) = read_topk(sql)["partition_by"]
    assert (partition.name, partition.expression.sql) == ("u", "UPPER(d)")


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT * FROM (SELECT *, {RANKED} FROM sales) AS t WHERE t.rank <= 2",
        f"SELECT t.* FROM (SELECT sales.*, {RANKED} FROM sales) T WHERE t.rank <= 2;",
        f"SELECT * FROM (SELECT x.*, {RANKED.replace('d ', 'x.d ')} FROM sales x) WHERE rank < 3",
        f"WITH best AS (SELECT *, {RANKED} FROM sales) SELECT * FROM best WHERE rank <= 2",
        f"WITH best AS (SELECT *, {RANKED} FROM sales) SELECT b.* FROM best b WHERE b.rank <= 2",
        f"SELECT *, {RANKED} FROM sales QUALIFY rank <= 2",
        f"SELECT *, {RANKED} FROM sales QUALIFY {RANKED.removesuffix(' as rank')} <= 2",
    ],
)
def test_aliases_and_with_are_the_same_declaration(sql: str) -> None:
    assert same(sql, **{"from": "sales"}, partition_by=["d"], order_by=["s desc"], limit=2)


def test_a_field_of_a_struct_is_no_column_of_the_subquery() -> None:
    ranked = "SELECT *, rank() OVER (ORDER BY t.city) AS n FROM sales"
    (key,) = read_topk(f"SELECT * FROM ({ranked}) AS t WHERE t.n = 1")["order_by"]
    assert key.sql == "t.city ASC NULLS FIRST"


def test_columns_keep_the_names_that_the_outer_query_gives_them() -> None:
    sql = (
        f"SELECT d AS region, s, rank AS place FROM (SELECT *, {RANKED} FROM sales) WHERE rank = 1"
    )
    fields = read_topk(sql)
    assert [named.name for named in fields["partition_by"]] == ["region"]
    assert (list(fields["select"]), fields["rank"]) == (["region", "s"], "place")


QUALIFY = "QUALIFY row_number() over (order by s) = 1"


@pytest.mark.parametrize(
    ("sql", "part"),
    [
        ("SELECT * FROM sales ORDER BY s LIMIT 3", "LIMIT"),
        ("SELECT * FROM sales", "a query without a ranked subquery or QUALIFY"),
        (f"SELECT * FROM sales JOIN x ON true {QUALIFY}", "JOIN"),
        (f"SELECT * FROM sales, x {QUALIFY}", "JOIN"),
        (f"SELECT d FROM sales GROUP BY d {QUALIFY}", "GROUP BY"),
        (f"SELECT DISTINCT * FROM sales {QUALIFY}", "DISTINCT"),
        (f"SELECT * FROM sales {QUALIFY} ORDER BY s", "ORDER BY"),
        (f"WITH x AS (SELECT 1) SELECT * FROM x {QUALIFY}", "WITH"),
        (f"SELECT * FROM sales AS x(a, b) {QUALIFY}", "an alias of the input"),
        (
            f"SELECT * FROM (SELECT *, {RANKED} FROM sales) TABLESAMPLE (1 ROWS) WHERE rank = 1",
            "SAMPLE",
        ),
        (f"SELECT * EXCEPT (s) FROM sales {QUALIFY}", "* EXCEPT"),
        (
            f"SELECT rank, rank AS n FROM (SELECT *, {RANKED} FROM sales) WHERE rank <= 1",
            "the rank under several names",
        ),
        (
            "SELECT * FROM sales WINDOW w AS (ORDER BY s) QUALIFY row_number() over w = 1",
            "WINDOW",
        ),
        (
            f"SELECT * FROM sales {QUALIFY} AND row_number() over (order by d) <= 2",
            "a query without exactly one ranking function",
        ),
        (f"SELECT * FROM read_files('x') {QUALIFY}", "an input that is not a table"),
        (f"SELECT * FROM (SELECT * FROM sales) {QUALIFY}", "an input that is not a table"),
        (f"SELECT * FROM sales VERSION AS OF 1 {QUALIFY}", "VERSION"),
        (f"SELECT *, d FROM sales {QUALIFY}", "other columns beside *"),
        (f"SELECT upper(d) FROM sales {QUALIFY}", "UPPER(d) without a name (AS ...)"),
        (
            "SELECT * FROM sales QUALIFY lag(s) over (order by s) = 1",
            "LAG(s) in place of row_number, rank, dense_rank",
        ),
        (
            "SELECT * FROM sales QUALIFY row_number() over (partition by d) = 1",
            "a ranking without ORDER BY",
        ),
        (
            "SELECT * FROM sales QUALIFY row_number() over (order by s rows 1 preceding) = 1",
            "a window's frame",
        ),
        (
            "SELECT * FROM sales QUALIFY row_number() over (order by s) >= 1",
            "a ranking without exactly one upper bound",
        ),
        (
            "SELECT * FROM sales QUALIFY row_number() over (order by s) = 1 OR s > 1",
            "the condition ROW_NUMBER() OVER (ORDER BY s) = 1 OR s > 1",
        ),
        (
            "SELECT * FROM sales QUALIFY row_number() over (order by s) = 0",
            "a range of ranks that is empty",
        ),
        (
            "SELECT * FROM sales QUALIFY row_number() over (partition by upper(d) order by s) = 1",
            "PARTITION BY UPPER(d) without selecting it under a name",
        ),
        (f"SELECT * FROM (SELECT *, {RANKED} FROM sales) WHERE s <= 1", "the condition s <= 1"),
        (
            f"SELECT * FROM (SELECT *, {RANKED} FROM sales) WHERE rank <= 1 + 1",
            "the condition rank <= 1 + 1",
        ),
        ("DELETE FROM sales", "DELETE"),
    ],
)
def test_what_a_topk_can_not_do_is_refused_by_name(refusal: Refusal, sql: str, part: str) -> None:
    said = refusal(read_topk, sql)
    assert said.startswith(f"{part} is not supported in a top-k's sql; write SELECT")


def test_what_the_sql_says_is_not_said_again() -> None:
    with pytest.raises(ValueError, match="`sql` already defines this: drop limit, order_by"):
        declared(sql="SELECT * FROM x", limit=1, order_by=["a"])


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT * FROM (SELECT *, {RANKED} FROM sales WHERE s > 1) WHERE rank <= 2",
        f"SELECT *, {RANKED} FROM sales t WHERE t.s > 1 QUALIFY rank <= 2",
    ],
)
def test_a_condition_of_the_ranked_rows_is_the_views_where(sql: str) -> None:
    assert read_topk(sql)["where"].sql == "s > 1"
    with pytest.raises(ValueError, match="'rand' is not allowed"):
        read_topk(sql.replace("t.s > 1", "s > 1").replace("s > 1", "rand() > 1"))
