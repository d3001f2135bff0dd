"""Facts joined by Spark to dimensions that are broadcast, or shuffled if they are too large.

Few facts read only their matching rows of large dimensions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from sluice.changes.diff import diff, inserted
from sluice.delta.reading.found import WantedValues
from sluice.delta.reading.local import handed_over, plain, to_arrow
from sluice.delta.reading.searched_version import SearchedVersion
from sluice.engine.computing.batch import Batch
from sluice.engine.computing.pruning import bounds_of, few_of
from sluice.engine.query.operator import names, union, within
from sluice.kinds.lookup.few import Facts
from sluice.kinds.lookup.operator import BUCKET, LookupJoin
from sluice.kinds.lookup.references import references_at
from sluice.kinds.lookup.spec import Join


@dataclass(frozen=True)
class ManyJoined:
    """Join of many facts into a view. `facts`: their current table."""

    batch: Batch[LookupJoin]
    operator: LookupJoin
    facts: SearchedVersion

    def changelog(self, parts: list[Facts]) -> DataFrame:
        """Compute the view's changelog; old rows are not read if facts were only added."""
        operator, fact_id = self.operator, self.operator.facts.id
        came = union([operator.prepare(fact_id, part.came.rows) for part in parts])
        rows = came if len(parts) == 1 else came.dropDuplicates(list(operator.group))
        held = [part.came.table for part in parts if part.are_few]
        few = pa.concat_tables(held, promote_options="default") if len(held) == len(parts) else None
        new = self.batch.stored(operator.combine({fact_id: rows}, self._references(rows, few)))
        went = [operator.prepare(fact_id, part.shown.rows) for part in parts if part.shown]
        if not went:
            return inserted(new)
        touched = union([rows.select(*names(operator.group)) for rows in went]).distinct()
        return diff(self._old(touched, are_few=few is not None), new, operator.key)

    def _references(self, rows: DataFrame, few: pa.Table | None) -> Mapping[str, DataFrame]:
        """Return the dimensions' rows; of large ones, only those that few facts may match."""
        found = {}
        large = self._large_dimensions() if few is not None else {}
        wanted = self._looked_up(rows, few) if large and few is not None else {}
        for join, searched in large.items():
            some = searched.rows([wanted[join]])
            if some is not None:
                matched = handed_over(self.batch.session, searched.uri, searched.version, some)
                found[self.operator.dimension(join).id] = F.broadcast(matched)
        known = found.keys()
        context, pins = self.batch.context, self.batch.plan.looked_up
        others = references_at(self.batch.session, context, self.operator, pins, known)
        return {**others, **found}

    def _large_dimensions(self) -> dict[Join, SearchedVersion]:
        lake, pins = self.batch.context.lake, self.batch.plan.looked_up
        stored = {
            join: SearchedVersion(
                lake.uri(table.id),
                pins[table.id].version,
                self.batch.context.limits,
                self.operator.columns(table.id),
            )
            for join in self.operator.spec.join
            if (table := self.operator.dimension(join)).is_stored
        }
        return {join: searched for join, searched in stored.items() if searched.is_large}

    def _looked_up(self, rows: DataFrame, few: pa.Table) -> dict[Join, WantedValues]:
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

    def _old(self, touched: DataFrame, *, are_few: bool) -> DataFrame:
        """Return the view's rows of the touched groups."""
        before, group = self.batch.plan.before, self.operator.group
        assert before is not None
        searched = SearchedVersion(self.batch.plan.uri, before.version, self.batch.context.limits)
        if are_few and searched.is_large:
            held = plain(to_arrow(touched))
            touched = self.batch.session.createDataFrame(held, touched.schema)
            found = searched.rows([{name: held[name] for name in group}])
            if found is not None:
                rows = handed_over(self.batch.session, searched.uri, searched.version, found)
                return within(rows, touched, group)
        rows = self.batch.current()
        if searched.is_large:
            rows = rows.where(self._lies_in(touched))
        return within(rows, touched, group)

    def _lies_in(self, touched: DataFrame) -> Column:
        """Return a condition that the view's rows of the touched groups meet."""
        limits = self.batch.context.limits
        group = tuple(c for c in self.operator.group if c != BUCKET)
        bounds = [bounds_of(touched, group, limits)]
        if BUCKET in self.operator.group:
            bounds.append(few_of(touched, {BUCKET: F.col(BUCKET)}, limits.named_values))
        known = [condition for condition in bounds if condition is not None]
        return reduce(Column.__and__, known, F.expr("true"))
