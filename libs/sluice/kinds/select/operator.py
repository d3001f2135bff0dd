"""Select: the WHERE and SELECT [DISTINCT] of SQL over one table.

Without `distinct` each output row comes from one input row and has its identity. With it, a row is
there while any input row gives it, so the group of a row are all of its columns.
"""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from sluice.declare.table import Table
from sluice.engine.query.operator import Operator, Rows, names, passed_on
from sluice.kinds.select.resolve import keys_of
from sluice.kinds.select.spec import Selection


class SelectedRows(Operator):
    """The rows that meet the condition, as they are selected."""

    def __init__(self, view: Table, source: Table):
        assert isinstance(view.spec, Selection)
        self.view, self.source, self.spec = view, source, view.spec
        self.inputs = (source.id,)
        self.group = self.key = view.key
        self.row_wise = self.mirror = not self.spec.distinct

    def columns(self, name: str) -> tuple[str, ...]:
        visible = self.source.columns
        used = set() if self.spec.distinct else {*self.source.key}
        used |= set(visible) if self.spec.select is None else set()
        expressions = [*(self.spec.select or {}).values(), *filter(None, [self.spec.where])]
        read = used.union(*(e.reads(visible) for e in expressions))
        return tuple(sorted(read or self.source.key))

    def named(self, name: str) -> Sequence[Mapping[str, str]]:
        shown = self.spec.select or {}
        known = {shown[c].plain_column if c in shown else c: c for c in self.group}
        found = {column: c for column, c in known.items() if column}
        return [found] if found else ()

    def prepare(self, name: str, rows: DataFrame) -> DataFrame:
        met = rows.where(self.spec.where.sql) if self.spec.where else rows
        return met.select(*self._outputs(), *names(tuple(passed_on(rows, self.columns(name)))))

    def combine(self, prepared: Rows, references: Rows) -> DataFrame:
        rows = prepared[self.source.id].select(*names(self._names))
        return rows.distinct() if self.spec.distinct else rows

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.view.columns, *self.key)))

    def _outputs(self) -> list[Column]:
        select = self.spec.select or {}
        shown = {
            c: F.expr(select[c].sql) if c in select else F.col(f"`{c}`") for c in self.view.columns
        }
        pairs = {} if self.spec.distinct else keys_of(self.spec, self.source)
        hidden = {out: F.col(f"`{name}`") for out, name in pairs.items() if out not in shown}
        return [column.alias(name) for name, column in {**shown, **hidden}.items()]
