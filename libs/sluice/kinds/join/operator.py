"""Join: two tables on equal values, as SQL joins them; null equals nothing.

A batch computes touched values of both sides, without the rows that have expired.

Both sides drive the result. The groups are the values that rows of either side have or had. Both
sides' rows of a touched group are joined again at the batch's versions, and the difference is the
change. So both sides may change in one batch. If only one has, its changed rows are joined, before
and after, with the other side's, as long as no other row depends on them.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from functools import reduce

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from sluice.changes import arrivals, departures, diff, insertions
from sluice.declare.meaning import definition
from sluice.declare.table import Graph, Table
from sluice.delta.log.files import FeedSize, table_size
from sluice.delta.places.lake_layout import LakeLayout
from sluice.delta.reading import spark_reads as delta
from sluice.delta.writing.own_commits import Committed
from sluice.engine import windows
from sluice.engine.batch import Batch, Reread, snapshot_at, touched_by_feeds
from sluice.engine.batch_plan import BatchPlan, BatchResult, Context, Strategy, Way
from sluice.engine.operator import (
    InputRows,
    Operator,
    Retention,
    names,
    passed_on,
    same,
    union,
    within,
)
from sluice.engine.plan import Node
from sluice.engine.rows import has_bounds, picked_of
from sluice.engine.tracing import Groups, Unmatched
from sluice.engine.upkeep import Kept
from sluice.kinds.join import END, OWN_END, PRESENT, EquiJoin, ResolvedJoin, Side
from sluice.language.names import CHANGE_TYPE

SIDE = "_sluice_side"
FIRST = datetime(1, 1, 1, tzinfo=UTC)
HOW = {"semi": "left_semi", "anti": "left_anti", "full": "full_outer"}


class JoinedRows(Operator):
    """Rows of a join, by its type: pairs, unmatched rows, or one side's rows with (no) match."""

    def __init__(self, view: Table, left: Table, right: Table):
        assert isinstance(view.spec, EquiJoin)
        self.view, self.spec = view, view.spec
        self.shape = ResolvedJoin(view.spec, left, right)
        self.inputs = view.inputs
        self.group, self.key = self.shape.on, view.key
        if self.spec.retention:
            times = {t.id: self._times(t.id) for t in (left, right)}
            self.retention = Retention(self.spec.retention, times, end=END, first_end=OWN_END)

    def columns(self, name: str) -> tuple[str, ...]:
        sides = [(side, table) for _, side, table in self.shape.both if table.id == name]
        return tuple(sorted(set().union(*(self.shape.reads(*side) for side in sides))))

    def map_to_group(self, name: str) -> Sequence[Mapping[str, str]]:
        of_sides = (nth for nth, (_, _, table) in enumerate(self.shape.both) if table.id == name)
        found = [dict(self._plain(nth)) for nth in of_sides]
        return found if all(found) else ()

    def follows_alone(self, name: str) -> bool:
        """True if it suffices to join changes of this input with the rows of the other.

        A row of the other side must not change by whether it has a match.
        """
        sides = [which for which, _, table in self.shape.both if table.id == name]
        kept = {"inner": ("left", "right"), "right": ("right",), "full": ()}
        is_free = len(sides) == 1 and sides[0] in kept.get(self.spec.type, ("left",))
        return is_free and self.retention is None

    def prepare(self, name: str, rows: DataFrame) -> DataFrame:
        """Return rows with the values to share, their side, and a struct of their columns.

        A row without an event time, if times are compared, takes no part.
        """
        more = names(tuple(passed_on(rows, self.columns(name))))
        found = []
        for nth, (which, side, table) in enumerate(self.shape.both):
            if table.id == name:
                own = F.struct(*names(tuple(sorted(self.shape.reads(side, table)))))
                timed = rows.where(F.col(f"`{side.time}`").isNotNull()) if side.time else rows
                whole = timed.select(own.alias(side.as_), *more)
                on = [self._share(i, pair[nth].sql) for i, pair in enumerate(self.shape.pairs)]
                found.append(whole.select("*", *on, F.lit(which).alias(SIDE), *self._until(side)))
        return union(found)

    def combine(self, prepared: InputRows, references: InputRows) -> DataFrame:
        left, right = (self._side(prepared, which) for which in ("left", "right"))
        joined = left.join(
            self.opposite(right), self.pair_condition(), HOW.get(self.spec.type, self.spec.type)
        )
        return joined.select(*[column.alias(name) for name, column in self._outputs().items()])

    def opposite(self, right: DataFrame) -> DataFrame:
        """Return prepared rows of the right side, as `pair_condition` calls their columns."""
        return right.withColumnsRenamed({c: f"{c}r" for c in self.group})

    def pair_condition(self) -> Column:
        """Return the condition that a row of the left and one of the right side are a pair."""
        met = [F.col(c) == F.col(f"{c}r") for c in self.group]
        met += [*self._near(), *([F.expr(self.spec.where.sql)] if self.spec.where else [])]
        return reduce(Column.__and__, met)

    def _plain(self, nth: int) -> Iterator[tuple[str, str]]:
        """Yield (column, column of the group) for a side's plain columns."""
        for pair, on in zip(self.shape.pairs, self.group, strict=True):
            if column := pair[nth].plain_column:
                yield column.rpartition(".")[2], on

    def searched_columns(self, name: str) -> tuple[str, ...]:
        """Return the columns whose statistics can exclude files of an input."""
        found = [
            column
            for columns in self.map_to_group(name)
            for column, on in columns.items()
            if has_bounds(self.view.hidden[on])
        ]
        return tuple(dict.fromkeys([*found, *(self._times(name) if self.retention else ())]))

    def keep_living(self, rows: InputRows, horizon: datetime | None) -> InputRows:
        """Drop input rows without a live result, by literals that skip files."""
        since = self._since(horizon) if horizon else None
        if since is None:
            return rows
        return {name: r.where(self._is_later(name, since)) for name, r in rows.items()}

    def _since(self, horizon: datetime) -> datetime | None:
        """Return a time by which all rows have expired; None if nothing expires."""
        keep, within = self.spec.retention, self.spec.within
        if keep is None or within is None:
            return None
        length = keep.longest + within.longest
        return horizon - length if length < horizon - FIRST else None

    def _is_later(self, name: str, since: datetime) -> Column:
        times = (F.col(f"`{time}`").cast("timestamp") for time in self._times(name))
        return reduce(Column.__or__, [time > F.lit(since) for time in times])

    def _times(self, name: str) -> tuple[str, ...]:
        times = (side.time for _, side, table in self.shape.both if table.id == name)
        return tuple(dict.fromkeys(time for time in times if time))

    def _until(self, side: Side) -> list[Column]:
        """Return the last time a matching row of the other side can have, and the row's own."""
        if self.spec.within is None or self.spec.retention is None:
            return []
        own = _time(side)
        return [windows.plus(own, self.spec.within).alias(END), own.alias(OWN_END)]

    def _near(self) -> list[Column]:
        """Return the conditions that two event times are close to each other."""
        if self.spec.within is None:
            return []
        left, right = _time(self.spec.left), _time(self.spec.right)
        return [
            windows.plus(one, self.spec.within) >= other
            for one, other in ((left, right), (right, left))
        ]

    def _end(self) -> dict[str, Column]:
        """Return the later of a row's event times, if rows expire by it."""
        if self.spec.retention is None:
            return {}
        times = [_time(side) for _, side, _ in self.shape.sides]
        return {END: F.greatest(*times) if len(times) > 1 else times[0]}

    def _side(self, prepared: InputRows, which: str) -> DataFrame:
        ((_, side, table),) = (s for s in self.shape.both if s[0] == which)
        rows = prepared[table.id].where(F.col(SIDE) == which)
        return rows.select(side.as_, *self.group)

    def _share(self, i: int, sql: str) -> Column:
        name = self.group[i]
        type_ = self.view.hidden[name]
        value = F.expr(sql)
        return (value.cast(type_) if type_ else value).alias(name)

    def _outputs(self) -> dict[str, Column]:
        shown = {name: F.expr(e.sql) for name, e in self.shape.shown.items()}
        aliases = {which: side.as_ for which, side, _ in self.shape.both}
        keys = {
            name: F.col(aliases[which]).getField(column)
            for name, (which, column) in self.shape.keys.items()
            if name not in shown
        }
        has_right = self.spec.type in ("right", "full")
        on = {
            c: F.coalesce(F.col(c), F.col(f"{c}r")) if has_right else F.col(c) for c in self.group
        }
        return {**shown, **keys, **on, **self._present(aliases), **self._end()}

    def _present(self, aliases: Mapping[str, str]) -> dict[str, Column]:
        if self.spec.type != "full":
            return {}
        left, right = (F.col(aliases[which]).isNotNull() for which in ("left", "right"))
        return {PRESENT: left.cast("int") + right.cast("int") * 2}


def _time(side: Side) -> Column:
    return F.col(f"`{side.as_}`").getField(str(side.time)).cast("timestamp")


def trace_rows(operator: Operator, groups: Groups) -> InputRows:
    """Return the row of each visible side, and the rows that make a semi join keep it."""
    assert isinstance(operator, JoinedRows)
    found = dict[str, list[DataFrame]]()
    for which, side, table in operator.shape.both:
        own = groups.prepared[table.id].where(F.col(SIDE) == which)
        if (which, side, table) in operator.shape.sides:
            kept = _rows_of_side(operator, own, which, side, groups.rows)
        elif operator.spec.type == "semi":
            first, left, of = operator.shape.both[0]
            rows = groups.prepared[of.id].where(F.col(SIDE) == first)
            rows = _rows_of_side(operator, rows, first, left, groups.rows)
            rows = rows.select(left.as_, *operator.group)
            kept = operator.opposite(own).join(rows, operator.pair_condition(), "left_semi")
        else:
            continue
        found.setdefault(table.id, []).append(kept)
    return {name: union(some) for name, some in found.items()}


def _rows_of_side(
    operator: JoinedRows, own: DataFrame, which: str, side: Side, rows: DataFrame
) -> DataFrame:
    """Return a side's rows that have the keys of `rows`; rows without that side have only nulls."""
    keys = {c: out for out, (of, c) in operator.shape.keys.items() if of == which}
    given = [F.col(f"`{out}`").isNotNull() for out in keys.values()]
    present = rows.where(reduce(Column.__or__, given)) if keys else rows
    met = same("_in", "_of", operator.group)
    for column, out in keys.items():
        value = F.col(f"_in.`{side.as_}`").getField(column)
        met &= value.eqNullSafe(F.col(f"_of.`{out}`"))
    return own.alias("_in").join(present.alias("_of"), met, "left_semi")


def find_unmatched(
    operator: Operator, wanted: InputRows, prepared: InputRows, references: InputRows
) -> Iterator[Unmatched]:
    """Yield the rows of one side that the other side's wanted rows need, or must not match."""
    assert isinstance(operator, JoinedRows)
    spec, (left, right) = operator.spec, operator.shape.both
    for nth, ((which, side, table), (other, _, there)) in enumerate(((left, right), (right, left))):
        if table.id not in wanted:
            continue
        own = wanted[table.id].where(F.col(SIDE) == which)
        if spec.type == "anti" and which == "left":
            theirs = operator.opposite(prepared[there.id].where(F.col(SIDE) == other))
            mine = own.select(side.as_, *operator.group)
            met = theirs.join(mine, operator.pair_condition(), "left_semi").select(
                f"{spec.right.as_}.*"
            )
            yield Unmatched(there.id, _equality_text(operator), met, is_excluded=True)
        else:
            yield Unmatched(
                there.id, _equality_text(operator), _shared_values(operator, own, there.id, nth)
            )


def _shared_values(operator: JoinedRows, own: DataFrame, there: str, nth: int) -> DataFrame:
    """Return the shared values of rows, under the names of the other side's columns."""
    known = operator.map_to_group(there)
    columns = known[-1 if nth == 0 else 0] if known else {}
    names = {on: column for column, on in columns.items()}
    return own.select(*[F.col(on).alias(names.get(on, on)) for on in operator.group]).distinct()


def _equality_text(operator: JoinedRows) -> str:
    pairs = zip(operator.shape.on_as_written, operator.shape.pairs, strict=True)
    found = " and ".join(
        text if text == pair[1].text else f"{text} = {pair[1].text}" for text, pair in pairs
    )
    return f"on {found}"


COUNT = "_count"
MULTIPLIED_ROWS = 1_000_000  # that one value gives in one batch; of more, the report warns
NAMED = 3  # values that a report names


class JoinStrategy(StrEnum):
    """Strategies of a join, in addition to those of all kinds."""

    ONE_SIDE = "one side"  # changed rows of one side, with the rows that they match


class JoinBatch(Batch[JoinedRows]):
    """One batch of a join."""

    @classmethod
    def way(cls, plan: BatchPlan, lake: LakeLayout) -> Way:
        join = plan.node.operator
        assert isinstance(join, JoinedRows)
        changed = [i for i in plan.pins if i in plan.ranges or i not in plan.recorded]
        if len(changed) == 1 and join.follows_alone(changed[0]):
            return JoinStrategy.ONE_SIDE, f"only {changed[0]} has changed: its rows are joined"
        return super().way(plan, lake)

    @classmethod
    def rereads(cls, context: Context, plan: BatchPlan) -> tuple[Reread, ...]:
        """Return the other side's rows if one has changed; else all touched groups."""
        if plan.strategy != JoinStrategy.ONE_SIDE:
            return super().rereads(context, plan)
        join = plan.node.operator
        others = (i for i in join.inputs if i in plan.recorded and i not in plan.ranges)
        return tuple(Reread(i, join.map_to_group(i), touched_by_feeds) for i in others)

    def compute_changes(self) -> BatchResult:
        if self.plan.strategy != JoinStrategy.ONE_SIDE:
            return super().compute_changes()
        changes = self.changes()
        ((changed, rows),) = changes.items()
        other = self._match(changed, self.find_touched(changes, {}))
        new = self._join_changes(changed, arrivals(rows), other)
        if changed in self.plan.growing:
            return BatchResult(insertions(new))
        old = self._join_changes(changed, departures(rows), other)
        return BatchResult(diff(old, new, self.operator.key, ignore=self.plan.node.ignored))

    def _join_changes(self, changed: str, rows: DataFrame, other: InputRows) -> DataFrame:
        prepared = {changed: self.operator.prepare(changed, rows), **other}
        return self.add_extra_columns(self.operator.combine(prepared, {}))

    def _match(self, changed: str, touched: DataFrame) -> InputRows:
        """Return the rows of the side that did not change, for the touched values."""
        join = self.operator
        (other,) = (i for i in join.inputs if i != changed)
        found = picked_of(self.context, self.plan, touched, join, other)
        bounds = self.bounds(touched) if found is None else None
        if found is None:
            pin = self.plan.pins[other]
            found = snapshot_at(self.session, self.context, join, other, pin)
        rows = join.prepare(other, found)
        near = rows if bounds is None else rows.where(bounds)
        return {other: within(near, touched, join.group)}

    @classmethod
    def remarks(cls, context: Context, plan: BatchPlan) -> tuple[str, ...]:
        """Report which files of the inputs the next batch opens."""
        if not plan.is_pending or plan.strategy == Strategy.BUILD:
            return ()
        join = plan.node.operator
        assert isinstance(join, JoinedRows)
        is_one_sided = plan.strategy == JoinStrategy.ONE_SIDE
        read = [i for i in plan.pins if not (is_one_sided and i in plan.ranges)]
        sizes = {i: table_size(context.lake.uri(i), plan.pins[i].version) for i in read}
        is_large = max(size.bytes for size in sizes.values()) > context.limits.read_here_bytes
        return tuple(
            _describe(i, size, join.searched_columns(i), is_large=is_large)
            for i, size in sizes.items()
        )

    def warnings_of(self, done: Committed) -> tuple[str, ...]:
        """Name values of `on` that multiplied rows. Reads the commit's feed only if it is large."""
        if done.changed <= MULTIPLIED_ROWS or not self.operator.spec.shows_right:
            return ()
        span, limits = (done.version - 1, done.version), self.context.limits
        feed = delta.feed(self.session, self.plan.uri, *span, limits)
        written = feed.where(f"{CHANGE_TYPE} != 'update_preimage'").dropna(
            subset=[*self.operator.group]
        )
        counts = written.groupBy(*names(self.operator.group)).agg(F.count(F.lit(1)).alias(COUNT))
        largest = counts.where(F.col(COUNT) > MULTIPLIED_ROWS).orderBy(F.desc(COUNT)).limit(NAMED)
        return tuple(map(self._warning, largest.collect()))

    def _warning(self, found: Row) -> str:
        pairs = zip(self.operator.shape.on_as_written, found[:-1], strict=True)
        value = " and ".join(f"{text} = {value}" for text, value in pairs)
        return (
            f"{self.plan.node.id}: {found[COUNT]:,} of the rows that this batch wrote have the "
            f"same value, {value}; each change to it joins all of these rows again"
        )

    def pick_needed(self, snapshots: InputRows) -> InputRows:
        return self.operator.keep_living(snapshots, self.horizon.now if self.horizon else None)


def _describe(name: str, size: FeedSize, searched: Sequence[str], *, is_large: bool) -> str:
    """Return the part of an input that is read, as text."""
    whole = f"{size.bytes / 1e6:,.1f} MB in {size.files:,} file(s)"
    if not is_large:
        return f"{name} is read whole ({whole})"
    if not searched:
        return (
            f"{name} is read whole ({whole}): its files have no statistics for the columns of `on`"
        )
    columns = " and ".join(searched)
    return f"of {name} ({whole}), only files that may contain touched {columns} are read"


def nodes(table: Table, graph: Graph) -> tuple[Node, ...]:
    """Return the view itself."""
    spec = table.spec
    assert isinstance(spec, EquiJoin)
    left, right = (graph.tables[table.reference(s.table)] for s in (spec.left, spec.right))
    return (
        Node(table.id, table, JoinedRows(table, left, right), definition(table), JoinBatch, Kept),
    )
