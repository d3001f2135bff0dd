"""DataFrames say the same as queries: both become the same chain, with the same rows."""

from pathlib import Path
from typing import Any

import pytest
from tests.spark_pipelines.pairs import PAIRS, SOURCES
from tests.spark_pipelines.projects import land, read_here, write_project

from sluice.declare.building import DeclarationFile, build, read_tables
from sluice.declare.document import Document
from sluice.declare.mistakes import Mistakes
from sluice.declare.table import Graph


def build_graph(found: dict[str, Any]) -> Graph:
    """Return the tables of a project as read."""
    mistakes = Mistakes()
    document = Document("p", {"pipeline": found["name"], **found["sections"]})
    read = read_tables(DeclarationFile(document), mistakes)
    graph = build({d.id: d for d in read.declared}, mistakes)
    mistakes.raise_any()
    return graph


def shape(graph: Graph, name: str) -> tuple[object, ...]:
    """Return what distinguishes a view's chain: kinds and columns of its parts, or a refusal."""
    table = graph.table(name)
    parts = [(part.kind, len(part.inputs)) for part in table.parts]
    return (sorted(parts), dict(table.columns), bool(table.spec.caution), tuple(table.key))


def test_a_dataframe_becomes_the_chain_of_the_query_that_says_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = "".join(
        f"@dp.materialized_view\ndef {name}_frame():\n    return {frame}\n"
        for name, (frame, _) in PAIRS.items()
    )
    queries = ";\n".join(
        f"CREATE MATERIALIZED VIEW {name}_query AS {query}" for name, (_, query) in PAIRS.items()
    )
    spec = write_project(tmp_path, a_py=SOURCES + frames, b_sql=queries)
    found = read_here(spec, monkeypatch)
    assert found["mistakes"] == found["left_out"] == []
    graph = build_graph(found)
    for name in PAIRS:
        shapes = [shape(graph, f"{name}_{way}") for way in ("frame", "query")]
        texts = [found["sections"]["views"][f"{name}_{way}"]["sql"] for way in ("frame", "query")]
        assert shapes[0] == shapes[1], texts


def test_parts_that_no_query_says_leave_out_their_view_and_what_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    land(tmp_path / "landing/orders", "1.json")
    text = SOURCES + (
        "@F.udf\n"
        "def twice(x):\n    return x + x\n"
        "@dp.materialized_view\ndef by_udf():\n    return o.select(twice('state').alias('s'))\n"
        "@dp.materialized_view\ndef over_it():\n    return spark.table('by_udf')\n"
        "@dp.materialized_view\ndef sampled():\n    return o.sample(0.5)\n"
        "@dp.materialized_view\ndef mistaken():\n    return o.select('amounts')\n"
        "dp.create_sink('out', 'kafka', {})\n"
        "@dp.append_flow(target='out')\ndef to_out():\n    return"
        " spark.readStream.table('orders')\n"
    )
    found = read_here(write_project(tmp_path, a_py=text), monkeypatch)
    shown = [f"{line}: {what}" for _, line, what in found["left_out"]]
    assert [one.split(":")[1].strip() for one in shown] == [
        *("by_udf", "over_it", "sampled", "mistaken", "out")
    ]
    assert "a Python function (UDF)" in shown[0]
    assert "it reads by_udf, which is left out" in shown[1]
    assert "unknown column 'amounts'; did you mean 'amount'?" in shown[3]
    assert {*found["sections"]["sources"]} == {"orders", "customers"}
