"""Select: the WHERE and SELECT [DISTINCT] of SQL over one table.

Without `distinct`, each output row comes from one input row and has its identity, and the number of
its element if an array is exploded. With it, a row exists while any input row yields it, so a row's
group consists of all its columns.
"""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from sluice.changes import departures
from sluice.declare.meaning import definition
from sluice.declare.table import Graph, Table
from sluice.engine.batch import Batch
from sluice.engine.operator import InputRows, Operator, names, passed_on
from sluice.engine.plan import Node
from sluice.engine.upkeep import Kept
from sluice.errors import QualityStop
from sluice.kinds.select import Selection, keys_of, place_of

PLACE_READ = "_sluice_place_read"


class SelectedRows(Operator):
    """The rows that meet the condition, with the selected columns."""

    def __init__(self, view: Table, source: Table):
        assert isinstance(view.spec, Selection)
        self.view, self.source, self.spec = view, source, view.spec
        self.inputs = (source.id,)
        self.place = place_of(source)
        self.group = self.key = view.key
        self.row_wise = self.mirror = not self.spec.distinct

    def columns(self, name: str) -> tuple[str, ...]:
        visible = self.source.columns
        used = set() if self.spec.distinct else {*self.source.key}
        used |= set(visible) if self.spec.select is None else set()
        array = self.spec.explode.of if self.spec.explode else None
        expressions = [*(self.spec.select or {}).values(), *filter(None, [self.spec.where, array])]
        read = used.union(*(e.reads(visible) for e in expressions)) - self._new
        return tuple(sorted(read or self.source.key))

    def map_to_group(self, name: str) -> Sequence[Mapping[str, str]]:
        shown = self.spec.select or {}
        known = {shown[c].plain_column if c in shown else c: c for c in self.group}
        found = {column: c for column, c in known.items() if column and column not in self._new}
        return [found] if found else ()

    def prepare(self, name: str, rows: DataFrame) -> DataFrame:
        every = self._explode(rows)
        met = every.where(self.spec.where.sql) if self.spec.where else every
        return met.select(*self._outputs(), *names(tuple(passed_on(rows, self.columns(name)))))

    def combine(self, prepared: InputRows, references: InputRows) -> DataFrame:
        every = dict.fromkeys((*self.view.columns, *self.key))
        rows = prepared[self.source.id].select(*names(tuple(every)))
        return rows.distinct() if self.spec.distinct else rows

    @property
    def _new(self) -> set[str]:
        """The columns that an exploded array brings."""
        array = self.spec.explode
        return {array.as_, *filter(None, [array.position]), self.place} if array else set()

    def _explode(self, rows: DataFrame) -> DataFrame:
        """Return a row for each element of the array, with its number."""
        array = self.spec.explode
        if array is None:
            return rows
        spread = F.posexplode_outer if array.outer else F.posexplode
        found = rows.select("*", spread(F.expr(array.of.sql)).alias(PLACE_READ, array.as_))
        if array.position:
            found = found.withColumn(array.position, F.col(PLACE_READ))
        return found.withColumn(self.place, F.coalesce(PLACE_READ, F.lit(-1)))

    def _outputs(self) -> list[Column]:
        select = self.spec.select or {}
        shown = {
            c: F.expr(select[c].sql) if c in select else F.col(f"`{c}`") for c in self.view.columns
        }
        pairs = {} if self.spec.distinct else keys_of(self.spec, self.source)
        hidden = {out: F.col(f"`{name}`") for out, name in pairs.items() if out not in shown}
        if self.spec.explode and not self.spec.distinct:
            hidden[self.place] = F.col(self.place)
        return [column.alias(name) for name, column in {**shown, **hidden}.items()]


class AppendedRows(Batch[SelectedRows]):
    """Batch of a view whose input may only have new rows."""

    def changes(self, part: Operator | None = None) -> dict[str, DataFrame]:
        """Return the net change of the input. Raises QualityStop if a row of it is gone."""
        found, view = super().changes(part), self.operator.view
        for name, rows in found.items():
            if name not in self.plan.growing and not departures(rows).isEmpty():
                raise QualityStop(
                    f"{self.operator.spec.read_at}{view.id} reads {name} as a stream, but rows of "
                    "it were changed or deleted",
                    hint=f"nothing was committed; read {name} as a table, not as a stream; or "
                    f"`sluice rebuild {view.id}` takes its rows as they are now",
                )
        return found


def nodes(table: Table, graph: Graph) -> tuple[Node, ...]:
    """Return the view itself."""
    (source,) = graph.inputs(table.id)
    rows = SelectedRows(table, source)
    batch = AppendedRows if rows.spec.changes == "refuse" else Batch
    return (Node(table.id, table, rows, definition(table), batch, Kept),)
