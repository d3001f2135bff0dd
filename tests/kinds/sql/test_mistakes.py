"""What a query can't say: refused by name, with the line, before anything runs."""

from pathlib import Path

import pytest
from tests.kinds.sql.shop import SOURCES, problems_of, refusal
from tests.support.lake import HEAD

from sluice.declare.project import load
from sluice.declare.table import Table
from sluice.errors import ConfigError

REFUSED = {
    "SELECT id FROM order": "line 1: unknown table 'order'; did you mean 'orders'?",
    "WITH q AS (\n  SELECT k FROM nowhere)\nSELECT id FROM orders o JOIN q ON o.k = q.k": (
        "line 2: unknown table 'nowhere'"
    ),
    "SELECT id FROM orders WHERE at > timestamp 'today'": "the time of running is not allowed",
    "SELECT id AS `a b` FROM orders": "'a b' is not a name: use lower case letters",
    "SELECT id AS _id FROM orders": "'_id' is not a name: begin with a letter, then use lower",
    "SELECT 1 AS one": "the query reads no table",
    "SELECT v FROM orders LATERAL VIEW explode(v) x AS e": "an ARRAY is exploded",
    "SELECT n FROM explode(sequence(1, 3)) AS r(n)": "the query reads no table",
    "SELECT g FROM orders UNION ALL SELECT n FROM people": "g is INT here and STRING in orders",
    "SELECT sum(g) AS s FROM orders": "sum",
    "SELECT first(v) AS f FROM orders GROUP BY k": "first depends on the order of the rows",
    "SELECT id FROM orders; SELECT id FROM orders": "one SELECT is expected",
    "DELETE FROM orders": "one SELECT is expected",
    "SELECT id FROM where": "Expected table name but got 'where' at column",
    "SELECT FROM WHERE": "can't read the query",
    "SELECT id\nFROM orders\nWHERE (v > 1": "line 3: can't read the query: Expecting ) at column",
    "": "one SELECT is expected",
    # What is not Spark SQL, or is not there.
    "SELECT nothing FROM orders": "line 1: column 'nothing' is unknown",
    "SELECT o.nothing FROM orders o": "line 1: unknown column 'nothing'; columns are: id, k, g",
    "SELECT k FROM orders JOIN people ON id = pid": (
        "line 1: column 'k' is unknown, or more than one table has it"
    ),
    "SELECT id, rand() AS r FROM orders": "the function 'rand' is not allowed",
    "SELECT id, now() AS t FROM orders": "the time of running is not allowed",
    "SELECT id, current_date AS t FROM orders": "the time of running is not allowed",
    "WITH RECURSIVE q AS (SELECT id FROM orders) SELECT id FROM q": "WITH RECURSIVE",
    "SELECT id FROM orders o, (VALUES (now())) AS n(a)": "the time of running is not allowed",
    "SELECT id FROM orders WHERE (k, v) NOT IN (SELECT k FROM people)": "2 value(s) with 1",
    "SELECT id FROM orders WHERE (k, v) NOT IN (SELECT * FROM people)": "2 value(s) with 4",
    "SELECT id FROM orders WHERE (k, v) IN (SELECT k, n, pid FROM people)": "2 value(s) with 3",
    "SELECT id FROM orders WHERE k IN (SELECT k, n FROM people) OR v = 1": "1 value(s) with 2",
    "SELECT id FROM orders o WHERE k IN (SELECT max(k), max(n) FROM people p WHERE p.k = o.k)": (
        "1 value(s) with 2"
    ),
    "SELECT id FROM orders WHERE (k, v) IN ((1, 2), (3, 4, 5))": "different numbers of columns",
    "SELECT id FROM orders WHERE (k, v) IN ((1, 2), 3)": "different numbers of columns",
    "SELECT id FROM orders WHERE v > ALL (SELECT n FROM people)": "ALL (subquery) is not Spark SQL",
    "SELECT k, listagg(g, ',') AS l FROM orders GROUP BY k": "add WITHIN GROUP (ORDER BY ...)",
    "SELECT k, percentile_disc(0.5) WITHIN GROUP (ORDER BY v) AS p FROM orders GROUP BY k": (
        "percentile_cont and mode sort ascending"
    ),
    "SELECT * FROM (PIVOT orders ON k IN (1, 2) USING sum(v) GROUP BY g) p": "PIVOT is written in",
    "WITH RECURSIVE q AS (SELECT 1 AS n FROM orders UNION ALL SELECT n + 1 FROM q WHERE n < 3) "
    "SELECT n FROM q": "WITH RECURSIVE",
    "SELECT * FROM orders, range(k)": "range(...) takes one to three whole numbers",
    "SELECT * FROM orders, range(2, 1)": "has no rows",
    "SELECT * FROM orders, stack(1, 2)": "stack(...) in FROM",
    "WITH orders AS (SELECT id FROM orders) SELECT id FROM orders": "'orders' of WITH",
    # Joins, subqueries and clauses of a SELECT that can't be kept.
    "SELECT o.id\nFROM orders o\nJOIN people p ON o.k <=> p.k": "line 3: `<=>` alone can't be",
    "SELECT id, n\nFROM orders, people": "line 2: a join without an equality",
    "SELECT o.id\nFROM orders o JOIN people p ON o.k < p.k": "line 2: a join without an equality",
    "SELECT o.id\nFROM orders o\nJOIN (SELECT pid, w AS k FROM people) p USING (k)": (
        "line 3: 'o.k' is INT and 'p.k' is STRING, which are not the same values"
    ),
    "SELECT o.id\nFROM orders o\nJOIN people p\nON o.k = p.w": (
        "line 4: 'o.k' is INT and 'p.w' is STRING"
    ),
    "SELECT id FROM orders LIMIT 3": "LIMIT without ORDER BY takes arbitrary rows",
    "SELECT id FROM orders ORDER BY id OFFSET 3": "OFFSET without LIMIT",
    "SELECT id AS a, v AS a FROM orders": "two columns have the same name",
    "SELECT id FROM orders TABLESAMPLE (10 PERCENT)": "TABLESAMPLE",
    "SELECT explode(array(k)) AS a, explode(array(v)) AS b FROM orders": "two arrays are exploded",
    "SELECT id FROM orders o WHERE v > (SELECT n FROM people p WHERE p.k = o.k)": "several rows",
    "SELECT id FROM orders WHERE (id, k, v, g, at) NOT IN (SELECT id, k, v, g, at FROM orders)": (
        "NOT IN of more than 4 columns: write NOT EXISTS"
    ),
    "SELECT id FROM orders o WHERE (k, v) NOT IN (SELECT k, n FROM people p WHERE p.w = o.g)": (
        "a correlated NOT IN of several columns is not supported: write NOT EXISTS"
    ),
    "SELECT o.id, q.s FROM orders o, LATERAL "
    "(SELECT sum(n) AS s FROM people p HAVING sum(n) > 1) q": ("a LATERAL aggregate with HAVING"),
    "SELECT pid FROM people p WHERE EXISTS (SELECT 1 FROM orders o WHERE o.k = p.k AND NOT EXISTS "
    "(SELECT 1 FROM events e WHERE e.id = o.id AND e.eid = p.n))": (
        "reads a table that is not in the query directly outside"
    ),
    "SELECT id, (SELECT n FROM people p WHERE p.k = o.k AND p.pid > 1) AS n FROM orders o": (
        "a scalar subquery without an aggregate may give several rows"
    ),
    "SELECT id, (SELECT max(n) FROM people p WHERE p.k = o.k GROUP BY w) AS n FROM orders o": (
        "a scalar subquery with GROUP BY may give several rows"
    ),
    "SELECT id, (SELECT max(n) FROM people p WHERE p.n < o.v) AS n FROM orders o": (
        "a scalar subquery needs an equality to the outer query"
    ),
    "SELECT id, (SELECT max(n) FROM people p WHERE p.k = o.k AND p.n <=> o.v) AS n FROM orders o": (
        "this condition on the outer query is not supported"
    ),
    "SELECT o.id FROM orders o ASOF LEFT JOIN people p ON o.k >= p.k": "ASOF LEFT JOIN",
    "SELECT * FROM orders o JOIN orders p ON o.id = p.id": "two columns have the same name",
    "SELECT o.id FROM orders o, people p FULL JOIN events e ON e.id = o.id WHERE o.k = p.k": (
        "write JOIN in place of the comma"
    ),
    "SELECT o.id FROM orders o LEFT JOIN people p ON p.k = o.k AND EXISTS (SELECT 1 FROM events)": (
        "a subquery in ON"
    ),
    "SELECT id, (SELECT max(n + o.v)\nFROM people p WHERE p.k = o.k) AS m FROM orders o": (
        "line 1: o.v of the outer query in the value of a subquery"
    ),
    "SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM people p\n"
    "LEFT JOIN events e ON e.id = p.pid AND e.eid > o.v WHERE p.k = o.k)": (
        "line 2: o.v of the outer query in ON of an outer join"
    ),
    # Groups, windows and constants that a query can't have.
    "SELECT g FROM orders\nWHERE sum(v) > 1": "line 2: SUM(orders.v) in WHERE or GROUP BY: write",
    "SELECT g, max(v) AS v FROM orders\nGROUP BY g ORDER BY sum(v) LIMIT 1": (
        "line 2: SUM(MAX(orders.v)), an aggregate of an aggregate: write the inner one"
    ),
    "SELECT g, v FROM orders GROUP BY g": "orders.v is neither in GROUP BY nor in an aggregate",
    "SELECT o.id FROM orders o JOIN (VALUES (1), (2, 3)) AS n(a) ON o.k = n.a": "each row of",
    "SELECT k, any_value(g) AS l FROM orders GROUP BY k": "write min(x), or group by its columns",
    "SELECT last_value(v) OVER (PARTITION BY g ORDER BY k) AS l FROM orders": "rows that tie",
    "SELECT last(v) OVER (PARTITION BY g ORDER BY k) AS l FROM orders": "rows that tie",
    "SELECT first_value(v) IGNORE NULLS OVER (ORDER BY k) AS l FROM orders": "rows that tie",
    "SELECT first_value(v, true) OVER (ORDER BY k) AS l FROM orders": "rows that tie",
    "SELECT id,\n  rank(v) OVER (ORDER BY id) AS l FROM orders": (
        "line 2: 'RANK(v) OVER (ORDER BY id)': rank takes no argument"
    ),
    "SELECT id,\n  avg(x) OVER (ORDER BY eid) AS l FROM events": (
        "line 2: AVG(x) of DOUBLE depends on the order of ties; write OVER (… ROWS UNBOUNDED"
    ),
    "SELECT k,\n  sum(g) AS l FROM orders GROUP BY k": "line 2: 'SUM(g)': sum takes a number",
    "SELECT g, last(v, true) AS l FROM orders GROUP BY g": "last depends on the order of the rows",
    "SELECT g, sum(v) IGNORE NULLS AS s FROM orders GROUP BY g": "sum has no IGNORE NULLS",
    # What no equivalent query replaces.
    "SELECT o.id, q.w FROM orders o, LATERAL "
    "(SELECT w FROM people p WHERE p.k > o.k GROUP BY w) q": (
        "may be correlated with the outer query by equalities only"
    ),
    "SELECT * FROM (SELECT k, v FROM orders) PIVOT (sum(v) FOR k IN (1, 2))": (
        "'1' of PIVOT has no usable column name"
    ),
    "SELECT * FROM people UNPIVOT (a FOR b IN (k, n))": "UNPIVOT",
    "SELECT id FROM orders o WHERE EXISTS (SELECT k FROM people p WHERE p.k > o.k GROUP BY k)": (
        "may be correlated with the outer query by equalities only"
    ),
    # One part of a query that has another form, another number of columns, or a clause too many.
    "SELECT id FROM orders UNION SELECT k, n FROM people": (
        "both sides of a set operation must have the same number of columns"
    ),
    "SELECT sum(v) OVER nowhere AS s FROM orders": "window 'nowhere' is not defined",
    "SELECT sum(v) OVER (PARTITION BY g ROWS 1 PRECEDING) AS s FROM orders": (
        "a frame needs an ORDER BY"
    ),
    "SELECT id FROM orders o WHERE k IN (SELECT k FROM people p WHERE p.w = o.g LIMIT 1)": (
        "LIMIT in a correlated subquery needs ORDER BY"
    ),
    "SELECT id FROM orders o WHERE v = 1 OR (k, v) IN (SELECT k, n FROM people)": (
        "IN inside another condition must compare one column"
    ),
    "SELECT g, count(*) AS n FROM orders GROUP BY g HAVING max(v) IN (SELECT n FROM people) "
    "OR g = 'a'": ("IN inside another condition must compare one column, no aggregate"),
    "SELECT id FROM orders o WHERE v IN (SELECT max(n) FROM people p WHERE p.k = o.k HAVING "
    "count(*) > 1)": ("IN over a correlated aggregate compares one value, without HAVING"),
    "SELECT id FROM orders o WHERE (v, k) IN (SELECT max(n), max(k) FROM people p WHERE p.k "
    "= o.k)": ("IN over a correlated aggregate compares one value"),
    "SELECT o.id, q.a FROM orders o, LATERAL (SELECT 1 FROM people p WHERE p.k = o.k UNION "
    "SELECT 2) AS q(a)": ("a LATERAL query must be one SELECT"),
    "SELECT o.id, e FROM orders o LATERAL VIEW posexplode(array(k)) t AS e": "gives",
    "SELECT o.id FROM orders o LATERAL VIEW inline(array(struct(1, 2))) t AS e": "explode an array",
    "SELECT o.id FROM orders o JOIN missing.people p ON o.k = p.k": "unknown table",
    "SELECT o.id FROM a.b.orders o": "write `table` or `pipeline.table`",
    "SELECT o.id FROM orders o JOIN (VALUES (id)) AS n(a) ON o.k = n.a": "VALUES must be constants",
    "SELECT o.id, e FROM orders o JOIN LATERAL explode(array(o.k)) AS t(e) ON t.e > 1": (
        "join a LATERAL array by CROSS JOIN, or LEFT JOIN"
    ),
    "SELECT DISTINCT ON (k) id FROM orders": "DISTINCT ON is not Spark SQL",
    "SELECT DISTINCT k FROM orders ORDER BY v LIMIT 2": (
        "ORDER BY of a SELECT DISTINCT sorts by columns that it shows"
    ),
    "SELECT id FROM orders ORDER BY id LIMIT k": "wants a number",
    "SELECT id FROM orders ORDER BY id LIMIT 2 OFFSET k": "wants a number",
    "SELECT id, (SELECT k, n FROM people) AS x FROM orders": (
        "a scalar subquery must be one SELECT of one column"
    ),
    "SELECT id, (SELECT max(n) FROM people p WHERE p.k = o.k HAVING max(n) > 1) AS x FROM "
    "orders o": ("a scalar subquery with HAVING, DISTINCT or LIMIT"),
    "SELECT id, (SELECT DISTINCT max(n) FROM people p WHERE p.k = o.k) AS x FROM orders o": (
        "a scalar subquery with HAVING, DISTINCT or LIMIT"
    ),
    "SELECT id, (SELECT max(n) FROM people p WHERE p.k = o.k LIMIT 1) AS x FROM orders o": (
        "LIMIT in a correlated subquery needs ORDER BY"
    ),
    "SELECT k, listagg(DISTINCT g, ',') WITHIN GROUP (ORDER BY v) AS l FROM orders GROUP BY k": (
        "distinct strings can only be ordered by themselves"
    ),
    "SELECT id FROM orders WHERE v > ANY (SELECT n FROM people)": "ANY",
    "SELECT * FROM (SELECT k, v, g FROM orders) PIVOT (sum(v) FOR k IN (1 + 1, 2))": (
        "name the value or the aggregate with AS"
    ),
    "SELECT count(*) AS n FROM orders GROUP BY g HAVING v > 1": "is neither in GROUP BY",
    "SELECT id FROM orders SORT BY id": "can't be maintained",
    "SELECT id FROM orders CLUSTER BY id": "can't be maintained",
    "SELECT id FROM orders DISTRIBUTE BY id": "can't be maintained",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_what_a_query_cannot_say_is_refused_by_name(sql: str, tmp_path: Path) -> None:
    assert REFUSED[sql] in refusal(sql, tmp_path)


def test_every_refusal_of_a_project_is_shown_at_once(tmp_path: Path) -> None:
    both = {"a": "SELECT id FROM orders LIMIT 3", "b": "SELECT rand() AS r FROM people"}
    assert len(problems_of(both, tmp_path)) == 2
    over = {"a": "SELEC", "b": "SELECT first(v) AS f FROM a GROUP BY k"}
    assert len(problems_of(over, tmp_path)) == 2


def test_views_over_a_mistaken_query_are_checked_as_well(tmp_path: Path) -> None:
    views = {
        "a": "SELECT id, v + g AS x, date_add(m, 1) AS d FROM orders WHERE at = true",
        "b": "SELECT id, y FROM a",
        "c": "SELECT id, nothing AS n FROM b",
        "e": "SELECT sum(n) AS s, w FROM c",
    }
    found = [one.partition("views.")[2] for one in problems_of(views, tmp_path)]
    assert [one.partition(".sql: ")[0] for one in found] == ["a", "a", "b", "c", "e"], found
    assert "date_add takes a date" in found[0]
    assert "at = TRUE" in found[1]
    assert "column 'y' is unknown" in found[2]
    assert "column 'nothing' is unknown" in found[3]
    assert "column 'w' is unknown" in found[4]


def table(folder: Path, view: str) -> Table:
    """Load a project with this view, `v`."""
    pipelines = folder / "config" / "pipelines"
    pipelines.mkdir(parents=True, exist_ok=True)
    (pipelines / "shop.yaml").write_text(f"{HEAD}{SOURCES}  v: {{kind: sql, {view}}}\n")
    return load(folder / "config").graph.table("v")


def test_what_spark_refuses_is_not_computed_whole(tmp_path: Path) -> None:
    view = "incremental: preferred, sql: SELECT o.id FROM orders o"
    apart = table(tmp_path, f"{view} JOIN people p ON o.k < p.k")
    assert "a join without an equality" in apart.spec.caution
    with pytest.raises(ConfigError, match="can't be compared with BOOLEAN"):
        table(tmp_path, f"{view} WHERE o.at = true")


def test_a_view_over_a_query_and_a_query_over_views_resolve(tmp_path: Path) -> None:
    chain = {"a": "SELECT id, v FROM orders WHERE v > 0", "b": "SELECT count(*) AS n FROM a"}
    assert not problems_of(chain, tmp_path)


def test_a_field_that_loading_fills_in_is_no_key(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"views\.v\.refusal: unknown key 'refusal'"):
        table(tmp_path, "sql: SELECT id FROM orders, refusal: none")


def test_expectations_are_of_the_querys_own_rows(tmp_path: Path) -> None:
    expect = "expect: [{type: expect_column_values_to_not_be_null, column: n}]"
    of_each = "SELECT k, count(*) AS n FROM orders GROUP BY k ORDER BY n DESC, k LIMIT 2"
    view = table(tmp_path, f"{expect}, sql: '{of_each}'")
    assert [len(part.spec.expect) for part in view.parts] == [0, 1]


def test_a_query_may_lie_in_a_file_beside_its_pipeline(tmp_path: Path) -> None:
    folder = tmp_path / "config" / "pipelines" / "queries"
    folder.mkdir(parents=True)
    (folder / "big.sql").write_text("-- large ones\nSELECT id, v FROM orders\nWHERE v > 1")
    assert [*table(tmp_path, "sql: {file: queries/big.sql}").columns] == ["id", "v"]


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("nowhere.sql", "can't read 'nowhere.sql': No such file or directory"),
        ("../secret.sql", "is not in the folder"),
        ("/etc/passwd", "is not in the folder"),
    ],
)
def test_a_file_that_is_no_query_is_named(path: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=problem):
        table(tmp_path, f"sql: {{file: {path}}}")
