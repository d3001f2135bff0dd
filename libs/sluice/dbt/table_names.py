"""Names of a pipeline's tables and columns for dbt's, and the nodes that compiled SQL means.

Names are assigned for the whole project, so a different selection doesn't change them. Models come
first; a source or a seed whose name is taken gets the name of its source or schema as a prefix.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import count

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sluice.dbt.artifacts import DbtNode, DbtProject
from sluice.language.names import LONGEST, NAME

Parts = tuple[str, ...]


def named(nodes: Mapping[str, DbtNode]) -> dict[str, str]:
    """Return a free name for each node, by id."""
    ranks = ("model", "seed", "snapshot", "source")
    names: dict[str, str] = {}
    for node in sorted(nodes.values(), key=lambda n: (ranks.index(n.type), n.id)):
        names[node.id] = free(_candidates(node), names.values())
    return names


def column_names(nodes: Mapping[str, DbtNode]) -> dict[str, str]:
    """Return a name for each column that can't be declared as it is: lower case -> name."""
    written = dict.fromkeys(name.lower() for node in nodes.values() for name in node.columns)
    names: dict[str, str] = {}
    for name in (name for name in written if not NAME.fullmatch(name)):
        names[name] = free([clean(name)], {*written, *names.values()})
    return names


def free(candidates: Iterable[str], taken: Iterable[str]) -> str:
    """Return the first candidate that is not taken, or else the last of them with a number."""
    taken, name = set(taken), ""
    for name in candidates:
        if name not in taken:
            return name
    return next(numbered for n in count(2) if (numbered := f"{name}_{n}") not in taken)


def clean(text: str) -> str:
    """Return the text as a table's name: lower case, and without `__`, which Sluice reserves."""
    name = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[: LONGEST - 10]
    return name if name[:1].isalpha() else f"t_{name}".rstrip("_")


def _candidates(node: DbtNode) -> Iterator[str]:
    yield clean(node.name)
    yield clean(f"{node.group}_{node.name}")
    yield clean(f"{node.group}_{node.type}_{node.name}")


class Relations:
    """Nodes by their relations, which SQL may write in full or without the first parts."""

    def __init__(self, project: DbtProject) -> None:
        self._ids: dict[Parts, set[str]] = {}
        for node in project.nodes.values():
            parts = parts_of(node.relation, project.dialect)
            for nth in range(len(parts)):
                self._ids.setdefault(parts[nth:], set()).add(node.id)

    def node(self, table: exp.Table) -> str:
        """Return the id of the node that a table means; '' if none, or if several fit."""
        found = self._ids.get(_parts(table), set())
        return next(iter(found)) if len(found) == 1 else ""


def parts_of(relation: str, dialect: str) -> Parts:
    """Return the parts of a relation's name, in lower case; none if it has no name."""
    try:
        return _parts(exp.to_table(relation, dialect=dialect)) if relation else ()
    except SqlglotError:
        return ()


def _parts(table: exp.Table) -> Parts:
    return tuple(part.name.lower() for part in table.parts)
