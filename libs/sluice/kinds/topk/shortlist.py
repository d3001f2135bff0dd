"""Rows of a small change that can matter to a top-k, found before Spark sees a row.

Like file statistics, the shortlist leaves out only what surely can't matter. A row can't
matter if its first sort key comes after those of all rows that its group keeps. If the group or
that key is not a plain column of an exact type, everything is passed on. Spark decides on the rest.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sluice.changes.order import Direction
from sluice.delta.reading.searched_version import is_exact
from sluice.kinds.topk.operator import COMPLETE
from sluice.kinds.topk.ranks import RankRule

_ROW, _WORST, _MISSING = "_row", "_worst", "_missing"


@dataclass(frozen=True)
class Shortlist:
    """Columns that decide the shortlist.

    `group`: columns of the state -> columns of the input. `column` holds the first sort key.
    """

    group: Mapping[str, str]
    column: str
    first: Direction

    @classmethod
    def of(cls, ranking: RankRule, feed: pa.Schema) -> "Shortlist | None":
        """Return the shortlist of a declaration; None if it can't have one."""
        spec = ranking.spec
        group = {p.name: p.expression.plain_column for p in spec.partition_by}
        columns = [*group.values(), spec.order_by[0].expression.plain_column]
        plain = [c for c in columns if c in feed.names and is_exact(feed.field(c).type)]
        if spec.window or ranking.limit_is_column or not group or len(plain) < len(columns):
            return None
        *by, column = [str(name) for name in plain]
        return cls(dict(zip(group, by, strict=True)), column, ranking.order[0])

    @property
    def of_state(self) -> tuple[str, ...]:
        """Columns of the state that are needed of all its rows."""
        return (*self.group, self.first.column, COMPLETE)

    def competing(self, feed: pa.Table, state: pa.Table) -> pa.Table:
        """Return the feed's rows that can matter, given `of_state` of all rows of the state."""
        numbered = feed.select(list(dict.fromkeys([*self.group.values(), self.column])))
        numbered = numbered.append_column(_ROW, pa.array(np.arange(feed.num_rows)))
        left, right = list(self.group.values()), list(self.group)
        joined = numbered.join(self._worst(state), left, right, "left outer")
        key, worst = joined[self.column], joined[_WORST]
        is_behind = pc.less(key, worst) if self.first.descending else pc.greater(key, worst)
        stays = pc.invert(pc.fill_null(is_behind, False))
        return feed.take(joined.filter(stays)[_ROW])

    def groups(self, feed: pa.Table) -> pc.Expression:
        """Return a condition on the state that the groups of the feed's rows meet."""
        each = [pc.field(name).isin(pc.unique(feed[column])) for name, column in self.group.items()]
        return reduce(lambda a, b: a & b, each)

    def _worst(self, state: pa.Table) -> pa.Table:
        """Return the last first key of each group that is incomplete and has no null key."""
        rows = state.filter(pc.invert(state[COMPLETE])).select([*self.group, self.first.column])
        function = "min" if self.first.descending else "max"
        column = self.first.column
        nulls = rows.append_column(_MISSING, pc.is_null(rows[column]))
        found = nulls.group_by(list(self.group)).aggregate([(column, function), (_MISSING, "any")])
        sure = found.filter(pc.invert(found[f"{_MISSING}_any"]))
        return sure.select([*self.group, f"{column}_{function}"]).rename_columns(
            [*self.group, _WORST]
        )
