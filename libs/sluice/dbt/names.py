"""Names of a pipeline's tables and columns for dbt's, and types of a warehouse as those of Spark.

Names are assigned for the whole project, so a different selection doesn't change them. Models come
first; a source or a seed whose name is taken gets the name of its source or schema as a prefix.

Times without a zone become TIMESTAMP, because Sluice reads them as UTC. A decimal without places
has the warehouse's meaning.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import count

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sluice.dbt.artifacts import DbtNode, DbtProject
from sluice.language.names import LONGEST, NAME
from sluice.language.typed.types import GAP, canonical

Parts = tuple[str, ...]


def free_names(nodes: Mapping[str, DbtNode]) -> dict[str, str]:
    """Return a free name for each node, by id."""
    ranks = ("model", "seed", "snapshot", "source")
    names: dict[str, str] = {}
    for node in sorted(nodes.values(), key=lambda n: (ranks.index(n.type), n.id)):
        wanted = (node.name, f"{node.group}_{node.name}", f"{node.group}_{node.type}_{node.name}")
        names[node.id] = free(map(clean, wanted), names.values())
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


_TYPE = exp.DataType.Type
TEXTS = (_TYPE.VARCHAR, _TYPE.CHAR, _TYPE.NVARCHAR, _TYPE.NCHAR, _TYPE.BPCHAR, _TYPE.NAME)
OTHERS = {
    _TYPE.TIMESTAMP: "TIMESTAMPTZ",
    _TYPE.TIMESTAMPNTZ: "TIMESTAMPTZ",
    _TYPE.DATETIME: "TIMESTAMPTZ",
    _TYPE.UTINYINT: "SMALLINT",
    _TYPE.USMALLINT: "INT",
    _TYPE.UINT: "BIGINT",
    _TYPE.UBIGINT: "DECIMAL(20, 0)",
    _TYPE.INT128: "DECIMAL(38, 0)",
    _TYPE.JSON: "TEXT",
    _TYPE.JSONB: "TEXT",
    _TYPE.UUID: "TEXT",
}
PLACES = {"bigquery": "38, 9", "duckdb": "18, 3", "snowflake": "38, 0", "redshift": "18, 0"}


def type_in_spark(text: str, dialect: str) -> str:
    """Return a column's type as Spark's; `?` if it isn't known, or Spark has no equivalent."""
    try:
        tree = exp.DataType.build(text, dialect=dialect) if text else None
        return canonical(_whole(tree, dialect).sql("spark")) if tree else GAP
    except (SqlglotError, ValueError):
        return GAP


def spark_type(tree: exp.DataType, dialect: str) -> exp.DataType:
    """Return one type, without its inner ones. Raises ValueError for a decimal without places."""
    if tree.this in OTHERS:
        return exp.DataType.build(OTHERS[tree.this])
    if tree.this in TEXTS:
        return exp.DataType.build("text")
    if tree.this != _TYPE.DECIMAL or tree.expressions:
        return tree
    if dialect not in PLACES:
        raise ValueError(f"a DECIMAL without places has as many as needed in {dialect}: give them")
    return exp.DataType.build(f"DECIMAL({PLACES[dialect]})")


def _whole(tree: exp.DataType, dialect: str) -> exp.DataType:
    whole = tree.transform(
        lambda part: spark_type(part, dialect) if isinstance(part, exp.DataType) else part
    )
    assert isinstance(whole, exp.DataType)
    return whole
