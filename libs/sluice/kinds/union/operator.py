"""Union: the UNION ALL of SQL. Each output row comes from one row of one input."""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from sluice.declare.meaning import definition
from sluice.declare.table import Graph, Table
from sluice.engine.batch import Batch
from sluice.engine.operator import InputRows, Operator, names, passed_on, union
from sluice.engine.plan import Node
from sluice.engine.upkeep import Kept
from sluice.kinds.union import NUMBER, Input, Union, keys_of


class UnionRows(Operator):
    """All rows of all inputs. A table that is listed twice contributes its rows twice."""

    row_wise = mirror = True

    def __init__(self, view: Table, tables: dict[str, Table]):
        """Take `tables` by id."""
        assert isinstance(view.spec, Union)
        self.view, self.spec = view, view.spec
        self.sources = [tables[view.reference(part.table)] for part in self.spec.from_]
        self.inputs = view.inputs
        self.group = self.key = view.key
        self._keys = keys_of(self.spec, self.sources)

    def columns(self, name: str) -> tuple[str, ...]:
        return tuple(sorted(set().union(*(self._reads(i) for i in self._parts(name)))))

    def map_to_group(self, name: str) -> Sequence[Mapping[str, str]]:
        own = ({source: out for out, source in self._keys[i].items()} for i in self._parts(name))
        return found if all(found := [*own]) else ()

    def prepare(self, name: str, rows: DataFrame) -> DataFrame:
        more = names(tuple(passed_on(rows, self.columns(name))))
        return union(
            [self._rows(i, rows).select(*self._outputs(i), *more) for i in self._parts(name)]
        )

    def combine(self, prepared: InputRows, references: InputRows) -> DataFrame:
        columns = names(tuple(dict.fromkeys((*self.view.columns, *self.key))))
        return union([rows.select(*columns) for rows in prepared.values()])

    def _parts(self, name: str) -> list[int]:
        return [i for i, source in enumerate(self.sources) if source.id == name]

    def _reads(self, i: int) -> set[str]:
        part, source = self.spec.from_[i], self.sources[i]
        used = {*source.key} | (set(source.columns) if part.select is None else set())
        expressions = [*(part.select or {}).values(), *filter(None, [part.where])]
        return used.union(*(e.reads(source.columns) for e in expressions))

    def _rows(self, i: int, rows: DataFrame) -> DataFrame:
        where = self.spec.from_[i].where
        return rows.where(where.sql) if where else rows

    def _outputs(self, i: int) -> list[Column]:
        part = self.spec.from_[i]
        types = {**self.view.columns, **self.view.hidden}
        shown = {c: self._show(i, part, c) for c in self.view.columns}
        own = {out: F.col(f"`{name}`") for out, name in self._keys[i].items()}
        keys = {name: own.get(name, F.lit(None)) for name in self.key if name != NUMBER}
        every = {NUMBER: F.lit(i), **keys, **shown}
        return [column.cast(types[name]).alias(name) for name, column in every.items()]

    def _show(self, i: int, part: Input, name: str) -> Column:
        if name == self.spec.tag:
            return F.lit(part.name)
        return F.expr(part.select[name].sql) if part.select else F.col(f"`{name}`")


def nodes(table: Table, graph: Graph) -> tuple[Node, ...]:
    """Return the view itself."""
    tables = {source.id: source for source in graph.inputs(table.id)}
    return (Node(table.id, table, UnionRows(table, tables), definition(table), Batch, Kept),)
