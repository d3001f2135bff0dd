"""The next batch of a node, planned from the heads of tables.

`advance` runs a plan, `sluice plan` prints it. Planning reads only the heads of tables and starts
no Spark.
"""

from collections.abc import Mapping
from dataclasses import replace

from sluice.declare.graph import Graph
from sluice.delta.log.continuity import as_of, check_fit, check_input, unreflected
from sluice.delta.log.feed_size import FeedSize, feed_size, only_inserts, table_size
from sluice.delta.log.position import (
    Frontier,
    Head,
    Pin,
    Pins,
    Position,
    head,
    head_as_found,
    oldest,
)
from sluice.delta.log.redefinition import (
    check_definition,
    is_of_another,
    is_unfilled,
    replaceable,
)
from sluice.delta.places.lake_layout import LakeLayout
from sluice.delta.reading.spark_reads import check_feed, is_readable
from sluice.engine.computing.batch_plan import BatchPlan, Strategy
from sluice.engine.planning.frontier import consistent
from sluice.engine.planning.node import Node
from sluice.limits import Limits

SAME_STATE = "inputs that reflect the same state of their sources"
NOTHING = Position(batch=0, attempt="", kind="")  # position of a table to be built whole


def plan_batch(
    node: Node,
    lake: LakeLayout,
    graph: Graph,
    limits: Limits,
    pins: Mapping[str, int] | None = None,
) -> BatchPlan:
    """Plan the next batch of `node`. `pins`: the oldest versions of dimensions allowed.

    Raises ConfigError if the table was built by another definition, HistoryLost if an input is not
    the table that was read before.
    """
    before = head(lake.uri(node.id))
    if replaced := _replaced_by_build(node, lake, before):
        plan = _planned(node, lake, graph, limits, None, NOTHING, pins or {})
        return replace(plan, replaces=replaced)
    check_definition(node.table, before)
    recorded = before.position if before else None
    return _planned(node, lake, graph, limits, before, recorded or NOTHING, pins or {})


def _replaced_by_build(node: Node, lake: LakeLayout, before: Head | None) -> Head | None:
    """Return the table if it has another definition and nobody has read it.

    Such a table is empty, or it is the state of an empty view whose own first batch has failed.
    """
    is_state = node.table.is_view and node.id != node.table.id
    if is_state and is_of_another(before, node.definition):
        return before if is_unfilled(head_as_found(lake.uri(node.table.id))) else None
    return replaceable(before, node.definition)


def plan_rebuild(node: Node, lake: LakeLayout, graph: Graph, limits: Limits) -> BatchPlan:
    """Plan to read all inputs at their heads, whatever the table was built from."""
    before = head_as_found(lake.uri(node.id))
    check_fit(node.table.id, before)
    return _planned(node, lake, graph, limits, before, NOTHING, {})


def _planned(
    node: Node,
    lake: LakeLayout,
    graph: Graph,
    limits: Limits,
    before: Head | None,
    last: Position,
    pins: Mapping[str, int],
) -> BatchPlan:
    uri = lake.uri(node.id)
    heads = {i: head(lake.uri(i)) for i in (*node.operator.inputs, *driving(node, graph))}
    references = {i: head(lake.uri(i)) for i in only_looked_up(node, graph)}
    every = {**heads, **references}
    recorded, used = last.inputs, last.references
    for input_id, at in every.items():
        check_input(node.table.id, input_id, at, recorded.get(input_id, used.get(input_id)))
    missing = [i for i, h in every.items() if is_unfilled(h)]
    if missing:
        return _waiting(node, uri, before, f"{', '.join(missing)} to be filled")
    found = {i: _at_most(h, pins.get(i), recorded.get(i)) for i, h in heads.items() if h}
    chosen = consistent(lake, found, recorded)
    if chosen is None:
        return _waiting(node, uri, before, SAME_STATE)
    looked_up = {i: _at_most(h, pins.get(i), used.get(i)).pin for i, h in references.items() if h}
    plan = _plan(node, lake, before, chosen, looked_up)
    if gone := _vacuumed(heads, plan.pins):
        return _waiting(node, uri, before, f"{SAME_STATE} ({gone} was vacuumed)")
    if recorded:
        ranges = _ranges(found, plan.pins, recorded)
        return _following(node, replace(plan, ranges=ranges), lake, limits)
    size = sum((table_size(lake.uri(i), p.version) for i, p in plan.pins.items()), FeedSize())
    return replace(plan, size=size)


def _vacuumed(heads: Mapping[str, Head | None], pins: Pins) -> str:
    """Return a chosen input version whose rows can no longer be read, as text.

    A vacuum keeps the versions that consumers name. A table that is built may need another one.
    """
    behind = ((i, pin, heads[i]) for i, pin in pins.items())
    return next(
        (
            f"version {pin.version} of {i}"
            for i, pin, at in behind
            if at and pin.version < at.version and not is_readable(at.uri, pin.version)
        ),
        "",
    )


def _at_most(at: Head, pinned: int | None, recorded: Pin | None) -> Head:
    """Return a dimension at the run's pin, but never before the version that was already used."""
    used = recorded.version if recorded else 0
    return as_of(at, at.version if pinned is None else min(max(used, pinned), at.version))


def driving(node: Node, graph: Graph) -> tuple[str, ...]:
    """Return the stored tables besides the inputs whose changes also drive the output."""
    operator = node.operator
    return graph.stored(operator.references) if operator.follows_references else ()


def only_looked_up(node: Node, graph: Graph) -> tuple[str, ...]:
    """Return the stored tables that are read but drive nothing."""
    driven = driving(node, graph)
    every = graph.stored(node.operator.references)
    return tuple(i for i in every if i not in driven)


def _plan(
    node: Node,
    lake: LakeLayout,
    before: Head | None,
    chosen: Mapping[str, tuple[Pin, Frontier]],
    references: Pins,
) -> BatchPlan:
    pins = {i: pin for i, (pin, _) in chosen.items()}
    return BatchPlan(
        node,
        lake.uri(node.id),
        before,
        Strategy.BUILD,
        "the whole query: there are no earlier versions",
        pins=pins,
        references=references,
        frontier=oldest(frontier for _, frontier in chosen.values()),
    )


def _ranges(heads: Mapping[str, Head], pins: Pins, recorded: Pins) -> Mapping[str, tuple[int, int]]:
    """Return the versions to read of each input with new data."""
    known = ((i, pin) for i, pin in pins.items() if i in recorded)
    found = {i: unreflected(heads[i], recorded[i], pin.version) for i, pin in known}
    return {i: versions for i, versions in found.items() if versions}


def _following(node: Node, plan: BatchPlan, lake: LakeLayout, limits: Limits) -> BatchPlan:
    """Plan how the table follows its inputs' feeds from its position."""
    ranges = plan.ranges
    for input_id, (after, upto) in ranges.items():
        check_feed(lake.uri(input_id), input_id, node.table.id, after, upto)
    size = sum((feed_size(lake.uri(i), *r) for i, r in ranges.items()), FeedSize())
    growing = frozenset(i for i, r in ranges.items() if only_inserts(lake.uri(i), *r))
    plan = replace(plan, size=size, growing=growing)
    strategy, reason = node.batch.way(plan, lake, limits)
    return replace(plan, strategy=strategy, reason=reason)


def whole_size(lake: LakeLayout, plan: BatchPlan) -> int:
    """Return the bytes of all of a batch's inputs, which a rebuild would read."""
    return sum(table_size(lake.uri(i), pin.version).bytes for i, pin in plan.looked_up.items())


def rebuild_size(plan: BatchPlan) -> FeedSize:
    """Return the size of what a rebuild reads: all inputs, and the rows that it compares."""
    return plan.size + table_size(plan.uri, plan.before.version) if plan.before else plan.size


def _waiting(node: Node, uri: str, before: Head | None, what: str) -> BatchPlan:
    return BatchPlan(node, uri, before, Strategy.RECOMPUTE, "", waiting_for=what)
