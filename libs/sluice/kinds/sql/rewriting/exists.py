"""EXISTS and IN as values, such as within OR: counts of the subquery's rows, compared with 0.

Both are true or false, as in Spark. `NOT IN` follows SQL's rule for nulls: it is false if x or one
of the values is null and there are values.
"""

from sqlglot import exp

from sluice.kinds.sql.reading.aggregates import has_aggregates
from sluice.kinds.sql.reading.trees import Refused
from sluice.kinds.sql.rewriting.correlated import is_alone, is_closed, loosened
from sluice.language.syntax import Tree

ZERO: Tree = exp.Literal.number(0)
ROWS = "rows_of"  # alias of an unchanged subquery
GROUPS = "groups_of"  # alias of one with groups that are correlated to the outer query


def counted(tree: Tree) -> Tree:
    """Return a copy of an expression with scalar subqueries instead of EXISTS and IN."""
    holder = exp.Paren(this=tree.copy())
    for negation in [n for n in holder.find_all(exp.Not) if _is_outermost(n)]:
        _push_down(negation)
    for node in [n for n in holder.find_all(exp.Exists, exp.In) if _is_outermost(n)]:
        if isinstance(node, exp.Exists):
            node.replace(exp.Paren(this=_is_any(_count(node.this, []))))
        elif isinstance(node, exp.In) and node.args.get("query"):
            negated = isinstance(node.parent, exp.Not)
            node.replace(exp.Paren(this=_among(node, may_be_unknown=negated)))
    found: Tree = holder.this
    return found


def _push_down(negation: Tree) -> None:
    """Put a negation before each part of an AND or OR in which a query occurs."""
    inner = negation.this.unnest()
    if isinstance(inner, exp.In):
        negation.set("this", inner)
    elif not inner.find(exp.In):
        return
    elif isinstance(inner, exp.And | exp.Or):
        parts = [exp.Not(this=exp.Paren(this=p.copy())) for p in (inner.this, inner.expression)]
        turned = exp.Or if isinstance(inner, exp.And) else exp.And
        negation.replace(exp.Paren(this=turned(this=parts[0], expression=parts[1])))
        for part in parts:
            _push_down(part)
    elif isinstance(inner, exp.Not):
        negation.replace(exp.Paren(this=inner.this.copy()))


def _is_outermost(node: Tree) -> bool:
    return node.find_ancestor(exp.Select, exp.SetOperation) is None


def _is_any(count: Tree) -> Tree:
    return exp.GT(this=count, expression=ZERO.copy())


def _among(node: exp.In, *, may_be_unknown: bool) -> Tree:
    """Return `x IN (query)`; where it is negated, true also if a null leaves it open."""
    value, query = node.this, _open(node.args["query"])
    select = query.this if isinstance(query, exp.Subquery) else query
    if not isinstance(select, exp.Query) or len(select.selects) != 1 or has_aggregates([value]):
        raise Refused(
            node,
            "IN inside another condition must compare one column, no aggregate, with one column",
        )
    (column,) = (item.unalias() for item in select.selects)
    equal = exp.EQ(this=column.copy(), expression=value.copy())
    found = _is_any(_count(query, [equal]))
    if not may_be_unknown:
        return found
    null = exp.Is(this=column.copy(), expression=exp.Null())
    both = exp.And(
        this=exp.Is(this=value.copy(), expression=exp.Null()), expression=_is_any(_count(query, []))
    )
    unknown = exp.Or(this=both, expression=_is_any(_count(query, [null])))
    return exp.Or(this=found, expression=unknown)


def _count(query: Tree, more: list[Tree]) -> Tree:
    """Return the number of a subquery's rows that meet further conditions, as a subquery."""
    query = _open(query)
    select = query.this if isinstance(query, exp.Subquery) else query
    if not isinstance(select, exp.Select) or is_closed(select):
        what = "EXISTS and IN over a query with groups, DISTINCT, LIMIT or a set operation"
        raise Refused(
            query, f"{what} are supported as conditions of WHERE, not inside other conditions"
        )
    found = select.copy()
    found.set("expressions", [exp.Anonymous(this="count", expressions=[exp.Star()])])
    found.set("order", None)
    for condition in more:
        where = found.args.get("where")
        both = (
            exp.And(this=exp.Paren(this=where.this), expression=condition) if where else condition
        )
        found.set("where", exp.Where(this=both))
    return exp.Subquery(this=found)


def _open(query: Tree) -> Tree:
    """Return a query as a SELECT from it, to which conditions can be added."""
    select = query.this if isinstance(query, exp.Subquery) else query
    is_open = isinstance(select, exp.Select) and not is_closed(select)
    if is_open or not isinstance(select, exp.Query):
        return query
    if not is_alone(select):
        return loosened(select, GROUPS) if isinstance(select, exp.Select) else query
    rows = exp.Subquery(this=select.copy(), alias=exp.TableAlias(this=exp.to_identifier(ROWS)))
    shown = [exp.column(name, ROWS) for name in select.named_selects]
    return exp.Select(expressions=shown, from_=exp.From(this=rows))
