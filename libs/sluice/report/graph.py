"""Graphs from the declarations: of tables, sources to views, and of a table's columns.

A table stands right of all of its inputs. A line that spans columns has a lane in each of them,
between the tables; the lines from one table share it. Within a column, tables and lanes stand near
their inputs: each is put at the mean height of these, in two passes there and back (the barycenter
heuristic of Sugiyama et al., 1981). Cost: the number of inputs, and of columns that they span.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import mean

from sluice.declare.column_lineage import made_from
from sluice.declare.table import Graph as Declared
from sluice.declare.table import Table
from sluice.language.names import RESERVED_PREFIX
from sluice.pages import Edge, Graph, Node
from sluice.report import Visit

WIDTH, HEIGHT, GAP, APART = 204, 40, 14, 56  # of a table, and between tables and columns
STEP, HALF = WIDTH + APART, APART // 2
LINE = 19  # height of a column's name in its table
LONGEST = 19  # characters of a name
PASSES = 4
Column = tuple[str, str]  # a table's id, and a column's name


def draw_graph(
    visit: Visit, tables: Iterable[Table], states: Mapping[str, tuple[str, str]]
) -> Graph:
    """Return the graph of these tables and their inputs.

    `states`: of each table its state and its look. Other inputs, and tables that the visitor may
    not see, have a name alone.
    """
    shown = {table.id: table for table in tables}
    inputs = {name: list(table.inputs) for name, table in shown.items()}
    inputs |= {i: [] for made in [*inputs.values()] for i in made if i not in inputs}
    links = [(i, name) for name, made in inputs.items() for i in made]
    places = _place(inputs, dict.fromkeys(inputs, HEIGHT))
    nodes = [
        _node(visit, name, shown.get(name), states.get(name, ("", "none")), places[name])
        for name in inputs
    ]
    boxes = {node.id: (node.id, node.x, node.y + HEIGHT // 2) for node in nodes}
    return _graph("Tables, sources to views", nodes, links, boxes, places)


def draw_columns(visit: Visit, table: Table, graph: Declared) -> Graph:
    """Return a table's columns, the columns that they are made from, and those made from them.

    Columns of pipelines that the visitor may not see are followed no further, and not shown where
    they are made from the table's.
    """
    links = _links(visit, table, graph)
    columns: dict[str, dict[str, None]] = {table.id: dict.fromkeys(_visible(table))}
    for id_, name in (column for link in links for column in link):
        columns.setdefault(id_, {})[name] = None
    inputs: dict[str, list[str]] = {id_: [] for id_ in columns}
    for (of, _), (id_, _) in sorted(links):
        if of not in inputs[id_]:
            inputs[id_].append(of)
    names = {i: [n for n in graph.tables[i].columns if n in columns[i]] for i in columns}
    heights = {id_: HEIGHT + LINE * len(of) + 6 for id_, of in names.items()}
    looks = {id_: ("", "passed" if id_ == table.id else "none") for id_ in columns}
    places = _place(inputs, heights)
    nodes = [
        _node(visit, id_, graph.tables[id_], looks[id_], places[id_], heights[id_], names[id_])
        for id_ in columns
    ]
    nodes = [replace(node, href="") if node.id == table.id else node for node in nodes]
    lines = {
        f"{node.id}.{name}": (node.id, node.x, node.y + HEIGHT + LINE * n + LINE // 2)
        for node in nodes
        for n, name in enumerate(node.columns)
    }
    ends = [(".".join(begin), ".".join(end)) for begin, end in sorted(links)]
    ends = [(begin, end) for begin, end in ends if begin in lines and end in lines]
    return _graph("Columns and what they are made from", nodes, ends, lines, places)


def _visible(table: Table) -> Iterator[str]:
    return (name for name in table.columns if not name.startswith(RESERVED_PREFIX))


def _links(visit: Visit, table: Table, graph: Declared) -> set[tuple[Column, Column]]:
    """Return each column with one that is made from it, if they are on a way of the table's."""
    before = {one.id for one in graph.ancestors(table.id)}
    every = {
        ((made.table, made.column), (one.id, name))
        for one in graph.tables.values()
        if one.id == table.id or one.id in before or table in graph.ancestors(one.id)
        if visit.sees_table(one.id)
        for name, of in made_from(one, graph).items()
        for made in of
        if not name.startswith(RESERVED_PREFIX)
    }
    kept = set[tuple[Column, Column]]()
    for near, far in ((1, 0), (0, 1)):
        reached = {(table.id, name) for name in _visible(table)}
        while found := {link for link in every if link[near] in reached} - kept:
            kept |= found
            reached |= {link[far] for link in found}
    return kept


def _lane(table: str, column: int) -> str:
    """Return the name of the lane of a table's lines through a column; no table has such a name."""
    return f"{table} {column}"


def _place(
    inputs: Mapping[str, Sequence[str]], heights: Mapping[str, int]
) -> dict[str, tuple[int, int]]:
    """Return the place of each table and lane. The tallest column is full, others lie beside it."""
    columns, before, after = _layer(inputs)
    _arrange(columns, before, after)
    tall = [sum(heights.get(name, 0) + GAP for name in column) for column in columns]
    tallest = tall.index(max(tall)) if tall else 0
    tops = dict[str, int]()
    for x in sorted(range(len(columns)), key=lambda x: abs(x - tallest)):
        wanted, end = list[int](), 0
        for name in columns[x]:
            half = heights.get(name, 0) / 2
            near = [n for n in (*before[name], *after[name]) if n in tops]
            middle = mean([tops[n] + heights.get(n, 0) / 2 for n in near] or [end + half])
            wanted.append(max(end, round(middle - half)))
            end = wanted[-1] + heights.get(name, 0) + GAP
        end = max(tall)
        for name, top in zip(columns[x][::-1], wanted[::-1], strict=True):
            tops[name] = min(top, end - GAP - heights.get(name, 0))
            end = tops[name]
    return {n: (x * STEP, tops[n]) for x, names in enumerate(columns) for n in names}


Neighbours = Mapping[str, dict[str, None]]  # of tables and lanes, each once


def _layer(inputs: Mapping[str, Sequence[str]]) -> tuple[list[list[str]], Neighbours, Neighbours]:
    """Return tables and lanes column by column, with what is left and right of each."""
    depths = dict[str, int]()

    def depth(name: str) -> int:
        if name not in depths:
            depths[name] = 1 + max(map(depth, inputs[name]), default=-1)
        return depths[name]

    columns: list[dict[str, None]] = [{} for _ in range(1 + max(map(depth, inputs), default=-1))]
    before, after = defaultdict[str, dict[str, None]](dict), defaultdict[str, dict[str, None]](dict)
    for name, made in inputs.items():
        columns[depth(name)][name] = None
        for one in made:
            lanes = {_lane(one, x): x for x in range(depth(one) + 1, depth(name))}
            for lane, x in lanes.items():
                columns[x][lane] = None
            for left, right in pairwise((one, *lanes, name)):
                before[right][left] = after[left][right] = None
    return [[*column] for column in columns], before, after


def _arrange(columns: Sequence[list[str]], before: Neighbours, after: Neighbours) -> None:
    """Order each column by the heights of its neighbours."""
    places = {name: y / len(column) for column in columns for y, name in enumerate(column)}
    for number in range(PASSES):
        near = after if number % 2 else before
        for column in columns[::-1] if number % 2 else columns:
            means = {n: mean([places[o] for o in near[n]] or [places[n]]) for n in column}
            column.sort(key=means.__getitem__)
            places |= {name: y / len(column) for y, name in enumerate(column)}


def _node(
    visit: Visit,
    name: str,
    table: Table | None,
    state: tuple[str, str],
    place: tuple[int, int],
    height: int = HEIGHT,
    columns: Sequence[str] = (),
) -> Node:
    kind = table.declared_kind.replace("_", " ") if table else "of another pipeline"
    below = f"{kind} · {table.pipeline}" if table else kind
    is_linked = table is not None and visit.sees_table(name)
    title = f"{name}: {', '.join(filter(None, (kind, state[0])))}"
    href = f"{visit.root}/tables/{name}" if is_linked else ""
    words = _shorten(table.name if table else name)
    return Node(
        name, *place, WIDTH, height, words, _shorten(below, 30), state[1], title, href, columns
    )


def _shorten(words: str, longest: int = LONGEST) -> str:
    return words if len(words) <= longest else f"{words[: longest - 1]}…"


def _graph(
    label: str,
    nodes: Sequence[Node],
    links: Iterable[tuple[str, str]],
    ends: Mapping[str, tuple[str, int, int]],
    places: Mapping[str, tuple[int, int]],
) -> Graph:
    """Return a graph whose lines lead from the right of one end to the left of another.

    `ends`: the table of each end, and its place. `places`: those of the lanes in between.
    """
    edges = []
    for begin, end in links:
        (table, x, y), (_, goal_x, goal_y) = ends[begin], ends[end]
        between = range(x // STEP + 1, goal_x // STEP)
        lanes = [places[_lane(table, column)] for column in between]
        path = f"M{x + WIDTH} {y}"
        for to_x, to_y in (*lanes, (goal_x, goal_y)):
            path += f"H{x + WIDTH}C{to_x - HALF} {y} {to_x - HALF} {to_y} {to_x} {to_y}"
            x, y = to_x, to_y
        edges.append(Edge(path, begin, end))
    width = max((node.x + node.width for node in nodes), default=0)
    bottoms = (*(node.y + node.height for node in nodes), *(y for _, y in places.values()))
    return Graph(label, width, max(bottoms, default=0), nodes, edges)
