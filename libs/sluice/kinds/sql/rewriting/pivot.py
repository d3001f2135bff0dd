"""PIVOT as a GROUP BY: a column for each value and aggregate, over the rows of that value."""

from collections.abc import Collection, Iterator, Mapping

from sqlglot import exp

from sluice.kinds.sql.reading.aggregates import is_aggregate
from sluice.kinds.sql.reading.trees import Refused, columns_in, shared_part
from sluice.language import syntax
from sluice.language.names import NAME
from sluice.language.syntax import Tree


def with_groups(tree: exp.Query, columns: Mapping[str, Collection[str]]) -> None:
    """Write each PIVOT of a query as groups. `columns`: of the stored tables, by id.

    The query is resolved: each PIVOT has an alias. Raises Refused for UNPIVOT, and for a value
    without a column name.
    """
    for pivot in [*tree.find_all(exp.Pivot)]:
        source = pivot.parent
        if pivot.args.get("unpivot"):
            raise Refused(
                pivot, "UNPIVOT can't be maintained incrementally: write explode(array(...))"
            )
        assert isinstance(source, exp.Table | exp.Subquery)
        used = {c.name for part in (*pivot.expressions, *pivot.fields) for c in columns_in(part)}
        alias = source.alias_or_name
        names = _columns_of(source, columns)
        keys: list[Tree] = [exp.column(n, alias) for n in names if n not in used]
        rows = source.copy()
        rows.set("pivots", None)
        shown = [*(exp.alias_(k.copy(), k.name) for k in keys), *_shown(pivot)]
        group = exp.Group(expressions=keys) if keys else None
        select = exp.Select(expressions=shown, from_=exp.From(this=rows), group=group)
        source.replace(exp.Subquery(this=select, alias=pivot.args["alias"].copy()))


def _columns_of(
    source: exp.Table | exp.Subquery, columns: Mapping[str, Collection[str]]
) -> Collection[str]:
    if isinstance(source, exp.Subquery):
        return source.named_selects
    cte = shared_part(source)
    return cte.this.named_selects if cte else columns[f"{source.db}.{source.name}"]


def _shown(pivot: exp.Pivot) -> Iterator[Tree]:
    """Yield the column of each value and aggregate, null where no row has that value."""
    names = iter(pivot.args["columns"])
    (field,) = pivot.fields
    for value in field.expressions:
        condition = _is(field.this, value.unalias())
        for item in pivot.expressions:
            name = next(names).name
            if not NAME.fullmatch(name):
                what = f"{syntax.render(value)!r} of PIVOT has no usable column name"
                raise Refused(pivot, f"{what}: name the value or the aggregate with AS")
            is_there = exp.GT(
                this=_filtered(exp.Anonymous(this="count", expressions=[exp.Star()]), condition),
                expression=exp.Literal.number(0),
            )
            found = exp.If(this=is_there, true=_filtered(item.unalias(), condition))
            yield exp.alias_(exp.Case(ifs=[found]), name)


def _is(column: Tree, value: Tree) -> Tree:
    if isinstance(column, exp.Tuple) and isinstance(value, exp.Tuple):
        pairs = zip(column.expressions, value.expressions, strict=True)
        return exp.and_(*(_is(one, other) for one, other in pairs), copy=False)
    return exp.NullSafeEQ(this=column.copy(), expression=value.copy())


def _filtered(tree: Tree, condition: Tree) -> Tree:
    """Return an expression whose aggregates use only the rows that meet that condition."""
    holder = exp.Paren(this=tree.copy())
    for call in [node for node in holder.walk() if is_aggregate(node)]:
        if not isinstance(call.parent, exp.Filter):
            where = exp.Where(this=condition.copy())
            call.replace(exp.Filter(this=call.copy(), expression=where))
    found: Tree = holder.this
    return found
