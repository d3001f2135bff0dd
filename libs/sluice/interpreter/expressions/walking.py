"""The parts of an expression, in which aggregates and window functions are found."""

from collections.abc import Callable, Iterator

from sluice.interpreter.expressions.nodes import (
    Alias,
    Call,
    Convert,
    Extract,
    Lambda,
    Node,
    Order,
    Over,
)


def children(node: Node) -> tuple[Node, ...]:
    """Return the direct parts of a node; those of a window function belong to itself."""
    match node:
        case Alias() | Convert() | Order():
            return (node.child,)
        case Extract():
            return (node.child, node.key)
        case Call():
            return (*node.arguments, *((node.where,) if node.where else ()))
        case Lambda():
            return (node.body,)
        case Over():
            return (*node.partition, *node.order, *getattr(node.function, "arguments", ()))
    return ()


def outermost(node: Node, wanted: Callable[[Node], bool]) -> Iterator[Node]:
    """Yield the parts, or the whole, that are wanted and not within another one."""
    if wanted(node):
        yield node
        return
    for child in children(node):
        yield from outermost(child, wanted)


def every(node: Node) -> Iterator[Node]:
    """Yield the node and all its parts."""
    yield node
    for child in children(node):
        yield from every(child)
