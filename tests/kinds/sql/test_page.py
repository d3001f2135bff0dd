"""The page's tables of TPC-H's and Nexmark's queries."""

import re
from collections import Counter
from pathlib import Path

import pytest
from tests.kinds.join.tpch import SOURCES as TPCH
from tests.kinds.sql.nexmark import KEPT
from tests.kinds.sql.nexmark import SOURCES as NEXMARK
from tests.kinds.sql.shop import view
from tests.kinds.sql.tpch import QUERIES
from tests.support.lake import HEAD

from sluice.declare.project import load

PAGE = (Path(__file__).parents[3] / "docs" / "sql.md").read_text("utf-8")
ROW = re.compile(r"\| (q\d+) \| (\d+) \| (.*) \|")


@pytest.mark.parametrize(
    ("name", "sources", "queries"), [("TPC-H", TPCH, QUERIES), ("Nexmark", NEXMARK, KEPT)]
)
def test_the_page_lists_the_tables_of_each_query(
    name: str, sources: str, queries: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "pipelines").mkdir()
    views = "".join(view(query, sql) for query, sql in queries.items())
    (tmp_path / "pipelines" / "shop.yaml").write_text(f"{HEAD}{sources}views:\n{views}")
    graph = load(tmp_path).graph
    table = PAGE.partition(f"| {name} |")[2].partition("\n\n")[0]
    listed = {query: (int(count), kinds) for query, count, kinds in ROW.findall(table)}
    kinds = {query: Counter(part.kind for part in graph.table(query).parts) for query in queries}
    assert listed == {query: (found.total(), words(found)) for query, found in kinds.items()}


def words(kinds: Counter[str]) -> str:
    """Kinds with their numbers: `2 join, cogroup`."""
    return ", ".join(kind if n == 1 else f"{n} {kind}" for kind, n in kinds.items())
