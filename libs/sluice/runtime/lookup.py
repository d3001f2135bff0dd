"""A batch of a lookup: the facts that came or went, and those whose dimension rows did.

Few facts look for their dimension rows in this process, and few dimension rows for their facts.
Many are left to Spark, which leaves out files by literal bounds and broadcasts what fits.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.changelog.net import WEIGHT, arrivals, between, net, weighted
from sluice.operators.lookup import BUCKET, LookupJoin
from sluice.operators.operator import names, union, within
from sluice.runtime.plan import BatchPlan, stored_references
from sluice.runtime.pruning import bounds_of, few_of
from sluice.runtime.rows import dimension_at, references_at, snapshots_at
from sluice.runtime.work import Work
from sluice.specs.dimension import DimensionView
from sluice.specs.expression import Expression
from sluice.specs.lookup import Join
from sluice.specs.project import Project
from sluice.storage.feed_size import feed_size
from sluice.storage.lake import layout
from sluice.storage.local import handed_over, has_local_feed, plain, read_feed, to_arrow
from sluice.storage.matches import MOST, Place, Values
from sluice.storage.table import feed, snapshot

Rows = Mapping[str, DataFrame]
FEW_BYTES = 4_000_000  # of a feed that does not tell how many rows it has
MOST_KEYS = 10_000  # of a dimension that changed, whose facts are looked for here


@dataclass(frozen=True)
class Facts:
    """Facts, prepared; `held`: the same as they were read, if they are few."""

    rows: DataFrame
    held: pa.Table | None = None


@dataclass(frozen=True)
class LookupBatch:
    """One plan, at one session."""

    session: SparkSession
    project: Project
    plan: BatchPlan
    operator: LookupJoin
    work: Work

    def old_and_new(self) -> tuple[DataFrame | None, DataFrame]:
        """The rows of the facts that are concerned; no old ones where facts only came."""
        came, left = self._own()
        found = self._concerned()
        if found:
            self.work.rows = sum(self._count(part) for part in (came, found) if part)
        facts = _together([part for part in (came, found) if part], self.operator.group)
        groups = [left] if left is not None else []
        groups += [found.rows.select(*names(self.operator.group))] if found else []
        new = self.operator.combine({self._id: facts.rows}, self._references(facts))
        if not groups:
            return None, new
        return self._old(union(groups).distinct(), are_few=facts.held is not None), new

    @property
    def _id(self) -> str:
        return self.operator.facts.id

    @property
    def _facts(self) -> Place:
        """The facts' table as it is now."""
        uri, version = layout(self.project).uri(self._id), self.plan.pins[self._id].version
        return Place(uri, version, self.operator.columns(self._id))

    def _own(self) -> tuple[Facts | None, DataFrame | None]:
        """The facts that came, and the groups of those that went."""
        if self._id not in self.plan.ranges:
            return None, None
        range_ = self.plan.ranges[self._id]
        are_few, have_grown = self._are_few(range_), self._id in self.plan.growing
        if are_few and have_grown and has_local_feed(self._facts.uri, range_[1]):
            return self._few(read_feed(self._facts.uri, *range_).select(self._facts.columns)), None
        own, held = self._change(self._id), None
        if have_grown:
            return Facts(self.operator.prepare(self._id, arrivals(own))), None
        if are_few:
            held = plain(to_arrow(own))
            own = self.session.createDataFrame(held, own.schema)
        else:
            own = self.work.hold(self.session, own, small=False)
        came = Facts(self.operator.prepare(self._id, arrivals(own)), held)
        return came, self.operator.touched({self._id: own.where(F.col(WEIGHT) < 0)})

    def _are_few(self, range_: tuple[int, int]) -> bool:
        size = feed_size(self._facts.uri, *range_)
        return size.bytes <= FEW_BYTES if size.rows is None else size.rows <= MOST

    def _change(self, table_id: str) -> DataFrame:
        """The net change of a table; one that has only grown is as it came."""
        uri, columns = layout(self.project).uri(table_id), self.operator.columns(table_id)
        rows = feed(self.session, uri, *self.plan.ranges[table_id])
        return (weighted if table_id in self.plan.growing else net)(rows, columns)

    def _few(self, held: pa.Table) -> Facts:
        rows = handed_over(self.session, self._facts.uri, self._facts.version, held)
        return Facts(self.operator.prepare(self._id, rows), held)

    def _concerned(self) -> Facts | None:
        """The facts, as they are now, that a changed dimension row is joined to or was."""
        keys = self.operator.changed_keys(self._reference_changes())
        if not keys:
            return None
        return self._found(keys) or self._scanned(keys)

    def _count(self, facts: Facts) -> int:
        return self.work.count(facts.rows) if facts.held is None else facts.held.num_rows

    def _found(self, keys: Mapping[Join, DataFrame]) -> Facts | None:
        """Looked for here: by plain columns of the facts, if they are few."""
        columns = {join: [self._plain(fact) for fact, _ in join.on] for join in keys}
        if not self._facts.is_large or any(None in each for each in columns.values()):
            return None
        held = {join: to_arrow(rows.limit(MOST_KEYS + 1)) for join, rows in keys.items()}
        if any(rows.num_rows > MOST_KEYS for rows in held.values()):
            return None
        wanted = [dict(zip(map(str, columns[j]), h.columns, strict=True)) for j, h in held.items()]
        found = self._facts.rows(wanted)
        return None if found is None else self._few(found)

    def _plain(self, fact: Expression) -> str | None:
        """The facts' column that the expression is, if it is no more."""
        return fact.plain_column if fact.plain_column in self._facts.columns else None

    def _scanned(self, keys: Mapping[Join, DataFrame]) -> Facts:
        rows = snapshots_at(self.session, self.project, self.operator, self.plan.pins)[self._id]
        bounds = self._bounds(keys) if self._facts.is_large else {}
        found = self.operator.concerned(rows, keys, bounds)
        return Facts(self.work.hold(self.session, found, small=False))

    def _bounds(self, keys: Mapping[Join, DataFrame]) -> dict[Join, Column]:
        """What facts must meet to be joined on these keys, where those are few."""
        found = {j: few_of(rows, {n: F.col(n) for n in rows.columns}) for j, rows in keys.items()}
        return {join: bounds for join, bounds in found.items() if bounds is not None}

    def _references(self, facts: Facts) -> Rows:
        """The dimensions' rows; of large ones those that a few facts may match."""
        found = {}
        places = self._large_dimensions() if facts.held is not None else {}
        wanted = self._looked_up(facts) if places else {}
        for join, place in places.items():
            some = place.rows([wanted[join]])
            if some is not None:
                rows = handed_over(self.session, place.uri, place.version, some)
                found[self.operator.dimension(join).id] = F.broadcast(rows)
        others = references_at(
            self.session, self.project, self.operator, self.plan, known=found.keys()
        )
        return {**others, **found}

    def _large_dimensions(self) -> dict[Join, Place]:
        lake, pins = layout(self.project), {**self.plan.pins, **self.plan.references}
        stored = {
            join: Place(lake.uri(table.id), pins[table.id].version, self.operator.columns(table.id))
            for join in self.operator.spec.join
            if not isinstance((table := self.operator.dimension(join)).spec, DimensionView)
        }
        return {join: place for join, place in stored.items() if place.is_large}

    def _looked_up(self, facts: Facts) -> dict[Join, Values]:
        """What they look for in each dimension; a small Spark job where that is no plain column."""
        assert facts.held is not None
        every = {fact for join in self.operator.spec.join for fact, _ in join.on}
        values = {e: facts.held[name] for e in every if (name := self._plain(e))}
        others = {f"_{n}": e for n, e in enumerate(every - values.keys())}
        if others:
            found = to_arrow(
                facts.rows.select(*[F.expr(e.sql).alias(n) for n, e in others.items()])
            )
            values |= {e: found[name] for name, e in others.items()}
        return {
            join: {column: values[fact] for fact, column in join.on}
            for join in self.operator.spec.join
        }

    def _old(self, touched: DataFrame, *, are_few: bool) -> DataFrame:
        """The view's rows of those groups."""
        before, group = self.plan.before, self.operator.group
        assert before is not None
        place = Place(self.plan.uri, before.version)
        if are_few and place.is_large:
            held = plain(to_arrow(touched))
            touched = self.session.createDataFrame(held, touched.schema)
            found = place.rows([{name: held[name] for name in group}])
            if found is not None:
                rows = handed_over(self.session, place.uri, place.version, found)
                return within(rows, touched, group)
        rows = snapshot(self.session, place.uri, place.version)
        if place.is_large:
            rows = rows.where(self._lies_in(touched))
        return within(rows, touched, group)

    def _lies_in(self, touched: DataFrame) -> Column:
        """What the view's rows of those groups meet."""
        bounds = [bounds_of(touched, tuple(c for c in self.operator.group if c != BUCKET))]
        if BUCKET in self.operator.group:
            bounds.append(few_of(touched, {BUCKET: F.col(BUCKET)}))
        known = [condition for condition in bounds if condition is not None]
        return reduce(Column.__and__, known, F.expr("true"))

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


def _together(parts: list[Facts], group: tuple[str, ...]) -> Facts:
    """All facts once."""
    rows = union([part.rows for part in parts])
    held = [part.held for part in parts if part.held is not None]
    if len(parts) == 1:
        return parts[0]
    both = pa.concat_tables(held, promote_options="default") if len(held) == len(parts) else None
    return Facts(rows.dropDuplicates(list(group)), both)
