"""The graph of tables, sources to views, laid out from the declarations.

A table stands right of all of its inputs. Within a column, tables stand near their inputs: each is
put at the mean height of these, in two passes there and back (the barycenter heuristic of Sugiyama
et al., 1981). Cost: the number of inputs.
"""

from collections.abc import Iterable, Mapping, Sequence
from statistics import mean

from sluice.declare.table import Table
from sluice.pages.elements import Edge, Graph, Node
from sluice.report.visit import Visit

WIDTH, HEIGHT, GAP, APART = 190, 40, 14, 70  # of a table, and between tables and columns
LONGEST = 21  # characters of a name
PASSES = 4


def draw_graph(
    visit: Visit, tables: Iterable[Table], states: Mapping[str, tuple[str, str]]
) -> Graph:
    """Return the graph of these tables and their inputs.

    `states`: of each table its state and its look. Other inputs, and tables that the visitor may
    not see, have a name alone.
    """
    shown = {table.id: table for table in tables}
    inputs = {name: list(table.inputs) for name, table in shown.items()}
    inputs |= {i: [] for made_from in [*inputs.values()] for i in made_from if i not in inputs}
    columns = _arrange(inputs)
    tallest = max(map(len, columns), default=0)
    places = {
        name: (x * (WIDTH + APART), round((y + (tallest - len(column)) / 2) * (HEIGHT + GAP)))
        for x, column in enumerate(columns)
        for y, name in enumerate(column)
    }
    nodes = [
        _node(visit, name, shown.get(name), states.get(name, ("", "none")), *places[name])
        for name in places
    ]
    edges = [Edge(_path(places[i], places[name])) for name, of in inputs.items() for i in of]
    width, height = len(columns) * (WIDTH + APART) - APART, tallest * (HEIGHT + GAP) - GAP
    return Graph("Tables, sources to views", max(width, 0), max(height, 0), nodes, edges)


def _arrange(inputs: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Return the tables column by column, in the order of their heights."""
    depths = dict[str, int]()

    def depth(name: str) -> int:
        if name not in depths:
            depths[name] = 1 + max(map(depth, inputs[name]), default=-1)
        return depths[name]

    columns = list[list[str]]()
    for name in sorted(inputs, key=depth):
        if depth(name) == len(columns):
            columns.append([])
        columns[depth(name)].append(name)
    outputs: dict[str, list[str]] = {name: [] for name in inputs}
    for name, of in inputs.items():
        for one in of:
            outputs[one].append(name)
    for number in range(PASSES):
        neighbours = outputs if number % 2 else inputs
        for column in columns[::-1] if number % 2 else columns:
            heights = {n: y / len(c) for c in columns for y, n in enumerate(c)}
            column.sort(key=lambda n: mean([heights[o] for o in neighbours[n]] or [heights[n]]))
    return columns


def _node(
    visit: Visit, name: str, table: Table | None, state: tuple[str, str], x: int, y: int
) -> Node:
    words = table.name if table else name
    words = words if len(words) <= LONGEST else f"{words[: LONGEST - 1]}…"
    kind = table.declared_kind.replace("_", " ") if table else "of another pipeline"
    below = f"{kind} · {table.pipeline}" if table else kind
    is_linked = table is not None and table.is_stored and visit.sees_table(name)
    title = f"{name}: {', '.join(filter(None, (kind, state[0])))}"
    href = f"{visit.root}/tables/{name}" if is_linked else ""
    return Node(x, y, WIDTH, HEIGHT, words, below, state[1], title, href)


def _path(begin: tuple[int, int], end: tuple[int, int]) -> str:
    """Return a curve from the right of one table to the left of another."""
    (x, y), (to_x, to_y) = (
        (begin[0] + WIDTH, begin[1] + HEIGHT // 2),
        (end[0], end[1] + HEIGHT // 2),
    )
    half = (to_x - x) // 2
    return f"M{x} {y}C{x + half} {y} {to_x - half} {to_y} {to_x} {to_y}"
