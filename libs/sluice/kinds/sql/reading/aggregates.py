"""Aggregates in expressions."""

from collections.abc import Iterable

from sqlglot import exp

from sluice.language.functions import AGGREGATES
from sluice.language.syntax import Tree

CALLED_WITH = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)


def has_aggregates(trees: Iterable[Tree]) -> bool:
    """True if any of the expressions has an aggregate outside windows and subqueries."""
    return any(is_aggregate(node) for tree in trees for node in tree.walk(prune=is_query))


def is_query(node: Tree) -> bool:
    """True for a query inside an expression."""
    return isinstance(node, exp.Query)


def is_aggregate(node: Tree) -> bool:
    """True for the call of an aggregate, with its FILTER."""
    if isinstance(node, CALLED_WITH):
        return not isinstance(node.parent, exp.Window) and is_aggregate(node.this)
    if isinstance(_window_of(node), exp.Window):
        return False
    return (isinstance(node, exp.Anonymous) and node.name.lower() in AGGREGATES) or isinstance(
        node, exp.Any
    )


def _window_of(node: Tree) -> Tree | None:
    """Return the parent of a call, past its FILTER or IGNORE NULLS, if it is what that calls."""
    parent = node.parent if node.arg_key == "this" else None
    return parent.parent if isinstance(parent, CALLED_WITH) else parent


def is_count(tree: Tree) -> bool:
    """True for an aggregate that is 0 for no rows."""
    call = tree.this if isinstance(tree, exp.Filter) else tree
    return isinstance(call, exp.Anonymous) and call.name.lower().startswith(
        ("count", "approx_count")
    )
