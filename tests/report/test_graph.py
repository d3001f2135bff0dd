"""Graphs of tables and of columns: lines lead to the right, and touch no table but their ends."""

import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import pytest

from sluice.declare.project import load
from sluice.declare.table import Graph as Declared
from sluice.pages import Graph
from sluice.report import Visit
from sluice.report.graph import draw_columns, draw_graph

VISIT = Visit("", None, "", (), datetime(2024, 1, 1, tzinfo=UTC), lambda _: True, lambda *_: False)
STEPS = 16  # points of a curve that are looked at
RETAIL = Path(__file__).parents[2] / "config"
Point = tuple[float, float]


def points_of(path: str) -> Iterator[Point]:
    """Points along a line of an SVG, of absolute M, C and H."""
    x = y = 0.0
    for letter, text in re.findall(r"([A-Z])([^A-Z]*)", path):
        to = [float(number) for number in text.split()]
        if letter == "M":
            x, y = to
        elif letter == "H":
            yield from ((x + (to[0] - x) * n / STEPS, y) for n in range(STEPS))
            x = to[0]
        else:
            assert letter == "C"
            for t in (n / STEPS for n in range(STEPS)):
                weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3)
                yield (
                    sum(w * at for w, at in zip(weights, (x, *to[::2]), strict=True)),
                    sum(w * at for w, at in zip(weights, (y, *to[1::2]), strict=True)),
                )
            x, y = to[-2:]
        yield x, y


def check(graph: Graph) -> None:
    """Check that no line enters a table, each ends at its tables, and no two tables overlap."""
    for edge in graph.edges:
        line = list(points_of(edge.path))
        ends = dict[str, Point]()
        for node in graph.nodes:
            right, bottom = node.x + node.width, node.y + node.height
            inside = [p for p in line if node.x < p[0] < right and node.y <= p[1] <= bottom]
            assert not inside, f"{edge.begin} -> {edge.end} enters {node.id}"
            ends |= {node.id: (node.x, right)} | {
                f"{node.id}.{column}": (node.x, right) for column in node.columns
            }
        assert line[0][0] == ends[edge.begin][1]
        assert line[-1][0] == ends[edge.end][0]
        assert [x for x, _ in line] == sorted(x for x, _ in line)
        assert all(0 <= x <= graph.width and 0 <= y <= graph.height for x, y in line)
    for one, other in product(graph.nodes, repeat=2):
        is_apart = one.y + one.height <= other.y or other.y + other.height <= one.y
        assert one is other or one.x != other.x or is_apart


def drawn(folder: Path) -> tuple[Graph, Declared]:
    """The graph of a configuration, and what it declares."""
    declared = load(folder).graph
    return draw_graph(VISIT, declared.tables.values(), {}), declared


def test_a_line_enters_no_table_of_the_retail_pipeline_but_its_ends() -> None:
    graph, declared = drawn(RETAIL)
    of = {(i, t.id) for t in declared.tables.values() for i in t.inputs}
    assert {(edge.begin, edge.end) for edge in graph.edges} == of
    check(graph)
    for table in declared.tables.values():
        check(draw_columns(VISIT, table, declared))


@pytest.mark.parametrize("seed", range(4))
def test_a_line_enters_no_table_of_a_random_pipeline(tmp_path: Path, seed: int) -> None:
    chosen = random.Random(seed)
    views = list[str]()
    for n in range(99):
        known = ["events", *(f"v{m}" for m in range(n))]
        few = chosen.sample(known[-40:], min(len(known), chosen.randint(1, 3)))
        one, several = f"from: {few[0]}, select: {{id: id}}", f"from: [{', '.join(few)}]"
        made = f"select, {one}" if len(few) == 1 else f"union, {several}"
        views.append(f"  v{n}: {{kind: {made}}}\n")
    text = "pipeline: p\nschedule: '@daily'\nstart_date: 2017-01-01\nsources:\n"
    source = '  events: {path: "s/{interval_start:%Y-%m-%d}/", schema: id INT, key: [id]}\n'
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "p.yaml").write_text(f"{text}{source}views:\n{''.join(views)}")
    graph, _ = drawn(tmp_path)
    assert len(graph.nodes) == 100
    check(graph)
