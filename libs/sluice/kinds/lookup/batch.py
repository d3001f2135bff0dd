"""A batch of a lookup: facts that changed, and facts whose dimension rows changed.

Few facts look up their dimension rows in this process, and few dimension rows their facts. Many are
left to Spark, which skips files by literal bounds and broadcasts what fits.
"""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sluice.changes.diff import diff
from sluice.delta.log.feed_size import table_size
from sluice.delta.reading.searched_version import SearchedVersion
from sluice.engine.computing.batch import Batch
from sluice.engine.computing.batch_plan import BatchPlan
from sluice.engine.computing.batch_result import BatchResult, ChangelogRows
from sluice.engine.context import Context
from sluice.engine.query.operator import InputRows
from sluice.kinds.lookup.broadcast import Broadcast, broadcast_of
from sluice.kinds.lookup.facts import ConcernedFacts
from sluice.kinds.lookup.few import Facts, FewJoined, together
from sluice.kinds.lookup.many import ManyJoined
from sluice.kinds.lookup.operator import LookupJoin
from sluice.kinds.lookup.proof import batch_by_batch
from sluice.kinds.lookup.references import references_at
from sluice.kinds.lookup.spec import Join
from sluice.language.hidden_columns import BATCH


class LookupBatch(Batch[LookupJoin]):
    """One batch of a lookup."""

    @classmethod
    def joins(cls, context: Context, plan: BatchPlan) -> Mapping[str, str]:
        return {name: str(join) for name, join in _broadcasts(context, plan).items()}

    @classmethod
    def remarks(cls, context: Context, plan: BatchPlan) -> tuple[str, ...]:
        joins = _broadcasts(context, plan).items()
        return tuple(f"{name} is joined by {join}" for name, join in joins if not join.is_chosen)

    def changed(self) -> BatchResult:
        """Compare the rows of the concerned facts before and after."""
        facts = ConcernedFacts(self, self.operator)
        keys = facts.changed_keys()
        if facts.are_most(keys):
            return self._compared_whole(facts.searched)
        own, concerned = facts.own(), facts.concerned(keys)
        parts = [part for part in (own, concerned) if part]
        are_few = all(part.are_few for part in parts)
        if are_few and (found := self._here(facts, parts)) is not None:
            return BatchResult(found)
        rows = sum(part.came.count() for part in parts) if concerned else None
        many = ManyJoined(self, self.operator, facts.searched)
        return BatchResult(many.changelog(parts), rows=rows)

    def expected(self, rows: DataFrame) -> DataFrame:
        if self.operator.follows_references:
            return self.query()
        return batch_by_batch(self, self.operator, rows)

    def references(self) -> InputRows:
        return references_at(self.session, self.context, self.operator, self.plan.looked_up)

    def stored(self, rows: DataFrame) -> DataFrame:
        """Return the rows with the number of the batch, if the view keeps it."""
        if BATCH not in self.plan.node.ignored:
            return rows
        return rows.withColumn(BATCH, F.lit(self.number).cast("bigint"))

    def _compared_whole(self, facts: SearchedVersion) -> BatchResult:
        """Join all facts again, and compare them with all rows of the view."""
        new = self.stored(self.query())
        changelog = diff(self.current(), new, self.operator.key)
        return BatchResult(changelog, rows=table_size(facts.uri, facts.version).rows)

    def _here(self, facts: ConcernedFacts, few: list[Facts]) -> ChangelogRows | None:
        """Compute the changelog in this process; return None if that is impossible."""
        before, dimensions = self.plan.before, self._dimensions(facts)
        assert before is not None
        came, went = together(few, self.operator.facts.key)
        if dimensions is None or came.num_rows > self.context.settings.small_changelog:
            return None
        view = SearchedVersion(self.plan.uri, before.version, self.context.limits)
        joined = FewJoined(self.session, self.operator, facts.searched, view, dimensions)
        are_new = went is None and not any(part.are_there for part in few)
        return joined.changelog(came, went, self.stored, are_new=are_new)

    def _dimensions(
        self, facts: ConcernedFacts
    ) -> Mapping[Join, tuple[SearchedVersion, Mapping[str, str]]] | None:
        """Return the table that each join searches, by plain fact columns; None if that fails."""
        pins, limits, found = self.plan.looked_up, self.context.limits, {}
        for join in self.operator.spec.join:
            table, columns = self.operator.dimension(join), facts.columns(join)
            if columns is None or not table.is_stored:
                return None
            used = self.operator.columns(table.id)
            searched = SearchedVersion(
                self.context.lake.uri(table.id), pins[table.id].version, limits, used
            )
            found[join] = searched, dict(zip((c for _, c in join.on), columns, strict=True))
        return None if self.operator.spec.as_of == "event_time" else found


def _broadcasts(context: Context, plan: BatchPlan) -> dict[str, Broadcast]:
    pins = plan.looked_up
    return {i: broadcast_of(context, i, pins) for i in plan.node.operator.references}
