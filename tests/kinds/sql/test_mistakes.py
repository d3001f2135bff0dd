"""What a query can't say: refused by name, with the line, before anything runs."""

from pathlib import Path

import pytest
from tests.kinds.sql.shop import SOURCES, problems_of, refusal
from tests.support.lake import HEAD

from sluice.declare.project import load
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
}


@pytest.mark.parametrize("sql", REFUSED)
def test_what_a_query_cannot_say_is_refused_by_name(sql: str, tmp_path: Path) -> None:
    assert REFUSED[sql] in refusal(sql, tmp_path)


def test_every_refusal_of_a_project_is_shown_at_once(tmp_path: Path) -> None:
    both = {"a": "SELECT id FROM orders LIMIT 3", "b": "SELECT rand() AS r FROM people"}
    assert len(problems_of(both, tmp_path)) == 2


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


def test_what_spark_refuses_is_not_computed_whole(tmp_path: Path) -> None:
    folder = tmp_path / "config" / "pipelines"
    folder.mkdir(parents=True)
    view = "  v: {{kind: sql, incremental: preferred, sql: SELECT o.id FROM {}}}\n"
    apart = "orders o JOIN people p ON o.k < p.k"
    (folder / "shop.yaml").write_text(HEAD + SOURCES + view.format(apart))
    assert "a join without an equality" in load(tmp_path / "config").graph.table("v").spec.caution
    (folder / "shop.yaml").write_text(HEAD + SOURCES + view.format("orders o WHERE o.at = true"))
    with pytest.raises(ConfigError, match="can't be compared with BOOLEAN"):
        load(tmp_path / "config")


def test_a_view_over_a_query_and_a_query_over_views_resolve(tmp_path: Path) -> None:
    chain = {"a": "SELECT id, v FROM orders WHERE v > 0", "b": "SELECT count(*) AS n FROM a"}
    assert not problems_of(chain, tmp_path)


def test_a_field_that_loading_fills_in_is_no_key(tmp_path: Path) -> None:
    folder = tmp_path / "config" / "pipelines"
    folder.mkdir(parents=True)
    views = "  v: {kind: sql, sql: SELECT id FROM orders, refusal: none}\n"
    (folder / "shop.yaml").write_text(HEAD + SOURCES + views)
    with pytest.raises(ConfigError, match=r"views\.v\.refusal: unknown key 'refusal'"):
        load(tmp_path / "config")


def test_a_query_may_lie_in_a_file_beside_its_pipeline(tmp_path: Path) -> None:
    folder = tmp_path / "config" / "pipelines"
    (folder / "queries").mkdir(parents=True)
    (folder / "queries" / "big.sql").write_text(
        "-- large ones\nSELECT id, v FROM orders\nWHERE v > 1"
    )
    views = "  big: {kind: sql, sql: {file: queries/big.sql}}\n"
    (folder / "shop.yaml").write_text(HEAD + SOURCES + views)
    view = load(tmp_path / "config").graph.table("big")
    assert [*view.columns] == ["id", "v"]


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("nowhere.sql", "can't read 'nowhere.sql': No such file or directory"),
        ("../secret.sql", "is not in the folder"),
        ("/etc/passwd", "is not in the folder"),
    ],
)
def test_a_file_that_is_no_query_is_named(path: str, problem: str, tmp_path: Path) -> None:
    folder = tmp_path / "config" / "pipelines"
    folder.mkdir(parents=True)
    views = f"  big: {{kind: sql, sql: {{file: {path}}}}}\n"
    (folder / "shop.yaml").write_text(HEAD + SOURCES + views)
    with pytest.raises(ConfigError, match=problem):
        load(tmp_path / "config")
