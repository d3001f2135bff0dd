"""Facts in a batch of a lookup, and the join of few facts in this process.

Few facts match few rows of any dimension, so those rows are found and attached here. Spark then
gets one relation instead of one per dimension, and evaluates the view's expressions in one job. Its
result is compared with the view's old rows here. Only equality of exact types is decided here; if a
join needs more, everything is left to Spark.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StructType

from sluice.changes.diff import inserted
from sluice.delta.reading.local import plain, to_arrow
from sluice.delta.reading.searched_version import SearchedVersion
from sluice.engine.computing.batch_result import ChangelogRows
from sluice.engine.computing.held import Held
from sluice.engine.query.validity import CURRENT
from sluice.kinds.lookup.matching import matching
from sluice.kinds.lookup.operator import LookupJoin
from sluice.kinds.lookup.small_changes import arrow_diff, has_plain_keys
from sluice.kinds.lookup.spec import Join

STANDS = "_sluice_stands"  # true if a fact exists now and every inner join has found its row
Numbered = Callable[[DataFrame], DataFrame]


@dataclass(frozen=True)
class Facts:
    """Facts in a batch: those added (`came`) and those removed (`went`), all of them few or many.

    `are_there`: whether the view may have rows of the added facts.
    """

    came: Held
    went: Held | None = None
    are_there: bool = False

    @property
    def are_few(self) -> bool:
        """True if they are in this process."""
        return self.came.table is not None

    @property
    def shown(self) -> Held | None:
        """Those whose rows may be in the view; None if surely none of them is."""
        return self.came if self.are_there else self.went


def together(parts: Sequence[Facts], key: Sequence[str]) -> tuple[pa.Table, pa.Table | None]:
    """Return the added facts of all parts, few of them, each once; and the removed ones."""
    came = pa.concat_tables([part.came.table for part in parts], promote_options="default")
    if len(parts) > 1:
        numbers = came.select(list(key)).append_column("_n", pa.array(np.arange(came.num_rows)))
        came = came.take(numbers.group_by(list(key)).aggregate([("_n", "min")])["_n_min"])
    gone = [part.went.table for part in parts if part.went is not None]
    return came, pa.concat_tables(gone, promote_options="default") if gone else None


@dataclass(frozen=True)
class FewJoined:
    """Join of few facts into a view. `facts` and `view`: their tables, at one version each.

    `dimensions`: the table that each join searches, and its columns: column of the dimension ->
    plain column of the facts.
    """

    session: SparkSession
    operator: LookupJoin
    facts: SearchedVersion
    view: SearchedVersion
    dimensions: Mapping[Join, tuple[SearchedVersion, Mapping[str, str]]]

    def changelog(
        self, came: pa.Table, went: pa.Table | None, numbered: Numbered, *, are_new: bool
    ) -> ChangelogRows | None:
        """Compute the view's changelog; return None if this process can't decide it.

        `are_new`: the view surely has no row of any of the facts.
        """
        every, stands = came, pa.array(np.ones(came.num_rows, bool))
        if went is not None:
            every = pa.concat_tables([every, went], promote_options="default")
            gone = pa.array(np.zeros(went.num_rows, bool))
            stands = pa.concat_arrays([stands, gone])
        joined = self._joined(every.append_column(STANDS, stands))
        if joined is None:
            return None
        if are_new:
            rows = self._handed(joined.filter(joined[STANDS])).where(self.operator.condition())
            shown = [column.alias(name) for name, column in self.operator.outputs().items()]
            return inserted(numbered(rows.select(*shown)))
        return self._compared(to_arrow(numbered(self._guarded(self._handed(joined)))))

    def _joined(self, facts: pa.Table) -> pa.Table | None:
        """Return each fact with a struct per dimension, null if the fact has no row there."""
        for join in self.operator.spec.join:
            searched, columns = self.dimensions[join]
            rows = searched.rows([{c: facts[fact] for c, fact in columns.items()}])
            if rows is None:
                return None
            if self.operator.has_history(join):
                rows = rows.filter(rows[CURRENT])
            index = matching(facts, rows, columns)
            if index is None:
                return None
            found = pa.StructArray.from_arrays(
                [column.combine_chunks() for column in rows.columns], rows.column_names
            ).take(index)
            facts = facts.append_column(join.row, found)
            if join.type == "inner":
                stands = pc.and_(facts[STANDS], pc.is_valid(index))
                facts = facts.drop_columns([STANDS]).append_column(STANDS, stands)
        return facts

    def _handed(self, joined: pa.Table) -> DataFrame:
        """Return the joined facts as Spark's rows, prepared."""
        own = self.facts.types.add(STANDS, BooleanType())
        for join, (searched, _) in self.dimensions.items():
            types = searched.types
            own.add(join.row, StructType([types[name] for name in searched.columns]))
        schema = StructType([own[name] for name in joined.column_names])
        rows = self.session.createDataFrame(plain(joined), schema)
        return self.operator.prepare(self.operator.facts.id, rows)

    def _guarded(self, prepared: DataFrame) -> DataFrame:
        """Return output rows, evaluated only if they stand, and the group that each fact names."""
        stands = F.coalesce(F.when(F.col(STANDS), self.operator.condition()), F.lit(False))
        outputs = self.operator.outputs().items()
        shown = [F.when(stands, column).alias(name) for name, column in outputs]
        group = [F.col(f"`{c}`").alias(f"_group_{i}") for i, c in enumerate(self.operator.group)]
        return prepared.select(*shown, stands.alias(STANDS), *group)

    def _compared(self, every: pa.Table) -> pa.Table | None:
        group = list(self.operator.group)
        own = [f"_group_{i}" for i in range(len(group))]
        touched = every.select(own).rename_columns(group).group_by(group).aggregate([])
        if not has_plain_keys(touched, group):
            return None
        old = self.view.rows([{name: touched[name] for name in group}])
        if old is None:
            return None
        same = [touched.schema.field(name).type == old.schema.field(name).type for name in group]
        if not all(same):
            return None
        old = old.join(touched, group, join_type="left semi")
        return arrow_diff(old, every.filter(every[STANDS]).drop_columns([STANDS, *own]), group)
