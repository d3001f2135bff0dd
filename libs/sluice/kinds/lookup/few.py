"""The join of few facts in this process, and the difference that it makes.

Few facts match few rows of any dimension, so those rows are found and attached here. Spark then
gets one relation instead of one per dimension, and evaluates the view's expressions in one job. Its
result is compared with the view's old rows here.

Only equality of exact types is decided here, where equal values are the same values as in Spark; if
a join needs more, everything is left to Spark. Net changes and differences equal those of `net` and
`diff`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StructType

from sluice.changes.diff import CHANGE, WEIGHT, insertions
from sluice.changes.feed_columns import CHANGE_TYPE, COMES
from sluice.delta.reading.local import plain, to_arrow
from sluice.delta.reading.searched_version import SearchedVersion, is_exact
from sluice.engine.computing.batch_plan import ChangelogRows
from sluice.engine.query.operator import CURRENT
from sluice.kinds.lookup.operator import LookupJoin
from sluice.kinds.lookup.spec import Join

STANDS = "_sluice_stands"  # true if a fact exists now and every inner join has found its row
Numbered = Callable[[DataFrame], DataFrame]


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
        self, added: pa.Table, removed: pa.Table | None, numbered: Numbered, *, are_new: bool
    ) -> ChangelogRows | None:
        """Compute the view's changelog; return None if this process can't decide it.

        `are_new`: the view surely has no row of any of the facts.
        """
        every, stands = added, pa.array(np.ones(added.num_rows, bool))
        if removed is not None:
            every = pa.concat_tables([every, removed], promote_options="default")
            gone = pa.array(np.zeros(removed.num_rows, bool))
            stands = pa.concat_arrays([stands, gone])
        joined = self._attach_dimensions(every.append_column(STANDS, stands))
        if joined is None:
            return None
        if are_new:
            rows = self._hand_over(joined.filter(joined[STANDS])).where(self.operator.condition())
            shown = [column.alias(name) for name, column in self.operator.outputs().items()]
            return insertions(numbered(rows.select(*shown)))
        return self._compare(to_arrow(numbered(self._guard(self._hand_over(joined)))))

    def _attach_dimensions(self, facts: pa.Table) -> pa.Table | None:
        """Return each fact with a struct per dimension, null if the fact has no row there."""
        for join in self.operator.spec.join:
            searched, columns = self.dimensions[join]
            rows = searched.rows([{c: facts[fact] for c, fact in columns.items()}])
            if rows is None:
                return None
            if self.operator.has_history(join):
                rows = rows.filter(rows[CURRENT])
            index = match_rows(facts, rows, columns)
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

    def _hand_over(self, joined: pa.Table) -> DataFrame:
        """Return the joined facts as Spark's rows, prepared."""
        own = self.facts.types.add(STANDS, BooleanType())
        for join, (searched, _) in self.dimensions.items():
            types = searched.types
            own.add(join.row, StructType([types[name] for name in searched.columns]))
        schema = StructType([own[name] for name in joined.column_names])
        rows = self.session.createDataFrame(plain(joined), schema)
        return self.operator.prepare(self.operator.facts.id, rows)

    def _guard(self, prepared: DataFrame) -> DataFrame:
        """Return output rows, evaluated only if they stand, and the group that each fact names."""
        stands = F.coalesce(F.when(F.col(STANDS), self.operator.condition()), F.lit(False))
        outputs = self.operator.outputs().items()
        shown = [F.when(stands, column).alias(name) for name, column in outputs]
        group = [F.col(f"`{c}`").alias(f"_group_{i}") for i, c in enumerate(self.operator.group)]
        return prepared.select(*shown, stands.alias(STANDS), *group)

    def _compare(self, every: pa.Table) -> pa.Table | None:
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


_LEFT, _RIGHT = "_left", "_right"


def match_rows(facts: pa.Table, rows: pa.Table, on: Mapping[str, str]) -> pa.Array | None:
    """Return the number of the row that each fact equals; null if there is none.

    `on`: column of the rows -> column of the facts; a null equals nothing. Returns None if a fact
    has several rows, or if equality can't be decided here.
    """
    left, right = [facts[fact] for fact in on.values()], [rows[column] for column in on]
    types = [_comparable_type(a.type, b.type) for a, b in zip(left, right, strict=True)]
    if any(type_ is None for type_ in types):
        return None
    keys = [f"_{n}" for n in range(len(types))]
    found, other = (
        pa.Table.from_pydict({k: c.cast(t) for k, c, t in zip(keys, side, types, strict=True)})
        for side in (left, right)
    )
    found = found.append_column(_LEFT, pa.array(np.arange(facts.num_rows)))
    other = other.append_column(_RIGHT, pa.array(np.arange(rows.num_rows)))
    joined = found.join(other, keys, join_type="left outer")
    if joined.num_rows != facts.num_rows:
        return None
    return pa.concat_arrays(joined.sort_by(_LEFT)[_RIGHT].chunks or [pa.array([], pa.int64())])


def _comparable_type(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """Return the type in which values of both compare as they do in Spark."""
    if pa.types.is_integer(a) and pa.types.is_integer(b):
        return pa.int64()
    return a if a == b and is_exact(a) else None


_OLD, _NEW = "_old", "_new"


def arrow_diff(old: pa.Table, new: pa.Table, key: Sequence[str]) -> pa.Table | None:
    """Return the columns of `new` and CHANGE; None if a column is nested or a key is not plain."""
    if any(map(pa.types.is_nested, new.schema.types)) or not (
        has_plain_keys(old, key) and has_plain_keys(new, key)
    ):
        return None
    old = old.select(new.column_names).cast(new.schema)
    pairs = _number_rows(old, key, _OLD).join(
        _number_rows(new, key, _NEW), list(key), None, "full outer"
    )
    both = pairs.filter(pc.field(_OLD).is_valid() & pc.field(_NEW).is_valid())
    was, becomes = old.take(both[_OLD]), new.take(both[_NEW])
    parts = {
        "insert": new.take(pairs.filter(pc.field(_OLD).is_null())[_NEW]),
        "update": becomes.filter(_differ(was, becomes)),
        "delete": old.take(pairs.filter(pc.field(_NEW).is_null())[_OLD]),
    }
    changes = [
        rows.append_column(CHANGE, pa.array([change] * rows.num_rows, pa.string()))
        for change, rows in parts.items()
    ]
    return pa.concat_tables(changes)


def arrow_net(feed: pa.Table, columns: Sequence[str]) -> pa.Table | None:
    """Return `columns` and WEIGHT of the changes, as `net` does; None if a value is not plain."""
    rows = feed.select(list(columns))
    if not all(map(_is_plain, rows.schema.types)):
        return None
    comes = pc.is_in(feed[CHANGE_TYPE], pa.array(COMES))
    rows = rows.append_column(WEIGHT, pc.if_else(comes, 1, -1))
    sums = rows.group_by(list(columns)).aggregate([(WEIGHT, "sum")])
    sums = sums.rename_columns({f"{WEIGHT}_sum": WEIGHT})
    return sums.filter(pc.field(WEIGHT) != 0)


def has_plain_keys(rows: pa.Table, key: Sequence[str]) -> bool:
    """True if equal keys are the same values: no nulls, no floating point, nothing nested."""
    columns = [rows[name] for name in key]
    return all(_is_plain(c.type) and not c.null_count for c in columns)


def _is_plain(type_: pa.DataType) -> bool:
    return not (pa.types.is_floating(type_) or pa.types.is_nested(type_))


def _number_rows(rows: pa.Table, key: Sequence[str], name: str) -> pa.Table:
    return rows.select(list(key)).append_column(name, pa.array(np.arange(rows.num_rows)))


def _differ(old: pa.Table, new: pa.Table) -> pa.Array:
    """Return, for each pair of rows, whether any value differs; NaN is a value like any other."""
    found = pa.array(np.zeros(new.num_rows, bool))
    for name in new.column_names:
        a, b = old[name], new[name]
        differs = pc.fill_null(pc.not_equal(a, b), False)
        if pa.types.is_floating(b.type):
            are_nan = pc.and_(pc.fill_null(pc.is_nan(a), False), pc.fill_null(pc.is_nan(b), False))
            differs = pc.and_not(differs, are_nan)
        found = pc.or_(found, pc.or_(differs, pc.xor(pc.is_null(a), pc.is_null(b))))
    return found
