"""Choice of models by dbt's selectors: `name`, `+name`, `name+`, `tag:x`, `path:models/staging`."""

import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from graphlib import CycleError, TopologicalSorter
from pathlib import PurePosixPath

from sluice.dbt.artifacts import DbtNode
from sluice.errors import UsageError
from sluice.language.names import unknown

SELECTOR = re.compile(r"(\+?)(?:(\w+):)?([^+]+?)(\+?)")
FORMS = "selectors are name, +name, name+, tag:x and path:x, with * in any of them"

Nodes = Mapping[str, DbtNode]


def selected(nodes: Nodes, selectors: Iterable[str]) -> list[str]:
    """Return the ids of the chosen models and snapshots, parents first; all, without a selector.

    Selectors are combined, and so are the words of one. Raises UsageError for one that selects
    nothing.
    """
    words = [word for selector in selectors for word in selector.split()]
    chosen = {i for word in words for i in _chosen(nodes, word)} if words else set(nodes)
    order = TopologicalSorter({i: [p for p in n.parents if p in nodes] for i, n in nodes.items()})
    try:
        return [i for i in order.static_order() if i in chosen and is_run(nodes[i])]
    except CycleError as error:
        names = " -> ".join(nodes[i].name for i in error.args[1])
        raise UsageError(
            f"the manifest's models depend on each other in a cycle: {names}"
        ) from None


def is_run(node: DbtNode) -> bool:
    """True if `dbt run` or `dbt snapshot` computes the node."""
    return node.type in ("model", "snapshot")


def _chosen(nodes: Nodes, word: str) -> set[str]:
    parts = SELECTOR.fullmatch(word)
    method = (parts[2] or "name") if parts else ""
    if parts is None or method not in METHODS:
        raise UsageError(f"--select {word} can't be parsed", hint=FORMS)
    matches = METHODS[method]
    found = {i for i, node in nodes.items() if matches(node, parts[3])}
    with_parents = _closed(found, {i: n.parents for i, n in nodes.items()}) if parts[1] else set()
    with_children = _closed(found, _children(nodes)) if parts[4] else set()
    every = found | with_parents | with_children
    if not any(is_run(nodes[i]) for i in every):
        raise UsageError(f"--select {word} selects no model", hint=_near(nodes, parts[3]))
    return every


def _near(nodes: Nodes, name: str) -> str:
    return f"{unknown('model', name, (n.name for n in nodes.values() if is_run(n)))}; {FORMS}"


def _has_name(node: DbtNode, name: str) -> bool:
    return fnmatchcase(node.name, name)


def _has_tag(node: DbtNode, tag: str) -> bool:
    return any(fnmatchcase(one, tag) for one in node.tags)


def _lies_in(node: DbtNode, path: str) -> bool:
    places = (PurePosixPath(node.path), *PurePosixPath(node.path).parents)
    return any(fnmatchcase(str(place), path.rstrip("/")) for place in places)


METHODS: Mapping[str, Callable[[DbtNode, str], bool]] = {
    "name": _has_name,
    "tag": _has_tag,
    "path": _lies_in,
}


def _closed(found: set[str], edges: Mapping[str, Iterable[str]]) -> set[str]:
    """Return the nodes that can be reached by the edges."""
    reached, waiting = set[str](), list(found)
    while waiting:
        for other in edges.get(waiting.pop(), ()):
            if other not in reached:
                reached.add(other)
                waiting.append(other)
    return reached


def _children(nodes: Nodes) -> dict[str, list[str]]:
    children: dict[str, list[str]] = {}
    for node in nodes.values():
        for parent in node.parents:
            children.setdefault(parent, []).append(node.id)
    return children
