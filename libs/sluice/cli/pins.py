"""Dimension versions for a step to look up, as commands and jobs take them."""

from collections.abc import Iterable

from sluice.declare.graph import Graph
from sluice.errors import UsageError


def read_pins(texts: Iterable[str], graph: Graph) -> dict[str, int]:
    """Return each dimension's version by its id. Raises UsageError for a malformed text."""
    found = {}
    for text in texts:
        name, _, version = text.rpartition("=")
        if not name or not version.isdigit():
            raise UsageError(f"--pin takes DIMENSION=VERSION, not {text!r}")
        found[graph.table(name).id] = int(version)
    return found
