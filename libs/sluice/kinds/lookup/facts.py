"""Facts in a batch of a lookup: those added or removed, and those concerned.

A fact is concerned if a changed dimension row is joined to it, or was.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from sluice.changes.diff import WEIGHT, arrivals, between, net, weigh
from sluice.delta.log.files import feed_size, table_size
from sluice.delta.reading.local import has_local_feed, plain, read_feed, to_arrow
from sluice.delta.reading.searched_version import SearchedVersion
from sluice.delta.reading.spark_reads import feed
from sluice.engine.computing.batch import Batch
from sluice.engine.computing.rows import Held, Here, InSpark, few_of
from sluice.kinds.lookup.few import arrow_net
from sluice.kinds.lookup.operator import LookupJoin
from sluice.kinds.lookup.references import dimension_at
from sluice.kinds.lookup.spec import Join


@dataclass(frozen=True)
class Facts:
    """Facts that a batch added and removed: both in this process if few, both in Spark if many.

    `are_there`: whether the view may have rows of the added facts.
    """

    added: Held
    removed: Held | None = None
    are_there: bool = False

    @property
    def are_few(self) -> bool:
        """True if they are in this process."""
        return self.added.table is not None

    @property
    def shown(self) -> Held | None:
        """Those whose rows may be in the view; None if surely none of them is."""
        return self.added if self.are_there else self.removed


def merge_facts(parts: Sequence[Facts], key: Sequence[str]) -> tuple[pa.Table, pa.Table | None]:
    """Return the added facts of all parts, few of them, each once; and the removed ones."""
    added = pa.concat_tables([part.added.table for part in parts], promote_options="default")
    if len(parts) > 1:
        numbers = added.select(list(key)).append_column("_n", pa.array(np.arange(added.num_rows)))
        added = added.take(numbers.group_by(list(key)).aggregate([("_n", "min")])["_n_min"])
    gone = [part.removed.table for part in parts if part.removed is not None]
    return added, pa.concat_tables(gone, promote_options="default") if gone else None


@dataclass(frozen=True)
class ConcernedFacts:
    """The facts of one batch."""

    batch: Batch[LookupJoin]
    join: LookupJoin

    def are_most(self, keys: Mapping[Join, pa.Table] | None) -> bool:
        """True if so much of a dimension changed that joining all facts again is faster."""
        return self.searched.is_large and any(
            self._has_mostly_changed(table_id, None if keys is None else keys.get(join))
            for join in self.join.spec.join
            for table_id in self.batch.context.graph.stored([self.join.dimension(join).id])
        )

    def _has_mostly_changed(self, dimension: str, keys: pa.Table | None) -> bool:
        if dimension not in self.batch.plan.ranges:
            return False
        uri = self.batch.context.lake.uri(dimension)
        whole = table_size(uri, self.batch.plan.pins[dimension].version)
        limits = self.batch.context.limits
        if keys is not None and whole.rows is not None:
            return int(keys.num_rows) > limits.joined_changed_share * whole.rows
        changed = feed_size(uri, *self.batch.plan.ranges[dimension]).bytes
        few = max(limits.joined_changed_share * whole.bytes, limits.joined_uncounted_bytes)
        return changed > few

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
        range_ = self.batch.plan.ranges[self._id]
        are_few, have_grown = self._are_few(self._id), self._id in self.batch.plan.growing
        if are_few and has_local_feed(self.searched.uri, range_[1]):
            rows = read_feed(self.searched.uri, *range_)
            if have_grown:
                return Facts(self._here(rows.select(self.searched.columns)))
            if (changes := arrow_net(rows, self.searched.columns)) is not None:
                return self._split(changes)
        own = self._change(self._id)
        if have_grown:
            return Facts(InSpark(arrivals(own)))
        if are_few:
            return self._split(plain(to_arrow(own)))
        own = self.batch.hold(own)
        return Facts(InSpark(arrivals(own)), InSpark(own.where(F.col(WEIGHT) < 0).drop(WEIGHT)))

    def _split(self, changes: pa.Table) -> Facts:
        added, removed = (
            self._here(changes.filter(sign).drop_columns([WEIGHT]))
            for sign in (pc.field(WEIGHT) > 0, pc.field(WEIGHT) < 0)
        )
        return Facts(added, removed)

    def _here(self, rows: pa.Table) -> Here:
        return Here(rows, self.batch.session, self.searched.types)

    def _are_few(self, table_id: str) -> bool:
        size = feed_size(self.batch.context.lake.uri(table_id), *self.batch.plan.ranges[table_id])
        limits = self.batch.context.limits
        if size.rows is None:
            return size.bytes <= limits.joined_uncounted_bytes
        return size.rows <= limits.matched_rows

    def _change(self, table_id: str) -> DataFrame:
        """Return the net change of a table; one that has only grown needs no netting."""
        uri, columns = self.batch.context.lake.uri(table_id), self.join.columns(table_id)
        limits = self.batch.context.limits
        rows = feed(self.batch.session, uri, *self.batch.plan.ranges[table_id], limits)
        return (weigh if table_id in self.batch.plan.growing else net)(rows, columns)

    def concerned(self, here: Mapping[Join, pa.Table] | None) -> Facts | None:
        """Return the current facts that a changed dimension row is joined to, or was."""
        if here is not None and not here:
            return None
        if here is not None and (found := self._found(here)):
            return found
        keys = self.join.changed_keys(self._reference_changes())
        if not keys:
            return None
        if here is None and self.searched.is_large:
            most = self.batch.context.limits.joined_keys + 1
            held = {join: to_arrow(rows.limit(most)) for join, rows in keys.items()}
            if found := self._found(held):
                return found
        return self._scan(keys)

    def changed_keys(self) -> Mapping[Join, pa.Table] | None:
        """Read each join's changed dimension keys in this process; None if that is impossible."""
        if not self.join.follows_references:
            return {}
        found = {}
        for join in self.join.spec.join:
            table = self.join.dimension(join)
            stored = self.batch.context.graph.stored([table.id])
            if not self.batch.plan.ranges.keys() & set(stored):
                continue
            uri = self.batch.context.lake.uri(table.id)
            if not table.is_stored or not self._are_few(table.id):
                return None
            range_ = self.batch.plan.ranges[table.id]
            if not has_local_feed(uri, range_[1]):
                return None
            rows = read_feed(uri, *range_)
            columns = {f"_d{i}": rows[c] for i, (_, c) in enumerate(join.on)}
            found[join] = (
                pa.Table.from_pydict(columns).drop_null().group_by(list(columns)).aggregate([])
            )
        return found

    def _found(self, keys: Mapping[Join, pa.Table]) -> Facts | None:
        """Find facts in this process, by their plain columns; None if there are too many."""
        columns = {join: self.columns(join) for join in keys}
        if any(rows.num_rows > self.batch.context.limits.joined_keys for rows in keys.values()):
            return None
        wanted = [
            dict(zip(names, keys[join].columns, strict=True))
            for join, names in columns.items()
            if names is not None
        ]
        found = self.searched.rows(wanted) if len(wanted) == len(keys) else None
        return None if found is None else Facts(self._here(found), are_there=True)

    def columns(self, join: Join) -> list[str] | None:
        """Return the facts' columns that a join reads; None if it reads more than columns."""
        plain_ones = [fact.plain_column for fact, _ in join.on]
        found = [name for name in plain_ones if name in self.searched.columns]
        return [str(name) for name in found] if len(found) == len(plain_ones) else None

    def _scan(self, keys: Mapping[Join, DataFrame]) -> Facts:
        rows = self.batch.snapshots()[self._id]
        bounds = self._bounds(keys) if self.searched.is_large else {}
        found = self.batch.hold(self.join.concerned(rows, keys, bounds))
        return Facts(InSpark(found), are_there=True)

    def _bounds(self, keys: Mapping[Join, DataFrame]) -> dict[Join, Column]:
        """Return conditions that facts must meet to join on these keys, if the keys are few."""
        most, found = self.batch.context.limits.named_values, {}
        for join, rows in keys.items():
            bounds = few_of(rows, {n: F.col(n) for n in rows.columns}, most)
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
