"""Refusal of a part of a query, with its line."""

from sluice.language.syntax import Tree


class Refused(ValueError):
    """A part of a query that can't be kept incrementally; `node` is where."""

    def __init__(self, node: Tree, why: str) -> None:
        line = line_of(node)
        super().__init__(f"line {line}: {why}" if line else why)


def line_of(node: Tree) -> int:
    """Return the line of a part of the query, 0 if it isn't known."""
    lines = (part.meta.get("line") for part in node.walk())
    return next((int(line) for line in lines if line), 0)
