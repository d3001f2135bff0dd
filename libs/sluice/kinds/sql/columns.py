"""Columns that the columns of a query are made from, if it is computed whole."""

from collections.abc import Mapping

from sqlglot import exp
from sqlglot.lineage import lineage
from sqlglot.optimizer.scope import build_scope

from sluice.declare.meaning.column_lineage import InputColumn, MadeFrom
from sluice.declare.table import Table
from sluice.kinds.sql.spec import Sql
from sluice.language.syntax import Verbatim


def columns(table: Table, inputs: Mapping[str, Table]) -> MadeFrom:
    """Return the columns of stored tables that each column of the query reads."""
    spec = table.spec
    assert isinstance(spec, Sql)
    tree, _ = spec.query.qualified({name: inputs[name].columns for name in table.inputs})
    scope = build_scope(tree)
    found = {}
    for name in table.columns:
        nodes = lineage(name, tree, {}, scope=scope, dialect=Verbatim).walk()
        found[name] = frozenset(
            InputColumn(f"{n.source.db}.{n.source.name}", n.name.rpartition(".")[2], is_same=False)
            for n in nodes
            if not n.downstream and isinstance(n.source, exp.Table) and n.source.db
        )
    return found
