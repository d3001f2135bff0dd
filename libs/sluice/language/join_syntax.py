"""Join conditions, split into (fact expression, dimension column) pairs."""

from collections.abc import Iterator

from sqlglot import exp

from sluice.language import syntax


def read_pairs(text: str, dimension: str) -> list[tuple[syntax.Tree, str]]:
    """Return the equalities of `a = dim.b and c = dim.d`; ValueError names a part that is none."""
    tree = syntax.parse(text)
    return [_pair(part, dimension) for part in _conjuncts(tree)]


def _conjuncts(tree: syntax.Tree) -> Iterator[syntax.Tree]:
    if isinstance(tree, exp.And):
        yield from _conjuncts(tree.this)
        yield from _conjuncts(tree.expression)
    elif isinstance(tree, exp.Paren):
        yield from _conjuncts(tree.this)
    else:
        yield tree


def _pair(part: syntax.Tree, dimension: str) -> tuple[syntax.Tree, str]:
    text = syntax.render(part)
    if not isinstance(part, exp.EQ):
        raise ValueError(
            f"{text!r} is not `<fact expression> = {dimension}.<column>`: "
            "only equalities can join here"
        )
    left, right = part.this.unnest(), part.expression.unnest()
    if _is_column_of(left, dimension):
        left, right = right, left
    if not _is_column_of(right, dimension):
        raise ValueError(
            f"{text!r}: one side must be a column of the dimension, as {dimension}.<column>"
        )
    if any(column.table == dimension for column in left.find_all(exp.Column)):
        raise ValueError(f"{text!r}: the fact's side reads {dimension} as well")
    return left, right.name


def _is_column_of(node: syntax.Tree, dimension: str) -> bool:
    return isinstance(node, exp.Column) and node.table == dimension and not node.args.get("db")
