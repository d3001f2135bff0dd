"""Rows that the query itself writes: VALUES, and a SELECT without FROM.

Constants need a table: the single, empty group of a table that the query names. A join absorbs them
without it.
"""

from collections.abc import Sequence

from sqlglot import exp

from sluice.kinds.sql.clauses.grouping import EVERY
from sluice.kinds.sql.reading.trees import Refused, columns_in, sql
from sluice.kinds.sql.relations.chain import Chain
from sluice.kinds.sql.relations.sources import AnyRows, ExplodedRows, Grouped, QueryRows, TableRows
from sluice.language.syntax import Tree

NEVER: Tree = exp.Boolean(this=False)


def one_row(table: TableRows) -> AnyRows:
    """Return one row without columns, even for an empty table."""
    counted = {"n": exp.Anonymous(this="count", expressions=[exp.Star()])}
    every = {EVERY: exp.Literal.number(1)}
    return QueryRows(Grouped(table, (NEVER,), every, counted, is_whole=True), {})


def values(chain: Chain, table: TableRows, tree: exp.Values, names: Sequence[str]) -> AnyRows:
    """Return the rows of VALUES; `names`: those of its columns, else col1, col2 and so on."""
    rows = [list(e.expressions) if isinstance(e, exp.Tuple) else [e] for e in tree.expressions]
    names = names or [f"col{i + 1}" for i in range(len(rows[0]))]
    if any(len(row) != len(names) for row in rows):
        raise Refused(tree, "each row of VALUES needs a value for each column")
    for value in (value for row in rows for value in row):
        if next(columns_in(value), None) is not None:
            raise Refused(value, f"{sql(value)!r}: VALUES must be constants")
    if len(rows) == 1:
        return QueryRows(one_row(table).source, dict(zip(names, rows[0], strict=True)))
    single = QueryRows(one_row(table).source, {"one": exp.Literal.number(1)})
    number = chain.number()
    stored = chain.stored(single)
    source = ExplodedRows(
        stored.source, (), _numbers(len(rows)), f"item_{number}", f"place_{number}"
    )
    return QueryRows(
        source,
        {name: _chosen(source.item, [row[i] for row in rows]) for i, name in enumerate(names)},
    )


def _numbers(count: int) -> Tree:
    bounds = [exp.Literal.number(0), exp.Literal.number(count - 1)]
    return exp.cast(exp.Anonymous(this="sequence", expressions=bounds), "array<int>")


def _chosen(item: str, each: Sequence[Tree]) -> Tree:
    """Return the expression of a column: the value of the row with that number."""
    branches = [
        exp.If(this=exp.Literal.number(i), true=value.copy()) for i, value in enumerate(each)
    ]
    return exp.Case(this=exp.column(item), ifs=branches)
