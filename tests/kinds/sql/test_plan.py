"""The tables of a query as `sluice plan` shows them."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.kinds.sql.shop import SOURCES, view
from tests.support.lake import HEAD

from sluice.declare.project import load
from sluice.errors import UsageError
from sluice.operate.explain import explain, parts_of_query
from sluice.read.lake import Lake
from sluice.read.status import status
from sluice.report import quality_pages
from sluice.report.summary import TableRecord

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


def test_columns_without_a_name_are_named_by_their_words(tmp_path: Path) -> None:
    (tmp_path / "pipelines").mkdir()
    sql = "SELECT `G`, COUNT(*), sum(V) / 2, -2 + G FROM Orders GROUP BY g"
    (tmp_path / "pipelines" / "shop.yaml").write_text(HEAD + SOURCES + view("v", sql))
    columns = load(tmp_path).graph.table("v").columns
    assert [*columns] == ["g", "count", "sum_v_2", "c"]


TOP = "SELECT g, SUM(v) AS v FROM orders GROUP BY g ORDER BY v DESC, g LIMIT 2"


def test_a_query_is_of_the_kind_that_its_user_wrote_and_its_parts_of_their_own(
    tmp_path: Path,
) -> None:
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "shop.yaml").write_text(HEAD + SOURCES + view("v", TOP))
    project = load(tmp_path)
    table = project.graph.table("v")
    (stands,) = status(project, [table])
    pages = quality_pages.render(
        "lake", [TableRecord(table, stands)], datetime(2024, 1, 1, tzinfo=UTC)
    )
    parts = parts_of_query(project, TOP, "shop")
    assert [part.kept_for for part in parts] == ["rows that move up, for query", "readers"]
    kinds = [part.kind for part in parts]
    assert stands.kind == "sql"
    said = re.sub(r"<[^>]*>|\s+", " ", pages["index.html"])
    assert re.search(r" v +sql ", said)
    assert [part.kind for part in table.parts] == kinds == ["cogroup", "topk"]
    with pytest.raises(UsageError, match="'v' is of kind sql"):
        Lake(project).of_kind("v", type(project.graph.table("orders").spec), "fetch")


KEPT = {"LEFT": "l", "RIGHT": "r", "FULL": "lr", "LEFT ANTI": "l"}  # rows without a match, too
NULLED = {"LEFT": "r", "RIGHT": "l", "FULL": "lr"}


@pytest.mark.parametrize("join", ["INNER", "LEFT SEMI", *KEPT])
def test_a_side_of_a_join_is_a_table_only_if_the_join_cannot_filter_or_compute_it(
    tmp_path: Path, join: str
) -> None:
    """It can't filter a side whose rows stay without a match, nor compute one that is null then."""
    (tmp_path / "pipelines").mkdir()
    declared = HEAD + SOURCES + view("v", "SELECT id FROM orders")
    (tmp_path / "pipelines" / "shop.yaml").write_text(declared)
    project = load(tmp_path)
    shown = "id, v" if join.startswith("LEFT ") else "id, v, n"
    for side in "lr":
        for one, where, sides in (("v", " WHERE v > 1", KEPT), ("v + 1", "", NULLED)):
            own = f"(SELECT k, id, {one} AS v FROM orders{where})"
            if side == "r":
                own = own.replace("v", "n").replace("orders", "people").replace(" id", " pid")
            left, right = (own, "people") if side == "l" else ("orders", own)
            sql = f"SELECT {shown} FROM {left} o {join} JOIN {right} p ON o.k = p.k"
            kinds = [part.kind for part in parts_of_query(project, sql, "shop")]
            is_apart = side in sides.get(join, "")
            assert kinds == (["select", "join"] if is_apart else ["join"]), (side, where)
