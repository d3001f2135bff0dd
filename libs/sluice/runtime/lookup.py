"""A batch of a lookup: the facts that came or went, and those whose dimension rows did.

Few facts look for their dimension rows in this process, and few dimension rows for their facts.
Many are left to Spark, which leaves out files by literal bounds and broadcasts what fits.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.changelog.arrow import arrow_net
from sluice.changelog.diff import diff
from sluice.changelog.net import WEIGHT, arrivals, between, net, weighted
from sluice.operators.lookup import LookupJoin
from sluice.runtime.computed import Changelog
from sluice.runtime.lookup_few import Facts, FewFacts, FewJoined, Numbered
from sluice.runtime.lookup_many import ManyJoined
from sluice.runtime.plan import BatchPlan, stored_references
from sluice.runtime.pruning import few_of
from sluice.runtime.rows import dimension_at, references_at, snapshots_at
from sluice.runtime.work import Work
from sluice.specs.dimension import DimensionView
from sluice.specs.lookup import Join
from sluice.specs.project import Project
from sluice.storage.feed_size import feed_size, table_size
from sluice.storage.lake import layout
from sluice.storage.local import has_local_feed, plain, read_feed, to_arrow
from sluice.storage.matches import Place
from sluice.storage.table import feed, snapshot


@dataclass(frozen=True)
class LookupBatch:
    """One plan, at one session. `numbered` gives output rows the number of the batch."""

    session: SparkSession
    project: Project
    plan: BatchPlan
    operator: LookupJoin
    work: Work
    numbered: Numbered

    def changelog(self) -> Changelog:
        """What becomes of the rows of the facts that are concerned."""
        keys = self._changed_keys()
        if self._concerns_most(keys):
            return self._compared_whole()
        own, concerned = self._own(), self._concerned(keys)
        parts = [part for part in (own, concerned) if part]
        few = [part for part in parts if isinstance(part, FewFacts)]
        if len(few) == len(parts) and (found := self._here(few)) is not None:
            return found
        many = [part.handed(self.session, self._facts) for part in few]
        many += [part for part in parts if isinstance(part, Facts)]
        if concerned:
            self.work.rows = sum(self._count(part) for part in many)
        joined = ManyJoined(self.session, self.project, self.plan, self.operator, self._facts)
        return joined.changelog(many, self.numbered)

    def _concerns_most(self, keys: Mapping[Join, pa.Table] | None) -> bool:
        """Whether so much of a dimension changed that all facts are sooner joined again."""
        return self._facts.is_large and any(
            self._has_mostly_changed(table_id, None if keys is None else keys.get(join))
            for join in self.operator.spec.join
            for table_id in stored_references(
                (self.operator.dimension(join).id,), self.project.graph
            )
        )

    def _has_mostly_changed(self, dimension: str, keys: pa.Table | None) -> bool:
        if dimension not in self.plan.ranges:
            return False
        uri = layout(self.project).uri(dimension)
        whole = table_size(uri, self.plan.pins[dimension].version)
        limits = self.project.limits
        if keys is not None and whole.rows is not None:
            return int(keys.num_rows) > limits.lookup_changed_share * whole.rows
        changed = feed_size(uri, *self.plan.ranges[dimension]).bytes
        few = max(limits.lookup_changed_share * whole.bytes, limits.lookup_uncounted_bytes)
        return changed > few

    def _compared_whole(self) -> DataFrame:
        """All facts joined again, and compared with all rows of the view."""
        facts = snapshots_at(self.session, self.project, self.operator, self.plan.pins)
        references = references_at(self.session, self.project, self.operator, self.plan)
        before, size = self.plan.before, table_size(self._facts.uri, self._facts.version)
        assert before is not None
        self.work.rows = size.rows
        new = self.numbered(self.operator.query(facts, references))
        old = snapshot(self.session, before.uri, before.version, self.project.limits)
        return diff(old, new, self.operator.key)

    def _here(self, few: list[FewFacts]) -> Changelog | None:
        """As it is told in this process; None where it can't be."""
        before, dimensions = self.plan.before, self._dimensions()
        assert before is not None
        together = FewFacts.together(few, self.operator.facts.key)
        most = self.project.spark.small_changelog
        if dimensions is None or together.came.num_rows > most:
            return None
        view = Place(self.plan.uri, before.version, self.project.limits)
        joined = FewJoined(self.session, self.operator, self._facts, view, dimensions)
        return joined.changelog(together, self.numbered)

    def _dimensions(self) -> Mapping[Join, tuple[Place, Mapping[str, str]]] | None:
        """Where each join looks, by plain columns of the facts alone; None where more is needed."""
        lake, pins, found = layout(self.project), {**self.plan.pins, **self.plan.references}, {}
        limits = self.project.limits
        for join in self.operator.spec.join:
            table, columns = self.operator.dimension(join), self._columns(join)
            if columns is None or isinstance(table.spec, DimensionView):
                return None
            used = self.operator.columns(table.id)
            place = Place(lake.uri(table.id), pins[table.id].version, limits, used)
            found[join] = place, dict(zip((c for _, c in join.on), columns, strict=True))
        return None if self.operator.spec.as_of == "event_time" else found

    @property
    def _id(self) -> str:
        return self.operator.facts.id

    @cached_property
    def _facts(self) -> Place:
        """The facts' table as it is now."""
        uri, version = layout(self.project).uri(self._id), self.plan.pins[self._id].version
        return Place(uri, version, self.project.limits, self.operator.columns(self._id))

    def _own(self) -> Facts | FewFacts | None:
        """The facts that came, and those that went."""
        if self._id not in self.plan.ranges:
            return None
        range_ = self.plan.ranges[self._id]
        are_few, have_grown = self._are_few(self._id), self._id in self.plan.growing
        if are_few and has_local_feed(self._facts.uri, range_[1]):
            rows = read_feed(self._facts.uri, *range_)
            if have_grown:
                return FewFacts(rows.select(self._facts.columns))
            if (changes := arrow_net(rows, self._facts.columns)) is not None:
                return FewFacts.of(changes)
        own = self._change(self._id)
        if have_grown:
            return Facts(arrivals(own))
        if are_few:
            return FewFacts.of(plain(to_arrow(own)))
        own = self.work.hold(self.session, own, small=False)
        return Facts(arrivals(own), own.where(F.col(WEIGHT) < 0).drop(WEIGHT))

    def _are_few(self, table_id: str) -> bool:
        size = feed_size(layout(self.project).uri(table_id), *self.plan.ranges[table_id])
        limits = self.project.limits
        if size.rows is None:
            return size.bytes <= limits.lookup_uncounted_bytes
        return size.rows <= limits.matched_rows

    def _change(self, table_id: str) -> DataFrame:
        """The net change of a table; one that has only grown is as it came."""
        uri, columns = layout(self.project).uri(table_id), self.operator.columns(table_id)
        rows = feed(self.session, uri, *self.plan.ranges[table_id], self.project.limits)
        return (weighted if table_id in self.plan.growing else net)(rows, columns)

    def _concerned(self, here: Mapping[Join, pa.Table] | None) -> Facts | FewFacts | None:
        """The facts, as they are now, that a changed dimension row is joined to or was."""
        if here is not None and not here:
            return None
        if here is not None and (found := self._found(here)):
            return found
        keys = self.operator.changed_keys(self._reference_changes())
        if not keys:
            return None
        if here is None and self._facts.is_large:
            most = self.project.limits.lookup_keys + 1
            held = {join: to_arrow(rows.limit(most)) for join, rows in keys.items()}
            if found := self._found(held):
                return found
        return self._scanned(keys)

    def _changed_keys(self) -> Mapping[Join, pa.Table] | None:
        """Of each join the keys that changed in its dimension, read here; None where they can't."""
        if not self.operator.follows_dimensions:
            return {}
        found = {}
        for join in self.operator.spec.join:
            table = self.operator.dimension(join)
            stored = stored_references((table.id,), self.project.graph)
            if not self.plan.ranges.keys() & set(stored):
                continue
            uri = layout(self.project).uri(table.id)
            if isinstance(table.spec, DimensionView) or not self._are_few(table.id):
                return None
            range_ = self.plan.ranges[table.id]
            if not has_local_feed(uri, range_[1]):
                return None
            rows = read_feed(uri, *range_)
            columns = {f"_d{i}": rows[c] for i, (_, c) in enumerate(join.on)}
            found[join] = pa.table(columns).drop_null().group_by(list(columns)).aggregate([])
        return found

    def _found(self, keys: Mapping[Join, pa.Table]) -> FewFacts | None:
        """Looked for here: by plain columns of the facts, if they are few."""
        columns = {join: self._columns(join) for join in keys}
        if any(rows.num_rows > self.project.limits.lookup_keys for rows in keys.values()):
            return None
        wanted = [
            dict(zip(names, keys[join].columns, strict=True))
            for join, names in columns.items()
            if names is not None
        ]
        found = self._facts.rows(wanted) if len(wanted) == len(keys) else None
        return None if found is None else FewFacts(found, are_there=True)

    def _columns(self, join: Join) -> list[str] | None:
        """The facts' columns that a join looks at, if it looks at no more than columns."""
        plain_ones = [fact.plain_column for fact, _ in join.on]
        found = [name for name in plain_ones if name in self._facts.columns]
        return [str(name) for name in found] if len(found) == len(plain_ones) else None

    def _scanned(self, keys: Mapping[Join, DataFrame]) -> Facts:
        rows = snapshots_at(self.session, self.project, self.operator, self.plan.pins)[self._id]
        bounds = self._bounds(keys) if self._facts.is_large else {}
        found = self.work.hold(
            self.session, self.operator.concerned(rows, keys, bounds), small=False
        )
        return Facts(found, found)

    def _bounds(self, keys: Mapping[Join, DataFrame]) -> dict[Join, Column]:
        """What facts must meet to be joined on these keys, where those are few."""
        most, found = self.project.limits.named_values, {}
        for join, rows in keys.items():
            bounds = few_of(rows, {n: F.col(n) for n in rows.columns}, most)
            if bounds is not None:
                found[join] = bounds
        return found

    def _count(self, facts: Facts) -> int:
        return facts.held.num_rows if facts.held is not None else self.work.count(facts.came)

    def _reference_changes(self) -> dict[str, DataFrame]:
        """What changed in the dimensions; views over them have no feed: their two states."""
        found = {}
        for reference in self.operator.references:
            stored = stored_references((reference,), self.project.graph)
            if reference in self.plan.ranges:
                found[reference] = self._change(reference)
            elif self.plan.ranges.keys() & set(stored):
                old, new = (
                    dimension_at(self.session, self.project, reference, pins)
                    for pins in (self.plan.recorded, self.plan.pins)
                )
                found[reference] = between(old, new, self.operator.columns(reference))
        return found
