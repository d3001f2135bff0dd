"""A batch of a cogroup's state: what the change makes of the rows that the state has.

Only the feeds and the touched rows of the state are read. Of groups that a removal breaks, the
streams that it concerns are recomputed, from the inputs of those streams alone. The changelog of
the view over the state comes out of the same pass.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame

from sluice.changelog.net import net
from sluice.operators.cogroup import CogroupState
from sluice.operators.cogroup_change import contributed, mended, merged, told
from sluice.operators.cogroup_view import CogroupView
from sluice.operators.lateness import late_of_change
from sluice.operators.operator import names, union, within
from sluice.runtime.cogroup_reads import GroupReads, few_rows
from sluice.runtime.computation import Computation
from sluice.runtime.computed import Computed
from sluice.runtime.groups import Broken, Groups, LocalGroups, SparkGroups


@dataclass(frozen=True)
class CogroupBatch:
    """One batch that is merged into the state."""

    base: Computation

    @contextmanager
    def computed(self) -> Iterator[Computed]:
        """Its result, for as long as the context is open."""
        with ExitStack() as cached:
            local = GroupReads.of(self.base, self.state)
            prepared = {n: self.state.prepare(n, c) for n, c in self._changes(local).items()}
            change = contributed(self.state, prepared)
            old = local.state if local else self._old(change)
            found = told(self.state, merged(self.state, old, change), self._alive())
            if (alive := self._alive()) is not None:
                self.base.work.expire(late_of_change(prepared.values(), alive))
            groups, recomputed = self._whole(self._held(found, cached, is_small=local is not None))
            yield Computed(
                groups.of_state(self.state.stored),
                recomputed=recomputed,
                expired=self.base.work.expired,
                shown=self._view.changed(groups.changed),
                is_projection=True,
            )

    @property
    def state(self) -> CogroupState:
        """The operator."""
        operator = self.base.plan.node.operator
        assert isinstance(operator, CogroupState)
        return operator

    @property
    def _view(self) -> CogroupView:
        return CogroupView(self.state, self.base.plan.node.id)

    def _changes(self, local: GroupReads | None) -> Mapping[str, DataFrame]:
        if local is None:
            return self.base.changes()
        return {n: net(feed, self.state.columns(n)) for n, feed in local.feeds.items()}

    def _old(self, change: DataFrame) -> DataFrame:
        """The rows that the state has of the touched groups, and of those that have expired."""
        touched, current = change.select(*names(self.state.group)), self.base.current()
        if self.base.horizon:
            expired = self.base.horizon.expired_groups(self.state, current)
            touched = union([touched, expired]).distinct()
        return within(current, touched, self.state.group)

    def _held(self, rows: DataFrame, cached: ExitStack, *, is_small: bool) -> Groups:
        if is_small:
            return LocalGroups.of(self.base.session, rows)
        kept = rows.persist()
        cached.callback(kept.unpersist)
        return SparkGroups(kept)

    def _whole(self, groups: Groups) -> tuple[Groups, int | None]:
        """With what is broken recomputed, and how many groups that were."""
        if not self.state.breaking:
            return groups, None
        broken = groups.broken()
        if broken is None:
            return groups, 0
        anew = self._recomputed(broken)
        whole = told(
            self.state, mended(self.state, broken.rows, broken.streams, anew), self._alive()
        )
        return groups.mended(whole), broken.count

    def _recomputed(self, broken: Broken) -> DataFrame:
        """The rows of the broken streams' state, from their inputs."""
        part = self.state.only(broken.streams)
        touched = broken.rows.select(*names(self.state.group))
        if broken.table is not None and (rows := few_rows(self.base, part, broken.table)):
            return part.recompute(rows, {}, touched)
        bounds = self.base.bounds(touched, part)
        return part.recompute(self.base.snapshots(part), {}, touched, bounds)

    def _alive(self) -> Column | None:
        return self.base.horizon.is_alive() if self.base.horizon else None
