"""Batch of a cogroup's state: it merges the change into the rows that the state has.

Only the feeds and the touched rows of the state are read. If a removal breaks groups, only the
affected streams are recomputed, from their inputs only. The same pass produces the changelog of the
view over the state. Sessions are recomputed from the inputs.

If a definition has gained or lost streams and aggregates, the rest of its state is kept. Only the
new parts are computed, from the input versions that the state reflects, and added to the rest. The
next batch continues from there. Dropping a part rewrites the state and reads no inputs. Everything
is rebuilt if keys, windows or the rest of the definition have changed. It is also rebuilt if a new
input reflects other states of a shared source, or if required versions can't be read or lack a
column.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import AtomicType, DoubleType, FloatType

from sluice.changes import CHANGE, WEIGHT, net
from sluice.declare.meaning import definition
from sluice.declare.table import Graph, Table
from sluice.declare.table_spec import END
from sluice.delta.log.continuity import check_input
from sluice.delta.log.files import FeedSize, table_size
from sluice.delta.log.position import Head, Pin, Pins, Position, head, oldest
from sluice.delta.places.lake_layout import LakeLayout
from sluice.delta.reading.local import arrow_schema, hand_as_stored, read_feed, read_if_few
from sluice.delta.reading.searching import SearchedVersion
from sluice.delta.reading.spark_reads import check_feed, is_readable, snapshot
from sluice.delta.reading.wanted import WantedValues, is_exact
from sluice.delta.writing.filing import files_for
from sluice.engine import windows
from sluice.engine.batch import Batch, Extension, Reread, count_of, same_names, touched_by_feeds
from sluice.engine.batch_plan import BatchPlan, BatchResult, Context, Strategy, Way, WholeTable
from sluice.engine.operator import InputRows, Maintained, Operator, names, same, union, within
from sluice.engine.plan import Node, frontier_of
from sluice.engine.rows import Held, Here, InSpark, has_elements, is_given, picked_own
from sluice.engine.upkeep import Kept
from sluice.engine.windows import LATE, Horizon, late_of_change
from sluice.errors import HistoryLost
from sluice.interpreter import is_here
from sluice.kinds.cogroup import SHAPE, Cogroup, definition_by_part
from sluice.kinds.cogroup.change import (
    BROKEN,
    CogroupView,
    changed_groups,
    mend_groups,
    merge_change,
)
from sluice.kinds.cogroup.operator import CogroupState, rows_column
from sluice.language.names import STATE, internal
from sluice.limits import Limits

SPREAD_SAMPLE_ROWS = 50_000  # which show whether the groups of a new state have few rows each
LEAST_RANGES = 4  # files at which a new state is shuffled in ranges


class CogroupStrategy(StrEnum):
    """Strategies for merging a change into the state."""

    ADDITIVE = "additive"  # reads the feeds and the touched state only
    MERGE = "merge"  # also recomputes, from their inputs, streams that a removal breaks


@dataclass(frozen=True)
class GroupReads:
    """Rows of the inputs' feeds, and rows of the state that include those of the touched groups."""

    feeds: Mapping[str, DataFrame]
    state: DataFrame

    @classmethod
    def of(cls, batch: Batch[CogroupState]) -> "GroupReads | None":
        """Read the feeds and the state; None if there is too much to read."""
        plan, lake, limits = batch.plan, batch.context.lake, batch.context.limits
        assert plan.before is not None
        searched = SearchedVersion(plan.uri, plan.before.version, limits)
        if (
            plan.pins.keys() != plan.recorded.keys()
            or plan.size.bytes > limits.few_tasks_bytes
            or not searched.may_search
        ):
            return None
        feeds = {i: read_feed(lake.uri(i), *range_) for i, range_ in plan.ranges.items()}
        stored, state = arrow_schema(plan.uri, plan.before.version), batch.operator
        of_key = {n: _values(state, n, feeds, stored.field(n).type) for n in state.spec.key}
        wanted = {name: values for name, values in of_key.items() if values is not None} or None
        count = sum(feed.num_rows for feed in feeds.values())
        most = limits.handed_rows
        if count > most or (wanted is None and searched.is_large):
            return None
        rows = _rows(searched, most, wanted, batch.horizon)
        if rows is None:
            return None

        def given(uri: str, version: int, table: pa.Table) -> DataFrame:
            return hand_as_stored(batch.session, uri, version, table).coalesce(1)

        handed = {i: given(lake.uri(i), plan.ranges[i][1], feed) for i, feed in feeds.items()}
        return cls(handed, given(plan.uri, plan.before.version, rows))


class CogroupBatch(Batch[CogroupState]):
    """One batch of the state of a cogroup."""

    @classmethod
    def way(cls, plan: BatchPlan, lake: LakeLayout) -> Way:
        state = plan.node.operator
        assert isinstance(state, CogroupState)
        if not state.is_mergeable:
            return Strategy.RECOMPUTE, "added and removed rows move the bounds of sessions"
        if breaking := ", ".join(state.breaking):
            why = f"groups are recomputed if they lose a value kept for {breaking}"
            return CogroupStrategy.MERGE, why
        return CogroupStrategy.ADDITIVE, "all aggregates can add and remove rows"

    @classmethod
    def rereads(cls, context: Context, plan: BatchPlan) -> tuple[Reread, ...]:
        """Return the touched rows of the state, and the inputs of streams that may break."""
        state = plan.node.operator
        assert isinstance(state, CogroupState)
        if plan.strategy not in set(CogroupStrategy):
            return super().rereads(context, plan)
        own = Reread(plan.node.id, same_names(state.group), touched_by_feeds, is_unique=True)
        breaking = {a.stream for a in state.accumulators if a.can_break}
        losing = (
            i
            for i in state.inputs
            if i in plan.ranges.keys() - plan.growing
            and any(name in breaking for name, _ in state.streams_of(i))
        )
        broken = (Reread(i, state.map_to_group(i), touched_by_feeds, is_sure=False) for i in losing)
        return own, *broken

    @classmethod
    def extension(cls, node: Maintained, lake: LakeLayout) -> Extension | None:
        return extension_of(node, lake)

    def compute_changes(self) -> BatchResult:
        if self.has_fallen or self.plan.strategy not in set(CogroupStrategy):
            return super().compute_changes()
        return self._merge()

    def whole(self) -> WholeTable:
        """Compute all rows; those of a new table in the order of its files, if that pays."""
        prepared = {n: self.operator.prepare(n, rows) for n, rows in self.snapshots().items()}
        ranges = self._ranges(prepared) if self.plan.before is None else 0
        if ranges:
            rows = self.operator.combine_in_ranges(prepared, ranges)
        else:
            rows = self.operator.combine(prepared, {})
        if self.alive is None:
            return WholeTable(rows, is_filed=bool(ranges))
        held = self.hold(rows)
        late = count_of(count_late(self.operator, held, self.alive))
        return WholeTable(self.keep_living(held), late, is_filed=bool(ranges))

    def count_late_changes(
        self, changes: InputRows, snapshots: InputRows, touched: DataFrame, alive: Column
    ) -> DataFrame:
        if not self.operator.is_session:
            return super().count_late_changes(changes, snapshots, touched, alive)
        came = [self.operator.prepare(n, c) for n, c in changes.items()]
        rows = [self.operator.prepare(n, r) for n, r in snapshots.items()]
        current = [within(r, touched, self.operator.group) for r in rows]
        return count_late_in_sessions(self.operator, came, current, alive)

    def _ranges(self, prepared: InputRows) -> int:
        lake, pins = self.context.lake, self.plan.pins
        sizes = [table_size(lake.uri(i), pins[i].version) for i in self.operator.inputs]
        is_small = sum(size.bytes for size in sizes) <= self.context.limits.read_here_bytes
        if is_small or is_here(self.session):
            return 0
        rows = sum(size.rows or 0 for size in sizes)
        return choose_ranges(self.operator, prepared, rows, self.context.limits)

    def _merge(self) -> BatchResult:
        """Merge the change with the rows of the state."""
        local = GroupReads.of(self)
        prepared = {n: self.operator.prepare(n, c) for n, c in self._net(local).items()}
        change = self.operator.gather(
            self.operator.apart(union(list(prepared.values()))), F.col(WEIGHT)
        )
        old = local.state if local else self._old_rows(change)
        found = changed_groups(self.operator, merge_change(self.operator, old, change), self.alive)
        expired = self.count_late(prepared.values())
        groups = Here.of(found) if local else InSpark(self.hold(found))
        whole, recomputed = self._mend(groups)
        changed = whole.where(is_given(CHANGE))
        view = CogroupView(self.operator, self.plan.node.id)
        return BatchResult(
            changed.changelog({name: name for name in (*self.operator.stored, CHANGE)}),
            recomputed=recomputed,
            expired=expired,
            shown=None if self.operator.spec.having else view.show_changes(changed.rows),
            is_projection=True,
        )

    def _old_rows(self, change: DataFrame) -> DataFrame:
        """Return the state's rows of the groups of a change."""
        groups = change.select(*names(self.operator.group))
        few = None
        if self.horizon is None:
            few = picked_own(self.context, self.plan, groups, self.operator)
        return self.current_of(groups) if few is None else few

    def _net(self, local: GroupReads | None) -> Mapping[str, DataFrame]:
        if local is None:
            return self.changes()
        return {n: net(feed, self.operator.columns(n)) for n, feed in local.feeds.items()}

    def _mend(self, groups: Held) -> tuple[Held, int | None]:
        """Return the groups with broken ones recomputed, and the number of those."""
        if not self.operator.breaking:
            return groups, None
        broken = groups.where(has_elements(BROKEN))
        count, streams = broken.elements(BROKEN)
        if not count:
            return groups, 0
        rows = broken.rows
        again = self._recomputed_streams(streams, rows, broken.table)
        whole = changed_groups(
            self.operator, mend_groups(self.operator, rows, streams, again), self.alive
        )
        return groups.where(~has_elements(BROKEN)).beside(whole), count

    def _recomputed_streams(
        self, streams: frozenset[str], groups: DataFrame, here: pa.Table | None
    ) -> DataFrame:
        """Recompute the broken streams' state rows from their inputs. `here`: the same groups."""
        part = self.operator.only(streams)
        touched = groups.select(*names(self.operator.group))
        if here is not None and (rows := few_rows(self, part, here)):
            return part.recompute(rows, {}, touched)
        return part.recompute(self.snapshots(part), {}, touched, self.bounds(touched, part))


def choose_ranges(state: CogroupState, prepared: InputRows, rows: int, limits: Limits) -> int:
    """Return the number of ranges for the prepared rows; 0 if they are aggregated first.

    Aggregating before a shuffle pays off if groups have many rows. If most groups have few, rows
    get wider and hardly fewer. Such rows are better shuffled unaggregated and in ranges: this
    shuffle then also distributes them to the table's files. A sample decides between the two.

    One Spark job over the columns of the groups. Sessions need no ranges: their windows are columns
    of the group, and are found only when all rows of a key are together.
    """
    if state.is_session:
        return 0
    keys = union([one.select(*names(state.by)) for one in prepared.values()])
    # Equal values of other types may differ; Spark would shuffle them once more.
    types = [f.dataType for f in keys.schema.fields]
    if any(not isinstance(t, AtomicType) or isinstance(t, FloatType | DoubleType) for t in types):
        return 0
    share = min(1.0, SPREAD_SAMPLE_ROWS / max(rows, 1))
    hashed = F.count_distinct(F.xxhash64(*names(state.by)))
    sampled, distinct = keys.sample(share, seed=1).agg(F.count(F.lit(1)), hashed).collect()[0]
    ranges = files_for(groups_behind(sampled, distinct, most=int(sampled / share)), limits)
    return ranges if ranges >= LEAST_RANGES and distinct > sampled / 2 else 0


def groups_behind(sampled: int, distinct: int, most: int) -> int:
    """Estimate the number of groups from a sample's rows and distinct groups: at most `most`.

    A sample of n from N groups of equal size is expected to meet N (1 - (1 - 1/N)^n) of them.
    """
    low, high = distinct, max(distinct, most)
    while high - low > max(1, low // 100):
        middle = (low + high) // 2
        met = middle * (1 - (1 - 1 / middle) ** sampled)
        low, high = (middle, high) if met < distinct else (low, middle)
    return high


def count_late(state: CogroupState, groups: DataFrame, alive: Column) -> DataFrame:
    """Count late rows among those that form the groups of a whole query: one row, with LATE."""
    rows = sum(names(state.row_counts), F.lit(0))
    return groups.where(~alive).agg(F.sum(rows).alias(LATE))


def count_late_in_sessions(
    state: CogroupState, prepared: Iterable[DataFrame], current: Iterable[DataFrame], alive: Column
) -> DataFrame:
    """Count late rows of a change to sessions; their bounds depend on the rows now (`current`)."""
    columns = names((*state.spec.key, windows.TIME, END))
    stays = [rows.select(*columns, F.lit(0).alias(WEIGHT)) for rows in current]
    comes = [rows.where(F.col(WEIGHT) > 0).select(*columns, WEIGHT) for rows in prepared]
    rows = windows.sessions(union([*stays, *comes]), state.spec.key, state.spec.window)
    return late_of_change([rows], alive)


def nodes(table: Table, graph: Graph) -> tuple[Node, ...]:
    """Return the cogroup's stored tables, the state first."""
    spec = table.spec
    assert isinstance(spec, Cogroup)
    inputs = {input_.id: input_ for input_ in graph.inputs(table.id)}
    streams = {name: table.reference(stream.from_) for name, stream in spec.streams.items()}
    state, state_id = CogroupState(table, inputs, streams), internal(table.id, STATE)
    made = definition(table)
    parts = definition_by_part(table, spec, {i: t.key for i, t in inputs.items()})
    return (
        Node(state_id, table, state, made, CogroupBatch, Kept, parts=parts),
        Node(table.id, table, CogroupView(state, state_id), made, Batch, Kept),
    )


ReadCondition = tuple[pc.Expression, pc.Expression | None]  # a condition, its part with statistics
MONTHS_DIFFER = timedelta(days=4)  # more than a month forward and a month back can differ


def few_rows(
    batch: Batch[CogroupState], part: CogroupState, groups: pa.Table
) -> dict[str, DataFrame] | None:
    """Read the input rows that make up those groups; None if they are not known to be few."""
    found, limits = {}, batch.context.limits
    for input_id in part.inputs:
        uri, version = batch.context.lake.uri(input_id), batch.plan.pins[input_id].version
        searched = SearchedVersion(uri, version, limits, part.columns(input_id))
        if not searched.is_large:
            rows = snapshot(batch.session, uri, version, limits)
            found[input_id] = rows.select(*names(tuple(searched.columns)))
            continue
        wanted = _made_of(part, input_id, groups, arrow_schema(uri, version))
        if wanted is None or not searched.may_search:
            return None
        few = searched.find_at_most(wanted, limits.handed_rows)
        if few is None:
            return None
        found[input_id] = hand_as_stored(batch.session, uri, version, few).coalesce(1)
    return found


def _rows(
    searched: SearchedVersion, most: int, wanted: WantedValues | None, horizon: Horizon | None
) -> pa.Table | None:
    """Return rows that include those of touched and expiring groups; None if they are many."""
    now = horizon.now if horizon else None
    if wanted is None:
        return read_if_few(searched.uri, searched.version, most)
    if searched.is_large and now is None:
        return searched.find_at_most([wanted], most)
    if searched.bytes > searched.limits.searched_bytes:
        return None
    where, bounds = _among(wanted)
    if horizon is None or now is None:
        return read_if_few(searched.uri, searched.version, most, where=where, bounds=bounds)
    keep = horizon.retention.keep
    slack = MONTHS_DIFFER if keep.months else timedelta(0)
    type_ = arrow_schema(searched.uri, searched.version).field(END).type
    expired = pc.field(END) <= pa.scalar(keep.before(now) + slack, type_)
    if searched.is_large:
        return _found_and_expired(searched, most, wanted, where, expired)
    bounds = None if bounds is None else bounds | expired
    return read_if_few(searched.uri, searched.version, most, where=where | expired, bounds=bounds)


def _found_and_expired(
    searched: SearchedVersion,
    most: int,
    wanted: WantedValues,
    where: pc.Expression,
    expired: pc.Expression,
) -> pa.Table | None:
    """Return the wanted rows and those that expire, of which one column is read first."""
    at, found = (searched.uri, searched.version), searched.find_at_most([wanted], most)
    ends = None if found is None else read_if_few(*at, most, [END], bounds=expired)
    if found is None or ends is None or not ends.num_rows:
        return None if ends is None else found
    others = read_if_few(*at, most, where=expired & ~where, bounds=expired)
    return None if others is None else pa.concat_tables([found, others.cast(found.schema)])


def _made_of(
    part: CogroupState, input_id: str, groups: pa.Table, stored: pa.Schema
) -> list[WantedValues] | None:
    """Return the values that the groups' rows have in an input; None if not known."""
    streams: list[WantedValues] = []
    for _, stream in part.streams_of(input_id):
        columns = [e.plain_column for e in stream.key]
        named = zip(part.spec.key, columns, strict=True)
        plain = {k: c for k, c in named if c and c in stored.names}
        exact = {k: c for k, c in plain.items() if is_exact(stored.field(c).type)}
        if not exact:
            return None
        streams.append({c: _as(groups[k], stored.field(c).type) for k, c in exact.items()})
    return streams


def _as(values: pa.ChunkedArray, type_: pa.DataType) -> pa.Array:
    """Return the distinct values, cast to the type, without those that it can't hold."""
    distinct = pc.unique(values)
    try:
        return distinct.cast(type_)
    except pa.ArrowInvalid:
        fitting = [v for v in distinct if _fits(v, type_)]
        return pa.array([v.as_py() for v in fitting], distinct.type).cast(type_)


def _fits(value: pa.Scalar, type_: pa.DataType) -> bool:
    try:
        value.cast(type_)
    except pa.ArrowInvalid:
        return False
    return True


def _among(values: WantedValues) -> ReadCondition:
    each = {c: pc.field(c).isin(pc.unique(v)) for c, v in values.items()}
    # The statistics of files are exact for these types, whoever wrote them.
    exact = (pa.types.is_integer, pa.types.is_date)
    bounded = [each[c] for c, v in values.items() if any(test(v.type) for test in exact)]
    return _all(each.values()), _all(bounded) if bounded else None


def _all(conditions: Iterable[pc.Expression]) -> pc.Expression:
    return reduce(lambda a, b: a & b, conditions)


def _values(
    state: CogroupState, name: str, feeds: Mapping[str, pa.Table], stored: pa.DataType
) -> pa.ChunkedArray | None:
    """Return a key column's values in the feeds; None if it is not a plain column of each."""
    place, found = state.spec.key.index(name), [pa.array([], stored)]
    for input_id, feed in feeds.items():
        for _, stream in state.streams_of(input_id):
            column = stream.key[place].plain_column
            if column not in feed.column_names or not is_exact(feed[column].type):
                return None
            found.append(_as(feed[column], stored))
    return pa.chunked_array(found)


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
