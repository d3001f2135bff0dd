"""A cogroup whose definition gained or lost streams and aggregates: the rest of its state is kept.

Only the new parts are computed, from the input versions that the state reflects, and added to the
rest. The next batch continues from there. Dropping a part rewrites the state and reads no inputs.
Everything is rebuilt if keys, windows or the rest of the definition have changed. It is also
rebuilt if a new input reflects other states of a shared source, or if required versions can't be
read or lack a column.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sluice.delta.log.continuity import check_input
from sluice.delta.log.files import FeedSize, table_size
from sluice.delta.log.position import Head, Pin, Pins, Position, head, oldest
from sluice.delta.places.lake_layout import LakeLayout
from sluice.delta.reading.local import arrow_schema
from sluice.delta.reading.spark_reads import check_feed, is_readable
from sluice.engine.batch import Batch
from sluice.engine.batch_plan import BatchPlan
from sluice.engine.operator import Maintained, Operator, names, same
from sluice.engine.plan import frontier_of
from sluice.errors import HistoryLost
from sluice.kinds.cogroup.operator import CogroupState, rows_column
from sluice.kinds.cogroup.spec import SHAPE

EXTEND = "extend"  # the strategy: compute a definition's new parts, keep the rest
AddedAggregates = Mapping[str, tuple[str, ...]]  # stream -> aggregates


@dataclass(frozen=True)
class CogroupExtension:
    """A plan pinned to the versions that the kept columns reflect, and the parts to compute."""

    plan: BatchPlan
    state: CogroupState
    kept: tuple[str, ...]
    added: AddedAggregates

    def rows(self, batch: Batch[Operator]) -> DataFrame:
        """Return the whole state by today's definition."""
        kept = batch.current().select(*names((*self.state.by, *self.kept)))
        if self.added:
            part = self.state.only(self.added, self.added)
            kept = self._beside(kept, part.query(batch.snapshots(part), {}))
        counts = [F.coalesce(f"`{c}`", F.lit(0)).alias(c) for c in self.state.row_counts]
        values = names(tuple(a.name for a in self.state.accumulators))
        rows = kept.select(*names(self.state.by), *counts, *values)
        return rows if self.state.spec.keep_empty else rows.where(self.state.has_any_rows())

    def _beside(self, kept: DataFrame, computed: DataFrame) -> DataFrame:
        both = kept.alias("kept").join(
            computed.alias("computed"), same("kept", "computed", self.state.by), "full"
        )
        by = [F.coalesce(f"kept.`{c}`", f"computed.`{c}`").alias(c) for c in self.state.by]
        new = [c for c in computed.columns if c not in kept.columns]
        return both.select(
            *by,
            *[F.col(f"kept.`{c}`") for c in self.kept],
            *[F.col(f"computed.`{c}`") for c in new],
        )


def extension_of(node: Maintained, lake: LakeLayout) -> CogroupExtension | None:
    """Return the extension from the table's definition to the node's; None: rebuild it."""
    state = node.operator
    try:
        before = head(lake.uri(node.id))
    except HistoryLost:
        return None
    if not isinstance(state, CogroupState) or state.is_session or before is None:
        return None
    at = before.position
    if at is None or not at.inputs or at.definition == node.definition:
        return None
    if at.parts.get(SHAPE) != node.parts[SHAPE]:
        return None
    streams = [s for s in state.spec.streams if at.parts.get(s) == node.parts[s]]
    pins = _pins(state, lake, at) if streams else None
    return _extension(node, state, lake, before, pins, streams) if pins else None


def _extension(
    node: Maintained,
    state: CogroupState,
    lake: LakeLayout,
    before: Head,
    pins: Pins,
    streams: list[str],
) -> CogroupExtension | None:
    assert before.position is not None
    known = before.position.parts
    same_parts = {name for name, made in node.parts.items() if known.get(name) == made}
    kept = [a for a in state.accumulators if {a.stream, f"{a.stream}.{a.name}"} <= same_parts]
    added: dict[str, tuple[str, ...]] = {}
    for a in state.accumulators:
        if a not in kept:
            added[a.stream] = (*added.get(a.stream, ()), a.name)
    more = (_frontier(lake, input_id) for input_id in pins.keys() - before.position.inputs.keys())
    frontier = oldest([before.position.frontier, *more])
    part = state.only(added, added) if added else None
    read = {i: pins[i] for i in (part.inputs if part else ())}
    for i, pin in read.items():  # versions that can be read, and had the columns
        at, wanted = (lake.uri(i), pin.version), {*(part.columns(i) if part else ())}
        if not is_readable(*at) or not wanted <= {*arrow_schema(*at).names}:
            return None
    new = [f"{stream}.{name}" for stream, names_ in added.items() for name in names_]
    gone = sorted(known.keys() - node.parts.keys())
    said = {"new": new, "gone": gone}
    plan = BatchPlan(
        node,
        lake.uri(node.id),
        before,
        EXTEND,
        "; ".join(f"{what}: {', '.join(some)}" for what, some in said.items() if some),
        pins=pins,
        frontier=frontier,
        size=sum((table_size(lake.uri(i), p.version) for i, p in read.items()), FeedSize()),
    )
    columns = (*map(rows_column, streams), *(a.name for a in kept))
    return CogroupExtension(plan, state, columns, added)


def _pins(state: CogroupState, lake: LakeLayout, at: Position) -> dict[str, Pin] | None:
    """Return the versions of all inputs that the kept state reflects."""
    found = {}
    for input_id in state.inputs:
        now = head(lake.uri(input_id))
        if now is None or not now.is_filled:
            return None
        pin = at.inputs.get(input_id)
        if pin is None:
            shared = _frontier(lake, input_id)
            if any(at.frontier.get(source, v) != v for source, v in shared.items()):
                return None
            found[input_id] = now.pin
        elif _goes_on(state, lake, input_id, pin, now):
            found[input_id] = pin
        else:
            return None
    return found


def _goes_on(state: CogroupState, lake: LakeLayout, input_id: str, pin: Pin, now: Head) -> bool:
    """True if the input is still the same table and its feed can be read from that version."""
    try:
        check_input(state.spec.name, input_id, now, pin)
        check_feed(lake.uri(input_id), input_id, state.spec.name, pin.version, now.version)
    except HistoryLost:
        return False
    return True


def _frontier(lake: LakeLayout, input_id: str) -> Mapping[str, int]:
    now = head(lake.uri(input_id))
    assert now is not None
    return frontier_of(lake, input_id, now)
