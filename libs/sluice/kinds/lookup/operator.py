"""Lookup: facts joined with dimensions, on any expression of the fact.

After KIP-99 (Kafka Streams' global tables): dimensions are small next to the facts, so they are
broadcast and the facts are not shuffled for it. A null key matches nothing. By default only facts
drive the output, and each row keeps the number of the batch that joined it. With `refresh`, or as
of event time, a dimension's change corrects the facts that it concerns. The rows of such a view are
filed in buckets by their join values, so a correction rewrites few of them.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from sluice.declare.table import Table, carried_columns
from sluice.engine.operator import InputRows, Operator, names, union, within
from sluice.engine.tracing import NTH, Groups, Unmatched
from sluice.kinds.lookup import Join, Lookup
from sluice.language import syntax
from sluice.language.expression import Expression
from sluice.language.names import COLUMNS, CURRENT

BUCKET = "_sluice_bucket"
BUCKETS = {1: 64, 2: 8, 3: 4}  # for each dimension, by the number of dimensions


class LookupJoin(Operator):
    """One output row per fact (inner: only if every inner join matches)."""

    row_wise = True

    def __init__(self, view: Table, facts: Table, dimensions: Mapping[str, Table]):
        """Take `dimensions` by their name in the configuration: tables or dimension views."""
        assert isinstance(view.spec, Lookup)
        self.view, self.facts, self.spec = view, facts, view.spec
        self._dimensions = dimensions
        ids = tuple(dict.fromkeys(t.id for t in dimensions.values()))
        self.follows_references = self.spec.refresh or self.spec.as_of == "event_time"
        self.inputs = (facts.id,)
        self.references = ids
        self._carried = carried_columns(view, facts)
        bucket = (BUCKET,) if self.follows_references else ()
        self.group = self.key = (*self._carried, *bucket)

    def columns(self, name: str) -> tuple[str, ...]:
        if name != self.facts.id:
            return tuple(sorted(self._dimension_columns(name)))
        used = {*self.facts.key}
        for join in self.spec.join:
            for fact, _ in join.on:
                used |= fact.reads(self.facts.columns)
        if self.spec.as_of == "event_time":
            used.add(self._time)
        return tuple(sorted(used | (self._find_used() & set(self.facts.columns))))

    def map_to_group(self, name: str) -> Sequence[Mapping[str, str]]:
        return [{source: out for out, source in self._carried.items()}]

    def prepare(self, name: str, rows: DataFrame) -> DataFrame:
        hidden = [
            F.col(f"`{source}`").alias(out)
            for out, source in self._carried.items()
            if out not in rows.columns
        ]
        bucket = [self._bucket().alias(BUCKET)] if self.follows_references else []
        return rows.select("*", *hidden, *bucket)

    def combine(self, prepared: InputRows, references: InputRows) -> DataFrame:
        rows = prepared[self.facts.id]
        for join in self.spec.join:
            rows = self.join_dimension(rows, join, references[self.dimension(join).id])
        rows = rows.where(self.condition()) if self.spec.where else rows
        return rows.select(*[column.alias(name) for name, column in self.outputs().items()])

    def condition(self) -> Column:
        """Return the view's condition, given facts that hold each dimension's row as a struct."""
        return self._joined_value(self.spec.where) if self.spec.where else F.lit(True)

    def outputs(self) -> dict[str, Column]:
        """Return the view's columns, given facts that hold each dimension's row as a struct."""
        hidden = [c for c in self.key if c not in self.view.columns]
        shown = {c: self._show(c) for c in self.view.columns}
        return {**shown, **{c: F.col(f"`{c}`") for c in hidden}}

    def dimension(self, join: Join) -> Table:
        """Return the dimension, or the dimension view, in which a join looks its facts up."""
        return self._dimensions[join.dimension]

    def changed_keys(self, changes: InputRows) -> dict[Join, DataFrame]:
        """Return, for each join, the distinct keys of its dimension's old and new images."""
        found = {}
        for join in self.spec.join:
            changed = changes.get(self.dimension(join).id)
            if changed is not None:
                keys = [F.col(f"`{c}`").alias(f"_d{i}") for i, (_, c) in _on(join)]
                found[join] = changed.select(*keys).dropna().distinct()
        return found

    def find_concerned(
        self, facts: DataFrame, keys: Mapping[Join, DataFrame], bounds: Mapping[Join, Column]
    ) -> DataFrame:
        """Return the facts that are joined on one of these keys.

        `bounds`: for a join, a condition on its keys by which a scan skips most facts.
        """
        found = []
        for join, changed in keys.items():
            lookups = [F.expr(fact.sql).alias(f"_d{i}") for i, (fact, _) in _on(join)]
            rows = facts.select("*", *lookups)
            rows = rows.where(bounds[join]) if join in bounds else rows
            columns = tuple(f"_d{i}" for i, _ in _on(join))
            found.append(within(rows, changed, columns).drop(*columns))
        return union(found).dropDuplicates(list(self.facts.key))

    def _bucket(self) -> Column:
        size = BUCKETS.get(len(self.spec.join), 2)
        number = F.lit(0)
        for join in self.spec.join:
            values = [F.expr(fact.sql) for _, (fact, _) in _on(join)]
            number = number * size + F.pmod(F.xxhash64(*values), F.lit(size))
        return number.cast("int")

    def join_dimension(self, rows: DataFrame, join: Join, dimension: DataFrame) -> DataFrame:
        """Return facts with the dimension's row that a join finds, as a struct."""
        on = [
            (F.expr(fact.sql), F.col(f"`{c}`").alias(f"_d{i}"), f"_d{i}")
            for i, (fact, c) in _on(join)
        ]
        struct = F.struct(*names(tuple(sorted(dimension.columns)))).alias(join.row)
        if self.has_history(join) and self.spec.as_of == "latest":
            dimension = dimension.where(CURRENT)
        right = dimension.select(*[column for _, column, _ in on], struct)
        condition = F.lit(True)
        for fact, _, name in on:
            condition = condition & (fact == F.col(name))
        if self.spec.as_of == "event_time" and self.has_history(join):
            condition = condition & self._valid(join)
        joined = rows.join(right, condition, join.type)
        return joined.drop(*[name for _, _, name in on])

    def has_history(self, join: Join) -> bool:
        """True if a join's dimension has several versions of a key."""
        spec = self.dimension(join).spec
        return spec.has_history

    def _valid(self, join: Join) -> Column:
        time, row = F.col(f"`{self._time}`"), F.col(join.row)
        until = row.getField("valid_to")
        return (time >= row.getField("valid_from")) & (until.isNull() | (time < until))

    @property
    def _time(self) -> str:
        assert self.spec.time is not None
        return self.spec.time

    def _show(self, name: str) -> Column:
        if self.spec.select is not None:
            return self._joined_value(self.spec.select[name]).alias(name)
        if name in self.facts.columns:
            return F.col(f"`{name}`")
        joins = [j for j in self.spec.join if name in self.dimension(j).columns]
        return F.col(joins[0].row).getField(name).alias(name)

    def _joined_value(self, expression: Expression) -> Column:
        """Return an expression over joined facts, in which dimensions' columns are fields."""
        rows = {join.qualifier: join.row for join in self.spec.join}
        return F.expr(syntax.requalify(expression.sql, rows))

    def _find_used(self) -> set[str]:
        visible = self.facts.columns
        qualifiers = {j.qualifier for j in self.spec.join}
        found: set[str] = set(self.view.columns) if self.spec.select is None else set()
        condition = (self.spec.where,) if self.spec.where else ()
        for expression in (*(self.spec.select or {}).values(), *condition):
            qualified = {c for c in expression.columns if c.partition(".")[0] in qualifiers}
            own = expression.columns - qualified
            found |= qualified | {c if c in visible else c.partition(".")[0] for c in own}
        return found

    def _dimension_columns(self, table_id: str) -> set[str]:
        used: set[str] = set()
        for join in self.spec.join:
            table = self.dimension(join)
            if table.id != table_id:
                continue
            used |= {column for _, column in join.on}
            used |= {*COLUMNS} if self.has_history(join) else set()
            prefix = f"{join.qualifier}."
            used_here = {c.removeprefix(prefix) for c in self._find_used() if c.startswith(prefix)}
            qualified = {c if c in table.columns else c.split(".")[0] for c in used_here}
            plain = self._find_used() & set(table.columns) if self.spec.select is None else set()
            used |= qualified | plain
        return used


def _on(join: Join) -> list[tuple[int, tuple[Expression, str]]]:
    return list(enumerate(join.on))


def trace_rows(operator: Operator, groups: Groups) -> InputRows:
    """Return the fact of each row, and what each join finds for it."""
    assert isinstance(operator, LookupJoin)
    facts, found = groups.prepared[operator.facts.id], defaultdict[str, list[DataFrame]](list)
    for join in operator.spec.join:
        dimension = operator.dimension(join).id
        joined = operator.join_dimension(facts, join, groups.references[dimension])
        nth = joined.select(F.col(join.row).getField(NTH).alias(NTH))
        found[dimension].append(nth.where(F.col(NTH).isNotNull()))
    return {operator.facts.id: facts} | {name: union(some) for name, some in found.items()}


def find_unmatched(
    operator: Operator, wanted: InputRows, prepared: InputRows, references: InputRows
) -> Iterator[Unmatched]:
    """Yield, for each inner join, the keys of facts that find nothing."""
    assert isinstance(operator, LookupJoin)
    facts = wanted.get(operator.facts.id)
    for join in operator.spec.join:
        if facts is not None and join.type == "inner":
            dimension = operator.dimension(join)
            kept = join.model_copy(update={"type": "left"})
            joined = operator.join_dimension(facts, kept, references[dimension.id])
            keys = [F.expr(fact.sql).alias(column) for fact, column in join.on]
            missed = joined.where(F.col(join.row).isNull()).select(*keys)
            pairs = (f"{fact.text} = {join.qualifier}.{column}" for fact, column in join.on)
            text = f"join {join.qualifier} on {' and '.join(pairs)}"
            yield Unmatched(dimension.id, text, missed.distinct())
