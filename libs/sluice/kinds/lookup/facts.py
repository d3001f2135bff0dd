"""Facts in a batch of a lookup: those added or removed, and those concerned.

A fact is concerned if a changed dimension row is joined to it, or was.

Rows of dimensions, and of views over dimensions, are sent whole to every task, so that no fact is
shuffled for them. A dimension may take a share of the session's memory, estimated from its files.
Compressed columns grow about eightfold in a hash table, and the driver holds that twice while it
sends it out. A larger one is joined by shuffle, with the same result.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.changes import arrivals, between, departures, net, weigh
from sluice.declare.settings import SparkSettings
from sluice.delta.log.files import feed_size, table_size
from sluice.delta.log.position import Pins
from sluice.delta.reading.local import to_arrow
from sluice.delta.reading.searched_version import SearchedVersion
from sluice.delta.reading.spark_reads import feed, snapshot
from sluice.engine.computing.batch import Batch
from sluice.engine.computing.batch_plan import BatchPlan
from sluice.engine.computing.rows import Held, Here, InSpark, few_of
from sluice.engine.context import Context
from sluice.engine.query.operator import CURRENT, Operator, names, unstored_rows
from sluice.kinds.lookup.operator import LookupJoin
from sluice.kinds.lookup.spec import Join
from sluice.spark.session import STATIC_CONF

CHANGED_SHARE = 0.25  # of a dimension's rows; if more have changed, all facts are joined again


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
        found = self.searched.rows(wanted)
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
