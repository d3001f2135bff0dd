"""Top-k: the first rows of each partition in an order, with their rank.

What Flink SQL calls Top-N and Kafka Streams proposes as `KTable.top`: the SQL pattern
`ROW_NUMBER() OVER (PARTITION BY p ORDER BY s, key) <= k`, kept up to date. Ties are broken by the
input's key, so the order is total. Spark keeps only the first k rows of every partition before it
shuffles (its window group limit), so a global ranking does not pull all rows into one task.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from sluice.operators import windows
from sluice.operators.identity import carried
from sluice.operators.operator import Operator, Retention, Rows, names, passed_on
from sluice.operators.order import by
from sluice.specs.graph import Table
from sluice.specs.topk import TopK

_RANK = "_sluice_rank"


class TopKRanking(Operator):
    """The rows of each partition from rank offset + 1 to offset + limit."""

    def __init__(self, view: Table, source: Table):
        assert isinstance(view.spec, TopK)
        self.view, self.source, self.spec = view, source, view.spec
        self.inputs = (source.id,)
        self._window = (windows.START, windows.END) if self.spec.window else ()
        self.group = (*self._window, *(p.name for p in self.spec.partition_by))
        self.key = view.key
        if self.spec.retention and self.spec.window:
            times = {source.id: (self.spec.window.time,)}
            self.retention = Retention(self.spec.retention, times)

    def columns(self, name: str) -> tuple[str, ...]:
        used = {*self.source.key}
        for named in self.spec.partition_by:
            used |= named.expression.reads(self.source.columns)
        for order in self.spec.order_by:
            used |= order.expression.reads(self.source.columns)
        if isinstance(self.spec.limit, str):
            used.add(self.spec.limit)
        if self.spec.window:
            used.add(self.spec.window.time)
        return tuple(sorted(used | self._selected_from()))

    def prepare(self, name: str, rows: DataFrame) -> DataFrame:
        windowed = rows
        if self.spec.window:
            windowed = windows.assign(rows, self.spec.window, self.spec.window.time)
        partition = [F.expr(p.expression.sql).alias(p.name) for p in self.spec.partition_by]
        order = [F.expr(k.expression.sql).alias(f"_o{i}") for i, k in enumerate(self.spec.order_by)]
        selected = [c.alias(f"_v_{n}") for n, c in self._selected().items()]
        limit = [F.col(f"`{self.spec.limit}`").alias("_limit")] if self._limit_is_column else []
        keys = [F.col(f"`{c}`").alias(f"_k{i}") for i, c in enumerate(self.source.key)]
        extra = passed_on(rows, self.columns(name))
        return windowed.select(*self._window, *partition, *order, *keys, *limit, *selected, *extra)

    def combine(self, prepared: Rows, references: Rows) -> DataFrame:
        rows = prepared[self.source.id]
        keys = enumerate(self.spec.order_by)
        order = [by(F.col(f"_o{i}"), k.descending, k.nulls_first) for i, k in keys]
        if self.spec.function == "row_number":
            order += [F.col(f"_k{i}") for i in range(len(self.source.key))]
        over = Window.partitionBy(*names(self.group)).orderBy(*order)
        rank = {"row_number": F.row_number, "rank": F.rank, "dense_rank": F.dense_rank}
        ranked = rows.withColumn(_RANK, rank[self.spec.function]().over(over))
        return ranked.where(self._within_limit()).select(*self._output())

    def _within_limit(self) -> Column:
        rank, offset = F.col(_RANK), self.spec.offset
        last = F.col("_limit") + offset if self._limit_is_column else F.lit(self._limit + offset)
        return (rank > offset) & (rank <= last) if offset else rank <= last

    def _output(self) -> list[Column]:
        shown = [self._shown(c) for c in self.view.columns]
        pairs = carried(self.view, self.source)
        hidden = [
            F.col(f"_k{self.source.key.index(source)}").alias(out)
            for out, source in pairs.items()
            if out not in self.view.columns
        ]
        return [*shown, *hidden]

    def _shown(self, name: str) -> Column:
        if name == self.spec.rank:
            return F.col(_RANK).cast("int").alias(name)
        if name in self.group:
            return F.col(f"`{name}`")
        return F.col(f"`_v_{name}`").alias(name)

    def _selected(self) -> dict[str, Column]:
        """The visible columns that are neither the group's nor the rank."""
        taken = {*self.group, self.spec.rank}
        if self.spec.select is not None:
            return {n: F.expr(e.sql) for n, e in self.spec.select.items() if n not in taken}
        return {n: F.col(f"`{n}`") for n in self.view.columns if n not in taken}

    def _selected_from(self) -> set[str]:
        if self.spec.select is not None:
            return set().union(*(e.reads(self.source.columns) for e in self.spec.select.values()))
        taken = {*self.group, self.spec.rank}
        return {n for n in self.view.columns if n not in taken}

    @property
    def _limit_is_column(self) -> bool:
        return isinstance(self.spec.limit, str)

    @property
    def _limit(self) -> int:
        assert isinstance(self.spec.limit, int)
        return self.spec.limit
