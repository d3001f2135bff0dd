"""Artifacts of dbt: the nodes of a manifest, and the types of a catalog.

The package `dbt-artifacts-parser` reads the files, whose layout changes from version to version.
All other modules use only `DbtNode` and `DataTest`.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlglot import Dialect

from sluice.errors import UsageError
from sluice.extras import require

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
