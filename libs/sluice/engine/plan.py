"""Stored tables of a declared table, and the next batch of each, planned from the heads of tables.

`advance` runs a plan, `sluice plan` prints it. Planning reads only the heads of tables and starts
no Spark.

Versions of several inputs must belong together. A view over two views of one source must not mix
two states of that source. Each table's position names its frontier: the version of every ancestor
source that it reflects. A batch takes the greatest versions of its inputs whose frontiers agree,
found in the inputs' history.

Some views consist of a state and a visible table. A source with a key consists of its deliveries
and its latest rows. Each is a Delta table with its own position, advanced by the same step.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from pyspark.sql.types import StructType

from sluice.declare.declared import Column, Declared
from sluice.declare.registry import kind
from sluice.declare.table import Graph, Table
from sluice.delta.log.continuity import (
    as_of,
    check_definition,
    check_fit,
    check_input,
    is_of_another,
    is_past,
    is_unfilled,
    last_with_rows_of,
    replaceable,
    unreflected_versions,
)
from sluice.delta.log.files import FeedSize, feed_size, only_inserts, table_size
from sluice.delta.log.position import (
    REBUILD,
    Frontier,
    Head,
    Pin,
    Pins,
    Position,
    head,
    head_as_found,
    oldest,
    positions,
)
from sluice.delta.places.lake_layout import LakeLayout
from sluice.delta.reading.spark_reads import check_feed, is_readable
from sluice.delta.writing.commit import columns_at
from sluice.engine.batch import Batch
from sluice.engine.batch_plan import BatchPlan, Strategy
from sluice.engine.operator import Maintained, Operator
from sluice.engine.upkeep import Kept
from sluice.language.names import RESERVED_PREFIX

SAME_STATE = "inputs that reflect the same state of their sources"
NOTHING = Position(batch=0, attempt="", kind="")  # position of a table to be built whole


@dataclass(frozen=True)
class Node(Maintained):
    """Maintained table. `batch` plans, computes and proves its rows; `kept` keeps its files."""

    batch: type[Batch[Operator]]
    kept: type[Kept]


@runtime_checkable
class Maker(Protocol):
    """Kind whose tables are maintained."""

    def nodes(self, table: Table, graph: Graph) -> tuple[Node, ...]:
        """Return the nodes of a table of that kind."""


def nodes_of(table: Table, graph: Graph) -> tuple[Node, ...]:
    """Return a table's nodes in the order in which they advance; none if it isn't maintained."""
    if table.parts:
        whole = Graph({**graph.tables, **{part.id: part for part in table.parts}})
        return tuple(node for part in table.parts for node in nodes_of(part, whole))
    maker = kind(table.kind)
    return maker.nodes(table, graph) if isinstance(maker, Maker) else ()


def plan_batch(
    node: Node, lake: LakeLayout, graph: Graph, pins: Mapping[str, int] | None = None
) -> BatchPlan:
    """Plan the next batch of `node`. `pins`: the oldest versions of dimensions allowed.

    Raises ConfigError if the table was built by another definition, HistoryLost if an input is not
    the table that was read before.
    """
    before = head(lake.uri(node.id))
    if replaced := _replaced_by_build(node, lake, before):
        plan = _plan_from(node, lake, graph, None, NOTHING, pins or {})
        return replace(plan, replaces=replaced)
    check_definition(node.table, before)
    recorded = before.position if before else None
    return _plan_from(node, lake, graph, before, recorded or NOTHING, pins or {})


def _replaced_by_build(node: Node, lake: LakeLayout, before: Head | None) -> Head | None:
    """Return the table if it has another definition and nobody has read it.

    Such a table is empty, or it is the state of an empty view whose own first batch has failed.
    """
    is_state = node.table.is_view and node.id != node.table.id
    if is_state and is_of_another(before, node.definition):
        return before if is_unfilled(head_as_found(lake.uri(node.table.id))) else None
    return replaceable(before, node.definition)


def plan_rebuild(node: Node, lake: LakeLayout, graph: Graph) -> BatchPlan:
    """Plan to read all inputs at their heads, whatever the table was built from."""
    before = head_as_found(lake.uri(node.id))
    check_fit(node.table.id, before)
    return _plan_from(node, lake, graph, before, NOTHING, {})


def _plan_from(
    node: Node,
    lake: LakeLayout,
    graph: Graph,
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
    if gone := _find_vacuumed(heads, plan.pins):
        return _waiting(node, uri, before, f"{SAME_STATE} ({gone} was vacuumed)")
    if recorded:
        return _following(node, plan, found, recorded, lake)
    size = sum((table_size(lake.uri(i), p.version) for i, p in plan.pins.items()), FeedSize())
    return replace(plan, size=size)


def _find_vacuumed(heads: Mapping[str, Head | None], pins: Pins) -> str:
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


def _following(
    node: Node, plan: BatchPlan, heads: Mapping[str, Head], recorded: Pins, lake: LakeLayout
) -> BatchPlan:
    """Plan how the table follows its inputs' feeds from its position."""
    known = ((i, pin) for i, pin in plan.pins.items() if i in recorded)
    unread = {i: unreflected_versions(heads[i], recorded[i], pin.version) for i, pin in known}
    ranges = {i: versions for i, versions in unread.items() if versions}
    for input_id, (after, upto) in ranges.items():
        check_feed(lake.uri(input_id), input_id, node.table.id, after, upto)
    size = sum((feed_size(lake.uri(i), *r) for i, r in ranges.items()), FeedSize())
    growing = frozenset(i for i, r in ranges.items() if only_inserts(lake.uri(i), *r))
    plan = replace(plan, ranges=ranges, size=size, growing=growing)
    strategy, reason = node.batch.way(plan, lake)
    return replace(plan, strategy=strategy, reason=reason)


def _waiting(node: Node, uri: str, before: Head | None, what: str) -> BatchPlan:
    return BatchPlan(node, uri, before, Strategy.RECOMPUTE, "", waiting_for=what)


def whole_size(lake: LakeLayout, plan: BatchPlan) -> int:
    """Return the bytes of all of a batch's inputs, which a rebuild would read."""
    return sum(table_size(lake.uri(i), pin.version).bytes for i, pin in plan.looked_up.items())


def rebuild_size(plan: BatchPlan) -> FeedSize:
    """Return the size of what a rebuild reads: all inputs, and the rows that it compares."""
    return plan.size + table_size(plan.uri, plan.before.version) if plan.before else plan.size


def frontier_of(lake: LakeLayout, table_id: str, at: Head) -> Frontier:
    """Return the version of each ancestor source that the table's head reflects.

    It also reflects newer versions of inputs that changed no data.
    """
    position = at.position
    if position is None or not position.inputs:
        return {table_id: at.data_version}
    reflected = []
    for input_id, pin in position.inputs.items():
        now = head(lake.uri(input_id))
        if now is None or now.table != pin.table or now.data_version > pin.version:
            return position.frontier
        reflected.append(frontier_of(lake, input_id, now))
    known = oldest(reflected)
    return {source: known[source] for source in position.frontier if source in known}


def consistent(
    lake: LakeLayout, heads: Mapping[str, Head], recorded: Pins
) -> dict[str, tuple[Pin, Frontier]] | None:
    """Return the greatest input versions that agree on shared ancestors, and their frontiers.

    None if there are none at or after the recorded ones: the batch must wait. It also waits if an
    input must first be rebuilt, because version numbers of a restored backup prove nothing.
    """
    if len(heads) > 1 and any(_has_lost_its_past(lake, h) for h in heads.values()):
        return None
    chosen = {i: (h.pin, frontier_of(lake, i, h)) for i, h in heads.items()}
    while (late := _disagreement(chosen)) is not None:
        input_id, source, version = late
        earlier = _reflecting(lake, input_id, heads[input_id], source, version)
        floor = recorded[input_id].version if input_id in recorded else 0
        if earlier is None or earlier[0].version < floor:
            return None
        chosen[input_id] = earlier
    return chosen


def _has_lost_its_past(lake: LakeLayout, at: Head) -> bool:
    """True if the table, or one of its inputs, was computed from rows that are missing now.

    An input that has been rebuilt since is checked as it was when it was read. If its rows stayed
    the same, it counts as rebuilt, but then all inputs must reflect one state.
    """
    reads, renewed = {}, False
    for input_id, pin in (at.position.inputs if at.position else {}).items():
        now = head(lake.uri(input_id))
        if now is None or not is_past(now, pin):
            return True
        is_same = now.data_version <= pin.version
        read = now if is_same else as_of(now, pin.version)
        if _has_lost_its_past(lake, read):
            return True
        later = now.version - pin.version
        if is_same and later > 0:
            renewed = renewed or any(p.kind == REBUILD for _, p in positions(now.uri, later))
        reads[input_id] = pin, frontier_of(lake, input_id, read)
    return renewed and _disagreement(reads) is not None


def _disagreement(chosen: Mapping[str, tuple[Pin, Frontier]]) -> tuple[str, str, int] | None:
    """Return an input that is ahead of another for some source, and the version to use instead."""
    least = oldest(frontier for _, frontier in chosen.values())
    for input_id, (_, frontier) in chosen.items():
        for source, version in frontier.items():
            if version > least[source]:
                return input_id, source, least[source]
    return None


def _reflecting(
    lake: LakeLayout, table_id: str, at: Head, source: str, version: int
) -> tuple[Pin, Frontier] | None:
    """Return the newest version of a table whose rows reflect at most `version` of a source.

    None if a rebuild comes first: version numbers from before it may belong to another past.
    """
    if table_id == source:
        return last_with_rows_of(at, version).pin, {source: version}
    for commit, position in positions(lake.uri(table_id)):
        reflected = position.frontier.get(source)  # None: it was empty, or had another definition
        if reflected is not None and reflected <= version:
            return last_with_rows_of(at, commit).pin, position.frontier
        if position.kind == REBUILD:
            return None
    return None


def with_taken_columns(lake: LakeLayout, table: Table) -> Table:
    """Return the table with the columns that the deliveries kept beside it have taken."""
    if not isinstance(table.spec, Declared) or table.delivered_to == table.id:
        return table
    deliveries = columns_at(head(lake.uri(table.delivered_to)))
    return with_columns(table, beyond(table.spec.types, deliveries))


def with_columns(table: Table, columns: Iterable[Column]) -> Table:
    """Return the table with further columns."""
    more = {c.name: c.type for c in columns}
    return replace(table, columns={**table.columns, **more}, taken=frozenset(more))


def beyond(declared: Mapping[str, str], stored: StructType) -> Iterable[Column]:
    """Yield the visible stored columns that are not declared."""
    for field in stored.fields:
        if field.name not in declared and not field.name.startswith(RESERVED_PREFIX):
            type_ = field.dataType.simpleString()
            yield Column(name=field.name, type=type_ if "<" in type_ else type_.upper())
