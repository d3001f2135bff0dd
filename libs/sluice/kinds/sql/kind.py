"""`kind: sql` for the code that works on tables of any kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sluice.declare.column_lineage import InputColumn, MadeFrom
from sluice.declare.registry import Kind
from sluice.declare.table import Table
from sluice.kinds.sql import Sql

if TYPE_CHECKING:
    from sluice.declare.document import Where
    from sluice.declare.resolution import TableMistakes
    from sluice.declare.table import Graph
    from sluice.engine.plan import Node


class SqlKind(Kind):
    """Kind of views written as a query."""

    model = Sql

    def resolve(
        self, spec: Sql, inputs: Mapping[Where, Table], mistakes: TableMistakes
    ) -> Table | None:
        from sluice.kinds.sql.planning import resolve

        return resolve(spec, inputs, mistakes)

    def nodes(self, table: Table, graph: Graph) -> tuple[Node, ...]:
        from sluice.kinds.sql.operator import nodes

        return nodes(table, graph)

    def trace_columns(self, table: Table, inputs: Mapping[str, Table]) -> MadeFrom:
        from sqlglot import exp
        from sqlglot.lineage import lineage
        from sqlglot.optimizer.scope import build_scope

        from sluice.language.syntax import Verbatim

        spec = table.spec
        assert isinstance(spec, Sql)
        tree, _ = spec.query.resolve_names({name: inputs[name].columns for name in table.inputs})
        scope = build_scope(tree)
        found = {}
        for name in table.columns:
            nodes = lineage(name, tree, {}, scope=scope, dialect=Verbatim).walk()
            found[name] = frozenset(
                InputColumn(
                    f"{n.source.db}.{n.source.name}", n.name.rpartition(".")[2], is_same=False
                )
                for n in nodes
                if not n.downstream and isinstance(n.source, exp.Table) and n.source.db
            )
        return found
