"""The parts of an expression, in which aggregates and window functions are found."""

from collections.abc import Callable, Iterator

from sluice.interpreter.expressions.expression_tree import (
    Alias,
    Convert,
    ExpressionNode,
    Extract,
    FunctionCall,
    Lambda,
    SortItem,
    WindowFunction,
)


def children(node: ExpressionNode) -> tuple[ExpressionNode, ...]:
    """Return the direct parts of a node; those of a window function belong to itself."""
    match node:
        case Alias() | Convert() | SortItem():
            return (node.child,)
        case Extract():
            return (node.child, node.key)
        case FunctionCall():
            return (*node.arguments, *((node.where,) if node.where else ()))
        case Lambda():
            return (node.body,)
        case WindowFunction():
            return (*node.partition, *node.order, *getattr(node.function, "arguments", ()))
    return ()


def outermost(
    node: ExpressionNode, wanted: Callable[[ExpressionNode], bool]
) -> Iterator[ExpressionNode]:
    """Yield the parts, or the whole, that are wanted and not within another one."""
    if wanted(node):
        yield node
        return
    for child in children(node):
        yield from outermost(child, wanted)


def every(node: ExpressionNode) -> Iterator[ExpressionNode]:
    """Yield the node and all its parts."""
    yield node
    for child in children(node):
        yield from every(child)
