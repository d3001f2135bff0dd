"""The tables that TPC-H's and Nexmark's queries become."""

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

CHAINS_OF_TPCH = {
    "q1": "cogroup",
    "q2": "8 join, cogroup, topk",
    "q3": "2 join, cogroup, topk",
    "q4": "join, cogroup",
    "q5": "5 join, cogroup",
    "q6": "cogroup, select",
    "q7": "5 join, cogroup",
    "q8": "7 join, cogroup",
    "q9": "5 join, cogroup",
    "q10": "3 join, cogroup, topk",
    "q11": "5 join, 2 cogroup",
    "q12": "join, cogroup",
    "q13": "join, 2 cogroup",
    "q14": "join, cogroup, select",
    "q15": "2 cogroup, 2 join",
    "q16": "3 join, 2 cogroup",
    "q17": "2 join, 2 cogroup, select",
    "q18": "2 cogroup, 3 join, topk",
    "q19": "join, cogroup, select",
    "q20": "4 join, cogroup",
    "q21": "5 join, cogroup, topk",
    "q22": "2 cogroup, 2 join",
}
CHAINS_OF_NEXMARK = {
    "q0": "select",
    "q1": "select",
    "q2": "select",
    "q3": "join",
    "q4": "join, 2 cogroup",
    "q5": "select, 2 cogroup, join",
    "q6": "join, topk, over",
    "q7": "cogroup, join",
    "q8": "2 cogroup, join",
    "q9": "join, topk",
    "q13": "cogroup, select",
    "q14": "select",
    "q15": "cogroup",
    "q16": "cogroup",
    "q17": "cogroup",
    "q18": "topk",
    "q19": "topk",
    "q20": "join",
}


@pytest.mark.parametrize(
    ("sources", "queries", "chains"),
    [(TPCH, QUERIES, CHAINS_OF_TPCH), (NEXMARK, KEPT, CHAINS_OF_NEXMARK)],
    ids=["TPC-H", "Nexmark"],
)
def test_queries_become_no_more_tables_than_listed(
    sources: str, queries: dict[str, str], chains: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "pipelines").mkdir()
    views = "".join(view(query, sql) for query, sql in queries.items())
    (tmp_path / "pipelines" / "shop.yaml").write_text(f"{HEAD}{sources}views:\n{views}")
    graph = load(tmp_path).graph
    kinds = {query: Counter(part.kind for part in graph.table(query).parts) for query in queries}
    assert {query: words(found) for query, found in kinds.items()} == chains


def words(kinds: Counter[str]) -> str:
    """Kinds with their numbers: `2 join, cogroup`."""
    return ", ".join(kind if n == 1 else f"{n} {kind}" for kind, n in kinds.items())
