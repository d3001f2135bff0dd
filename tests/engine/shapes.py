"""A pipeline of several kinds, and what its views are by a line of Python each.

A diamond (`left` and `right` of one source meet in `both`) with a tail that reads the source again,
both kinds of lookup, a join of the source with the tail, a union of the source with the join, and
what is distinct in it. `right` may be declared with one of two aggregates.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.support.memory import Rows

from sluice.declare.project import Project, load
from sluice.engine.plan import Node, nodes_of

DECLARED = """
pipeline: shop
schedule: "@daily"
start_date: 2024-01-01
sources:
  s: {path: "landing/{interval_start:%Y-%m-%d}/", format: json, schema: "v STRING, n INT"}
dimensions:
  d: {path: d/, format: json, schema: "v STRING, price INT", key: [v]}
views:
  left: {kind: cogroup, key: [v], streams: {s: {from: s, aggregates: {n: count(*)}}}}
  right: {kind: cogroup, key: [v], streams: {s: {from: s, aggregates: {most: $most(n)}}}}
  both:
    kind: cogroup
    key: [v]
    streams:
      left: {from: left, aggregates: {n: sum(n)}}
      right: {from: right, aggregates: {most: max(most)}}
  tail:
    kind: cogroup
    key: [v]
    streams:
      both: {from: both, aggregates: {n: sum(n), most: max(most)}}
      s: {from: s, aggregates: {all: sum(n)}}
  priced:
    kind: lookup
    from: s
    join: [{dimension: d, on: v = d.v, type: left}]
    select: {v: v, n: n, price: d.price}
  fresh:
    kind: lookup
    from: s
    refresh: true
    join: [{dimension: d, on: v = d.v, type: left}]
    select: {v: v, n: n, price: d.price}
  paired:
    kind: join
    left: s
    right: tail
    on: s.v = tail.v
    select: {v: s.v, n: s.n, most: tail.most, all: tail.all}
  listed:
    kind: union
    from: [{table: s, select: {v: v, n: n}}, {table: paired, select: {v: v, n: n}}]
  seen: {kind: select, from: listed, select: {n: n}, distinct: true}
  steps:
    kind: over
    from: paired
    partition_by: [v]
    order_by: [n]
    select: {v: v, n: n, so_far: sum(n) OVER w}
"""
COGROUPS = ("left", "right", "both", "tail")
JOINED = ("paired", "listed", "seen", "steps")
NODES = (
    *(name for view in COGROUPS for name in (f"{view}__state", view)),
    *("priced", "fresh", *JOINED),
)


@dataclass(frozen=True, eq=False)
class Declared:
    """The project as it is declared at a time; inputs come before the views over them."""

    project: Project
    most: Callable[..., int]

    @classmethod
    def to(cls, folder: Path, most: Callable[..., int]) -> "Declared":
        config = folder / most.__name__ / "config"
        (config / "pipelines").mkdir(parents=True)
        (config / "sluice.yaml").write_text("lake: s3://b/lake")
        text = DECLARED.replace("$most", most.__name__)
        (config / "pipelines" / "shop.yaml").write_text(text)
        return cls(load(config), most)

    @cached_property
    def nodes(self) -> Mapping[str, Node]:
        graph = self.project.graph
        every = [node for table in graph.tables.values() for node in nodes_of(table, graph)]
        return {node.id.removeprefix("shop."): node for node in every}

    def query(self, name: str, of: Mapping[str, Rows]) -> Rows:
        """What a view is, by its inputs' rows. A row of the source is (v, n)."""
        if name in (*COGROUPS, *JOINED):
            return joined(name, of) if name in JOINED else of[f"{name}__state"]
        facts, prices = of.get("s", {}), of.get("d", {})
        sums: Counter[str] = Counter()
        numbers: dict[str, list[int]] = {}
        for v, n in facts.values():
            sums[v] += n
            numbers.setdefault(v, []).append(n)
        match name:
            case "left__state":
                return {v: len(found) for v, found in numbers.items()}
            case "right__state":
                return {v: self.most(found) for v, found in numbers.items()}
            case "both__state":
                left, right = of["left"], of["right"]
                return {v: (left.get(v), right.get(v)) for v in left | right}
            case "tail__state":
                return {v: (of["both"].get(v), sums.get(v)) for v in of["both"] | sums}
            case _:
                return {key: (v, n, prices.get(v)) for key, (v, n) in facts.items()}

    def whole(self, name: str, facts: Rows, prices: Rows) -> Rows:
        """What a view is, by the rows of the sources."""
        of: dict[str, Rows] = {"s": facts, "d": prices}
        for view in NODES[: NODES.index(name) + 1]:
            of[view] = self.query(view, of)
        return of[name]


def joined(name: str, of: Mapping[str, Rows]) -> Rows:
    """What the join is, and the views over it."""
    match name:
        case "paired":
            tail = of["tail"]
            return {key: (v, n, tail[v]) for key, (v, n) in of["s"].items() if v in tail}
        case "listed":
            return {(i, key): row[:2] for i in ("s", "paired") for key, row in of[i].items()}
        case "seen":
            return {n: n for _, n in of["listed"].values()}
    pairs = [(v, n) for v, n, _ in of["paired"].values()]
    return {
        key: (v, n, sum(m for w, m in pairs if w == v and m <= n))
        for key, (v, n, _) in of["paired"].items()
    }
