"""A batch of a lookup: facts that changed, and facts whose dimension rows changed.

In large tables, few facts look up their dimension rows in this process, and few dimension rows
their facts. Spark scans for many: it skips files by literal bounds, and broadcasts what fits.

A fact is concerned if a changed dimension row is joined to it, or was.

Rows of dimensions, and of views over dimensions, are sent whole to every task, so that no fact is
shuffled for them. A dimension may take a share of the session's memory, estimated from its files.
Compressed columns grow about eightfold in a hash table, and the driver holds that twice while it
sends it out. A larger one is joined by shuffle, with the same result.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.changes import arrivals, balance, between, departures, diff, insertions, net, weigh
from sluice.declare.meaning import definition
from sluice.declare.settings import SparkSettings
from sluice.declare.table import Graph, Table
from sluice.delta.log.files import feed_size, table_size
from sluice.delta.log.position import REBUILD, Pin, Pins, Position, positions
from sluice.delta.reading.local import hand_as_stored, to_arrow, to_spark_types
from sluice.delta.reading.searching import SearchedVersion
from sluice.delta.reading.spark_reads import feed, snapshot
from sluice.delta.reading.wanted import WantedValues
from sluice.engine.batch import Batch, Reread, same_names, touched_by_feeds
from sluice.engine.batch_plan import BatchPlan, BatchResult, Context
from sluice.engine.operator import InputRows, Operator, names, same, union, unstored_rows, within
from sluice.engine.plan import Node
from sluice.engine.rows import Held, Here, InSpark, bounds_of, few_of
from sluice.engine.upkeep import Kept
from sluice.kinds.lookup import Join, Lookup
from sluice.kinds.lookup.operator import BUCKET, LookupJoin
from sluice.language.names import BATCH, CURRENT
from sluice.spark.session import STATIC_CONF


@dataclass(frozen=True)
class Facts:
    """Facts that a batch added and removed: both in this process if few, both in Spark if many.

    `are_there`: whether the view may have rows of the added facts.
    """

    added: Held
    removed: Held | None = None
    are_there: bool = False

    @property
    def shown(self) -> Held | None:
        """Those whose rows may be in the view; None if surely none of them is."""
        return self.added if self.are_there else self.removed


class LookupBatch(Batch[LookupJoin]):
    """One batch of a lookup."""

    @classmethod
    def joins(cls, context: Context, plan: BatchPlan) -> Mapping[str, str]:
        return {name: str(join) for name, join in _broadcasts(context, plan).items()}

    @classmethod
    def remarks(cls, context: Context, plan: BatchPlan) -> tuple[str, ...]:
        joins = _broadcasts(context, plan).items()
        return tuple(f"{name} is joined by {join}" for name, join in joins if not join.is_chosen)

    @classmethod
    def rereads(cls, context: Context, plan: BatchPlan) -> tuple[Reread, ...]:
        """Return the dimensions' rows of the facts; of earlier facts, those that a change concerns.

        Their rows in the view are not counted: they are at most as many as the facts.
        """
        join = plan.node.operator
        assert isinstance(join, LookupJoin)
        found, changed = dict[str, Reread](), plan.ranges.keys() - {join.facts.id}
        for one in join.spec.join:
            for table in context.graph.stored([join.dimension(one).id]):
                rows = Reread(table, (), touched_by_feeds)
                is_found = not changed and join.dimension(one).is_stored and table not in found
                found[table] = _rows_of_facts(join, one) if is_found else rows
        view = Reread(plan.node.id, same_names(join.group), touched_by_feeds, is_unique=True)
        if changed:
            view = replace(view, columns=())
            found[join.facts.id] = _concerned_facts(context, plan, changed)
        is_compared = changed or join.facts.id not in plan.growing
        return (*found.values(), *([view] if is_compared else []))

    def compute_changes(self) -> BatchResult:
        """Compare the rows of the concerned facts before and after."""
        facts = ConcernedFacts(self, self.operator)
        if facts.are_most:
            changelog = diff(
                self.current(), self.add_extra_columns(self.query()), self.operator.key
            )
            whole = table_size(facts.searched.uri, facts.searched.version)
            return BatchResult(changelog, rows=whole.rows)
        own, concerned = facts.own(), facts.find_concerned()
        parts = [part for part in (own, concerned) if part]
        rows = sum(part.added.count() for part in parts) if concerned else None
        return BatchResult(self._compare(parts), rows=rows)

    def recompute_table(self, rows: DataFrame) -> DataFrame:
        if self.operator.follows_references:
            return self.query()
        return recompute_by_batch(self, self.operator, rows)

    def references(self) -> InputRows:
        return references_at(self.session, self.context, self.operator, self.plan.looked_up)

    def add_extra_columns(self, rows: DataFrame) -> DataFrame:
        """Return the rows with the number of the batch, if the view keeps it."""
        if BATCH not in self.plan.node.ignored:
            return rows
        return rows.withColumn(BATCH, F.lit(self.number).cast("bigint"))

    def _compare(self, parts: list[Facts]) -> DataFrame:
        """Compute the view's changelog; old rows are not read if facts were only added."""
        operator, fact_id = self.operator, self.operator.facts.id
        added = union([operator.prepare(fact_id, part.added.rows) for part in parts])
        rows = added if len(parts) == 1 else added.dropDuplicates(list(operator.group))
        held = [part.added.table for part in parts if part.added.table is not None]
        few = pa.concat_tables(held, promote_options="default") if len(held) == len(parts) else None
        new = self.add_extra_columns(
            operator.combine({fact_id: rows}, self._match_dimensions(rows, few))
        )
        shown = [operator.prepare(fact_id, part.shown.rows) for part in parts if part.shown]
        if not shown:
            return insertions(new)
        touched = union([rows.select(*names(operator.group)) for rows in shown]).distinct()
        return diff(self._old_rows(touched, are_few=few is not None), new, operator.key)

    def _match_dimensions(self, rows: DataFrame, few: pa.Table | None) -> Mapping[str, DataFrame]:
        """Return the dimensions' rows; of large ones, only those that few facts may match."""
        found = {}
        large = self._large_dimensions() if few is not None else {}
        wanted = self._values_to_find(rows, few) if large and few is not None else {}
        for join, searched in large.items():
            some = searched.find_rows([wanted[join]])
            if some is not None:
                matched = hand_as_stored(self.session, searched.uri, searched.version, some)
                found[self.operator.dimension(join).id] = F.broadcast(matched)
        known = found.keys()
        context, pins = self.context, self.plan.looked_up
        others = references_at(self.session, context, self.operator, pins, known)
        return {**others, **found}

    def _large_dimensions(self) -> dict[Join, SearchedVersion]:
        lake, pins = self.context.lake, self.plan.looked_up
        stored = {
            join: SearchedVersion(
                lake.uri(table.id),
                pins[table.id].version,
                self.context.limits,
                self.operator.columns(table.id),
            )
            for join in self.operator.spec.join
            if (table := self.operator.dimension(join)).is_stored
        }
        return {join: searched for join, searched in stored.items() if searched.is_large}

    def _values_to_find(self, rows: DataFrame, few: pa.Table) -> dict[Join, WantedValues]:
        """Return the values that facts look up in each dimension.

        Values that are no plain columns take a small Spark job.
        """
        every = {fact for join in self.operator.spec.join for fact, _ in join.on}
        values = {e: few[e.plain_column] for e in every if e.plain_column in few.column_names}
        others = {f"_{n}": e for n, e in enumerate(every - values.keys())}
        if others:
            found = to_arrow(rows.select(*[F.expr(e.sql).alias(n) for n, e in others.items()]))
            values |= {e: found[name] for name, e in others.items()}
        return {
            join: {column: values[fact] for fact, column in join.on}
            for join in self.operator.spec.join
        }

    def _old_rows(self, touched: DataFrame, *, are_few: bool) -> DataFrame:
        """Return the view's rows of the touched groups."""
        before, group = self.plan.before, self.operator.group
        assert before is not None
        searched = SearchedVersion(self.plan.uri, before.version, self.context.limits)
        if are_few and searched.is_large:
            held = to_spark_types(to_arrow(touched))
            touched = self.session.createDataFrame(held, touched.schema)
            found = searched.find_rows([{name: held[name] for name in group}])
            if found is not None:
                rows = hand_as_stored(self.session, searched.uri, searched.version, found)
                return within(rows, touched, group)
        rows = self.current()
        if searched.is_large:
            rows = rows.where(self._lies_in(touched))
        return within(rows, touched, group)

    def _lies_in(self, touched: DataFrame) -> Column:
        """Return a condition that the view's rows of the touched groups meet."""
        group = tuple(c for c in self.operator.group if c != BUCKET)
        bounds = [bounds_of(touched, group)]
        if BUCKET in self.operator.group:
            bounds.append(few_of(touched, {BUCKET: F.col(BUCKET)}))
        known = [condition for condition in bounds if condition is not None]
        return reduce(Column.__and__, known, F.expr("true"))


def _rows_of_facts(operator: LookupJoin, join: Join) -> Reread:
    """Return what a batch reads of a dimension for changed facts."""
    dimension, columns = operator.dimension(join), {c: f"_{i}" for i, (_, c) in enumerate(join.on)}
    is_unique = {*dimension.key} <= columns.keys() and not operator.has_history(join)

    def values_of_facts(batch: LookupBatch) -> DataFrame:
        facts = batch.changes()[operator.facts.id]
        values = [F.expr(fact.sql).alias(f"_{i}") for i, (fact, _) in enumerate(join.on)]
        return facts.select(*values).dropna().distinct()

    return Reread(dimension.id, [columns], values_of_facts, is_unique=is_unique)


def _concerned_facts(context: Context, plan: BatchPlan, changed: Collection[str]) -> Reread:
    """Return what a batch reads of the facts for changed dimension rows.

    It is unknown if several joins are concerned, or if so much has changed that all may be read.
    """
    operator = plan.node.operator
    assert isinstance(operator, LookupJoin)
    unknown = Reread(operator.facts.id, (), touched_by_feeds)
    stored = context.graph.stored
    joins = [j for j in operator.spec.join if {*stored([operator.dimension(j).id])} & {*changed}]
    join, dimension = joins[0], operator.dimension(joins[0])
    columns = [fact.plain_column for fact, _ in join.on]
    is_known = len(joins) == 1 and dimension.is_stored and all(columns)
    if not is_known or has_mostly_changed(context, plan, dimension.id):
        return unknown
    named = {column: f"_d{i}" for i, column in enumerate(columns) if column}

    def changed_keys(batch: LookupBatch) -> DataFrame:
        return batch.operator.changed_keys(batch.changes())[join]

    return replace(unknown, columns=[named], by=changed_keys)


@dataclass(frozen=True)
class Broadcast:
    """Size of one dimension's files, and the size up to which one is broadcast."""

    bytes: int
    limit: int

    @property
    def is_chosen(self) -> bool:
        return self.bytes <= self.limit

    def __str__(self) -> str:
        if self.is_chosen:
            return "broadcast"
        return f"shuffle: {_mb(self.bytes)} MB of files, more than the {_mb(self.limit)} MB for it"


def _broadcasts(context: Context, plan: BatchPlan) -> dict[str, Broadcast]:
    pins = plan.looked_up
    return {i: broadcast_of(context, i, pins) for i in plan.node.operator.references}


def recompute_by_batch(
    batch: Batch[LookupJoin], operator: LookupJoin, rows: DataFrame
) -> DataFrame:
    """Join each fact to the dimensions of its batch.

    The batch of a fact without a row is recorded nowhere. Such a fact is missing only if it finds
    its dimension rows at the versions of every batch.
    """
    facts = batch.snapshots()[operator.facts.id]
    prepared = operator.prepare(operator.facts.id, facts)
    joined = names(operator.key)
    absent = prepared.alias("p").join(
        rows.select(*joined).alias("r"), same("p", "r", operator.key), "left_anti"
    )
    present, missing = [], []
    for references, batches in _batches_by_references(batch.plan.uri).items():
        at = replace(batch.plan, references=dict(references)).looked_up
        dimensions = references_at(batch.session, batch.context, operator, at)
        number = F.col(BATCH)  # of a rebuild, also rows that were right already
        own = [number <= b.batch if b.kind == REBUILD else number == b.batch for b in batches]
        mine = rows.where(balance(Column.__or__, own)).select(*joined)
        found = within(prepared, mine, operator.key)
        present.append(operator.combine({operator.facts.id: found}, dimensions))
        missing.append(operator.combine({operator.facts.id: absent}, dimensions))
    every = balance(DataFrame.unionByName, [part.select(*joined) for part in missing])
    counted = every.groupBy(*joined).agg(F.count(F.lit(1)).alias("_n"))
    always = counted.where(F.col("_n") == len(missing))  # these keys are in each part
    expected = balance(DataFrame.unionByName, [*present, within(missing[0], always, operator.key)])
    return expected.withColumn(BATCH, F.lit(None).cast("bigint"))


def _batches_by_references(uri: str) -> dict[tuple[tuple[str, Pin], ...], list[Position]]:
    """Group the batches from the last rebuild on by their references.

    A rebuild has joined all rows of earlier batches again.
    """
    found: dict[tuple[tuple[str, Pin], ...], list[Position]] = defaultdict(list)
    for _, position in positions(uri):
        if position.references:
            found[tuple(sorted(position.references.items(), key=lambda i: i[0]))].append(position)
        if position.kind == REBUILD:
            break
    return found


def nodes(table: Table, graph: Graph) -> tuple[Node, ...]:
    """Return the view itself, in buckets by its join columns if dimensions' changes correct it."""
    spec, tables = table.spec, graph.tables
    assert isinstance(spec, Lookup)
    dimensions = {j.dimension: tables[table.reference(j.dimension)] for j in spec.join}
    join = LookupJoin(table, tables[table.reference(spec.from_)], dimensions)
    ignored = () if join.follows_references else (BATCH,)
    filed = (BUCKET,) if join.follows_references else ()
    made = definition(table)
    return (
        Node(table.id, table, join, made, LookupBatch, Kept, partition_by=filed, ignored=ignored),
    )


CHANGED_SHARE = 0.25  # of a dimension's rows; if more have changed, all facts are joined again


def has_mostly_changed(context: Context, plan: BatchPlan, dimension: str) -> bool:
    """True if so much of a stored dimension changed that joining all facts again is faster.

    An updated row is in the feed twice.
    """
    if dimension not in plan.ranges:
        return False
    uri, limits = context.lake.uri(dimension), context.limits
    changed = feed_size(uri, *plan.ranges[dimension])
    whole = table_size(uri, plan.pins[dimension].version)
    if changed.rows is not None and whole.rows is not None:
        return changed.rows > 2 * CHANGED_SHARE * whole.rows
    few = max(CHANGED_SHARE * whole.bytes, limits.few_tasks_bytes)
    return changed.bytes > few


@dataclass(frozen=True)
class ConcernedFacts:
    """The facts of one batch."""

    batch: Batch[LookupJoin]
    join: LookupJoin

    @property
    def are_most(self) -> bool:
        """True if the table is large, and so much of a dimension changed, that all are joined."""
        context, plan = self.batch.context, self.batch.plan
        return self.searched.is_large and any(
            has_mostly_changed(context, plan, table_id)
            for table_id in context.graph.stored(self.join.references)
        )

    @property
    def _id(self) -> str:
        return self.join.facts.id

    @cached_property
    def searched(self) -> SearchedVersion:
        """The facts' table at its pinned version."""
        uri, version = self.batch.context.lake.uri(self._id), self.batch.plan.pins[self._id].version
        return SearchedVersion(uri, version, self.batch.context.limits, self.join.columns(self._id))

    def own(self) -> Facts | None:
        """Return the facts that were added and those that were removed; None if none were."""
        if self._id not in self.batch.plan.ranges:
            return None
        change = self._change(self._id)
        hold = Here.of if self._are_few() else InSpark
        if self._id in self.batch.plan.growing:
            return Facts(hold(arrivals(change)))
        change = self.batch.hold(change)
        return Facts(hold(arrivals(change)), hold(departures(change)))

    def _are_few(self) -> bool:
        uri, limits = self.batch.context.lake.uri(self._id), self.batch.context.limits
        size = feed_size(uri, *self.batch.plan.ranges[self._id])
        if size.rows is None:
            return size.bytes <= limits.few_tasks_bytes
        return size.rows <= limits.handed_rows

    def _change(self, table_id: str) -> DataFrame:
        """Return the net change of a table; one that has only grown needs no netting."""
        uri, columns = self.batch.context.lake.uri(table_id), self.join.columns(table_id)
        limits = self.batch.context.limits
        rows = feed(self.batch.session, uri, *self.batch.plan.ranges[table_id], limits)
        return (weigh if table_id in self.batch.plan.growing else net)(rows, columns)

    def find_concerned(self) -> Facts | None:
        """Return the current facts that a changed dimension row is joined to, or was."""
        if not self.join.follows_references:
            return None
        keys = self.join.changed_keys(self._reference_changes())
        if not keys:
            return None
        if self.searched.is_large and (found := self._search(keys)):
            return found
        rows = self.batch.snapshots()[self._id]
        bounds = self._bounds(keys) if self.searched.is_large else {}
        facts = self.batch.hold(self.join.find_concerned(rows, keys, bounds))
        return Facts(InSpark(facts), are_there=True)

    def _search(self, keys: Mapping[Join, DataFrame]) -> Facts | None:
        """Find facts in this process, by their plain columns; None if there are too many."""
        most, wanted = self.batch.context.limits.handed_rows, []
        for join, rows in keys.items():
            columns = [fact.plain_column for fact, _ in join.on]
            if not {*columns} <= {*self.searched.columns}:
                return None
            few = to_arrow(rows.limit(most + 1))
            if few.num_rows > most:
                return None
            wanted.append(dict(zip(map(str, columns), few.columns, strict=True)))
        found = self.searched.find_rows(wanted)
        if found is None:
            return None
        return Facts(Here(found, self.batch.session, self.searched.types), are_there=True)

    def _bounds(self, keys: Mapping[Join, DataFrame]) -> dict[Join, Column]:
        """Return conditions that facts must meet to join on these keys, if the keys are few."""
        found = {}
        for join, rows in keys.items():
            bounds = few_of(rows, {n: F.col(n) for n in rows.columns})
            if bounds is not None:
                found[join] = bounds
        return found

    def _reference_changes(self) -> dict[str, DataFrame]:
        """Return the net changes of the dimensions.

        Views over dimensions have no feed, so their two states are compared.
        """
        found = {}
        for reference in self.join.references:
            stored = self.batch.context.graph.stored([reference])
            if reference in self.batch.plan.ranges:
                found[reference] = self._change(reference)
            elif self.batch.plan.ranges.keys() & set(stored):
                old, new = (
                    dimension_at(self.batch.session, self.batch.context, reference, pins)
                    for pins in (self.batch.plan.recorded, self.batch.plan.pins)
                )
                found[reference] = between(old, new, self.join.columns(reference))
        return found


BROADCAST_SHARE = 0.5  # of Spark's memory that a dimension may fill in every task
IN_MEMORY = 8 * 2  # bytes of memory per byte of files
SPARKS_OWN = "1g"  # if nothing else is set
UNITS = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def references_at(
    session: SparkSession,
    context: Context,
    operator: Operator,
    pins: Pins,
    known: Collection[str] = (),
) -> dict[str, DataFrame]:
    """Return all references but `known`, stored or not, at their pinned versions."""
    found = {}
    for table_id in (i for i in operator.references if i not in known):
        rows = dimension_at(session, context, table_id, pins)
        used = rows.select(*names(operator.columns(table_id)))
        is_broadcast = broadcast_of(context, table_id, pins).is_chosen
        found[table_id] = F.broadcast(used) if is_broadcast else used
    return found


def dimension_at(session: SparkSession, context: Context, table_id: str, pins: Pins) -> DataFrame:
    """Return a dimension, or a view over dimensions, at pinned versions."""
    table = context.graph.tables[table_id]
    if table.is_stored:
        uri, version = context.lake.uri(table_id), pins[table_id].version
        return snapshot(session, uri, version, context.limits)
    inputs = {i: dimension_at(session, context, i, pins) for i in table.inputs}
    for name, rows in inputs.items():
        if context.graph.tables[name].spec.has_history:
            inputs[name] = rows.where(CURRENT)
    return unstored_rows(table, inputs)


def broadcast_of(context: Context, table_id: str, pins: Pins) -> Broadcast:
    """Decide how a dimension, or a view over dimensions, is joined. Reads logs only."""
    stored = context.graph.stored([table_id])
    size = sum(table_size(context.lake.uri(i), pins[i].version).bytes for i in stored)
    return Broadcast(size, int(memory_bytes(context.settings) * BROADCAST_SHARE / IN_MEMORY))


def memory_bytes(settings: SparkSettings) -> int:
    """Return the driver's memory, or an executor's if that is less."""
    conf = {**STATIC_CONF, **settings.conf}
    driver = _bytes(conf.get("spark.driver.memory", SPARKS_OWN))
    if settings.master.startswith("local"):
        return driver
    return min(driver, _bytes(conf.get("spark.executor.memory", SPARKS_OWN)))


def _bytes(text: str) -> int:
    found = re.fullmatch(r"(\d+)([kmgt]?)b?", text.strip().lower())
    return int(found[1]) * UNITS.get(found[2] or "m", 1) if found else _bytes(SPARKS_OWN)


def _mb(size: int) -> str:
    return f"{size / 1e6:,.0f}"
