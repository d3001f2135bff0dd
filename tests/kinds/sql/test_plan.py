"""The tables of a query as `sluice plan` shows them."""

from pathlib import Path

import pytest
from tests.kinds.sql.shop import SOURCES, view
from tests.support.lake import HEAD

from sluice.declare.project import load
from sluice.operate.explain import explain, parts_of_query

ALL = "SELECT id FROM orders WHERE v > (SELECT avg(v) FROM orders)"
TIED = "SELECT id FROM orders o WHERE v > (SELECT avg(v) FROM orders i WHERE i.k = o.k)"


@pytest.mark.parametrize(
    ("sql", "cautions"), [(ALL, {"", "every row depends on v__1"}), (TIED, {""})]
)
def test_the_plan_says_that_every_row_depends_on_a_value_of_all(
    sql: str, cautions: set[str], tmp_path: Path
) -> None:
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "shop.yaml").write_text(HEAD + SOURCES + view("v", sql))
    project = load(tmp_path)
    parts = parts_of_query(project, sql, "shop")
    assert {part.caution.replace("query", "v") for part in parts} == cautions
    said = " ".join(step.reason for step in explain(project, project.graph.table("v")))
    assert ("every row depends on v__1" in said) == (len(cautions) == 2)


def test_the_plan_says_why_a_query_is_computed_whole_before_anything_was_delivered(
    tmp_path: Path,
) -> None:
    (tmp_path / "pipelines").mkdir()
    sql = "SELECT o.id FROM orders o JOIN people p ON o.v < p.n"
    views = f"  v: {{kind: sql, incremental: preferred, sql: {sql}}}\n"
    (tmp_path / "pipelines" / "shop.yaml").write_text(HEAD + SOURCES + views)
    project = load(tmp_path)
    (step,) = explain(project, project.graph.table("v"))
    assert step.next == "wait"
    assert (
        "every batch computes the whole query, because of line 1: a join without an equality"
        in step.reason
    )
