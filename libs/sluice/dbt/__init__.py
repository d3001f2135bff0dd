"""A dbt project as a pipeline: models become views, their inputs sources. Starts no Spark.

Here are its artifacts: the nodes of a manifest, the types of a catalog, and both in Sluice's words.
A pipeline's tables and columns have names for dbt's; a warehouse's types are those of Spark.

The package `dbt-artifacts-parser` reads the files, whose layout changes from version to version.
All other modules use only `DbtNode` and `DataTest`.

Names are assigned for the whole project, so a different selection doesn't change them. Models come
first; a source or a seed whose name is taken gets the name of its source or schema as a prefix.

Times without a zone become TIMESTAMP, because Sluice reads them as UTC. A decimal without places
has the warehouse's meaning.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from sqlglot import Dialect, exp
from sqlglot.errors import SqlglotError

from sluice.errors import UsageError
from sluice.extras import require
from sluice.language.names import LONGEST, NAME
from sluice.language.types import GAP, canonical

COMPILE = "`dbt compile --full-refresh` in the dbt project writes it to target/manifest.json"
DIALECTS: Mapping[str, str] = {
    "sqlserver": "tsql",
    "synapse": "tsql",
    "fabric": "fabric",
    "glue": "spark",
    "dremio": "dremio",
    "vertica": "postgres",
    "greenplum": "postgres",
    "alloydb": "postgres",
}
WITH_ROWS = ("model", "seed", "snapshot", "source")


@dataclass(frozen=True)
class DbtNode:
    """A model, a seed, a snapshot or a source; anything else has no rows that models read.

    `relation`: its name as compiled SQL writes it. `columns`: name -> type in the warehouse's
    words, '' where it isn't known. `group`: the source's name, or the schema.
    """

    id: str
    type: str
    name: str
    group: str
    relation: str
    sql: str
    raw: str
    materialized: str
    is_in_sql: bool
    description: str
    columns: Mapping[str, str]
    tags: frozenset[str]
    path: str
    parents: tuple[str, ...]


@dataclass(frozen=True)
class DataTest:
    """A data test: its macro, the node and column that it is about, its arguments."""

    id: str
    name: str
    macro: str
    node: str
    column: str
    to: str
    arguments: Mapping[str, Any]
    where: str
    is_error: bool
    has_thresholds: bool


@dataclass(frozen=True)
class DbtProject:
    """A dbt project; `dialect` is sqlglot's name for its warehouse's SQL."""

    name: str
    version: str
    dialect: str
    day: str
    nodes: Mapping[str, DbtNode]
    checks: tuple[DataTest, ...] = ()
    analyses: tuple[str, ...] = field(default=())


def read_artifacts(manifest: Path, catalog: Path | None) -> DbtProject:
    """Read the project from its files. Raises UsageError for files that can't be used."""
    require("dbt", "`sluice import dbt`")
    from dbt_artifacts_parser.parser import parse_catalog, parse_manifest

    found = _parse(manifest, parse_manifest, "manifest")
    shown = _parse(catalog, parse_catalog, "catalog") if catalog else None
    adapter = str(found.metadata.adapter_type or "")
    every = [*found.nodes.values(), *found.sources.values()]
    types = _types(shown)
    nodes = {n.unique_id: _node(n, types) for n in every if _type(n) in WITH_ROWS}
    tests = [n for n in every if _type(n) == "test"]
    return DbtProject(
        str(getattr(found.metadata, "project_name", None) or _package(nodes)),
        str(found.metadata.dbt_version),
        _dialect(adapter),
        str(found.metadata.generated_at)[:10],
        nodes,
        tuple(_check(test, nodes) for test in tests),
        tuple(n.name for n in every if _type(n) == "analysis"),
    )


def _package(nodes: Mapping[str, DbtNode]) -> str:
    """Return the package with the most models; older manifests don't name the project's."""
    packages = Counter(i.split(".")[1] for i, node in nodes.items() if node.type == "model")
    return packages.most_common(1)[0][0] if packages else "dbt"


def _parse(path: Path, parse: Any, kind: str) -> Any:
    try:
        data = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"can't read {path}: {error.strerror}", hint=COMPILE) from None
    except ValueError:
        raise UsageError(f"{path} is not JSON", hint=COMPILE) from None
    metadata = data.get("metadata") if isinstance(data, dict) else None
    schema = str(metadata.get("dbt_schema_version", "")) if isinstance(metadata, dict) else ""
    if f"/dbt/{kind}/" not in schema:
        what = f"is not a dbt {kind}" if not schema else f"is a different dbt file: {schema}"
        raise UsageError(f"{path} {what}", hint=COMPILE)
    try:
        return parse(data)
    except ValueError as error:
        version = schema.rpartition("/")[2].removesuffix(".json")
        raise UsageError(
            f"{path}: a {kind} of version {version} that can't be read: {_first(error)}",
            hint="`pip install --upgrade dbt-artifacts-parser` may add support for it; manifests "
            "of versions 1 to 12 are supported",
        ) from None


def _first(error: ValueError) -> str:
    errors: list[Any] = getattr(error, "errors", list)()
    if not errors:
        return "its version is unknown" if "Not a" in str(error) else str(error).splitlines()[0]
    place = ".".join(str(part) for part in errors[0]["loc"])
    return f"{errors[0]['msg'].lower()} at {place}"


def _dialect(adapter: str) -> str:
    name = DIALECTS.get(adapter, adapter)
    if name in Dialect.classes:
        return name
    raise UsageError(
        f"the project's adapter is {adapter!r}, whose SQL can't be read",
        hint=f"supported adapters are {', '.join(sorted(filter(None, Dialect.classes)))}",
    )


def _types(catalog: Any) -> dict[str, dict[str, str]]:
    """Return column -> type in the order of the table, by node."""
    if catalog is None:
        return {}
    tables = {**catalog.nodes, **catalog.sources}
    return {
        node: {c.name: c.type for c in sorted(t.columns.values(), key=lambda c: c.index)}
        for node, t in tables.items()
    }


def _type(node: Any) -> str:
    return str(getattr(node.resource_type, "value", node.resource_type))


def _node(node: Any, types: Mapping[str, dict[str, str]]) -> DbtNode:
    config = node.config
    own = {c.name: str(c.data_type or "") for c in (node.columns or {}).values()}
    asked = getattr(config, "column_types", None) or {}
    declared = {**own, **{str(name): str(type_) for name, type_ in asked.items()}}
    version = getattr(node, "version", None)
    return DbtNode(
        node.unique_id,
        _type(node),
        f"{node.name}_v{version}" if version is not None else node.name,
        str(getattr(node, "source_name", None) or node.schema_),
        str(getattr(node, "relation_name", None) or ""),
        str(_either(node, "compiled_code", "compiled_sql")),
        str(_either(node, "raw_code", "raw_sql")),
        str(getattr(config, "materialized", None) or ""),
        getattr(node, "language", None) in (None, "sql"),
        str(node.description or ""),
        types.get(node.unique_id) or declared,
        frozenset([node.tags] if isinstance(node.tags, str) else map(str, node.tags or ())),
        str(node.original_file_path),
        tuple(getattr(getattr(node, "depends_on", None), "nodes", None) or ()),
    )


def _either(node: Any, *names: str) -> Any:
    """Return the first of these fields that has a value: they were renamed in version 7."""
    return next((value for name in names if (value := getattr(node, name, None))), "")


def _check(test: Any, nodes: Mapping[str, DbtNode]) -> DataTest:
    metadata, config = getattr(test, "test_metadata", None), test.config
    arguments = dict(metadata.kwargs or {}) if metadata else {}
    among = [nodes[i] for i in test.depends_on.nodes or () if i in nodes]
    space = f"{metadata.namespace}." if metadata and metadata.namespace else ""
    usual = all(getattr(config, name, "!= 0") in ("!= 0", None) for name in ("warn_if", "error_if"))
    return DataTest(
        test.unique_id,
        test.name,
        f"{space}{metadata.name}" if metadata else "",
        _meant(str(arguments.get("model", "")), among),
        str(arguments.get("column_name") or getattr(test, "column_name", None) or ""),
        _meant(str(arguments.get("to", "")), among),
        arguments,
        str(getattr(config, "where", None) or ""),
        str(config.severity or "error").lower() == "error",
        not usual or getattr(config, "limit", None) is not None,
    )


def _meant(text: str, among: list[DbtNode]) -> str:
    """Return the id of the node that `ref('x')` or `source('a', 'x')` means; '' if none."""
    quoted = re.findall(r"['\"]([^'\"]+)['\"]", text)
    name = re.compile(rf"{re.escape(quoted[-1])}(_v\w+)?" if quoted else "(?!)")  # or a version
    of_type = (n for n in among if (n.type == "source") == ("source(" in text))
    return next((node.id for node in of_type if name.fullmatch(node.name)), "")


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
