"""Import of a dbt project: from its manifest to a pipeline's file."""

import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from graphlib import CycleError, TopologicalSorter
from io import StringIO
from pathlib import Path, PurePosixPath
from textwrap import indent
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import LiteralScalarString

from sluice.cache import write_whole
from sluice.dbt import COMPILE, DbtNode, DbtProject, clean, read_artifacts
from sluice.dbt.pipeline import Imported, finder, lines
from sluice.declare.resolution import Review
from sluice.errors import UsageError
from sluice.language.names import check_name, unknown

SELECTOR = re.compile(r"(\+?)(?:(\w+):)?([^+]+?)(\+?)")
FORMS = "selectors are name, +name, name+, tag:x and path:x, with * in any of them"

Nodes = Mapping[str, DbtNode]


def select_nodes(nodes: Nodes, selectors: Iterable[str]) -> list[str]:
    """Return the ids of the chosen models and snapshots, parents first; all, without a selector.

    Selectors are combined, and so are the words of one. Raises UsageError for one that selects
    nothing.
    """
    words = [word for selector in selectors for word in selector.split()]
    chosen = {i for word in words for i in _choose(nodes, word)} if words else set(nodes)
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


# The texts of a node that a selector may match.
METHODS: Mapping[str, Callable[[DbtNode], Iterable[str]]] = {
    "name": lambda node: [node.name],
    "tag": lambda node: node.tags,
    "path": lambda node: [node.path, *map(str, PurePosixPath(node.path).parents)],
}


def _choose(nodes: Nodes, word: str) -> set[str]:
    parts = SELECTOR.fullmatch(word)
    method = (parts[2] or "name") if parts else ""
    if parts is None or method not in METHODS:
        raise UsageError(f"--select {word} can't be parsed", hint=FORMS)
    asked, texts = parts[3].rstrip("/") if method == "path" else parts[3], METHODS[method]
    found = {i for i, n in nodes.items() if any(fnmatchcase(text, asked) for text in texts(n))}
    with_parents = _reach(found, {i: n.parents for i, n in nodes.items()}) if parts[1] else set()
    with_children = _reach(found, _children(nodes)) if parts[4] else set()
    every = found | with_parents | with_children
    if not any(is_run(nodes[i]) for i in every):
        known = unknown("model", parts[3], (n.name for n in nodes.values() if is_run(n)))
        raise UsageError(f"--select {word} selects no model", hint=f"{known}; {FORMS}")
    return every


def _reach(found: set[str], edges: Mapping[str, Iterable[str]]) -> set[str]:
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


YamlFields = Mapping[str, Any]


def check_free(path: Path, *, force: bool) -> None:
    """Raise UsageError if the file exists and may not be replaced."""
    if path.exists() and not force:
        raise UsageError(
            f"{path} exists already",
            hint="--force replaces it, --pipeline NAME writes another pipeline",
        )


def text_of(imported: Imported) -> str:
    """Return the pipeline's file."""
    project = imported.project
    made_by = f"dbt {project.version} on {project.dialect}"
    head = f"""\
# From the dbt project {project.name}, by `sluice import dbt`; {made_by}.
pipeline: {imported.name}
schedule: "@daily"
start_date: {project.day}    # the first day of deliveries
timezone: UTC
"""
    return head + "".join(_section(name, tables) for name, tables in imported.sections.items())


def _section(name: str, tables: Mapping[str, YamlFields]) -> str:
    if not tables:
        return ""
    shaped = {t: {n: _shape(v) for n, v in fields.items()} for t, fields in tables.items()}
    parts = (indent(_yaml({table: fields}), "  ") for table, fields in shaped.items())
    return f"\n{name}:\n" + "\n".join(parts)


def _shape(value: Any) -> Any:
    """Return a field's value as YAML writes it: queries as blocks, lists in one line."""
    if isinstance(value, str):
        return LiteralScalarString(value) if "\n" in value else value
    if isinstance(value, list):
        items = CommentedSeq(_in_line(item) for item in value)
        if not any(isinstance(item, dict) for item in value):
            items.fa.set_flow_style()
        return items
    return value


def _in_line(item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    shaped = CommentedMap((name, _shape(value)) for name, value in item.items())
    shaped.fa.set_flow_style()
    return shaped


def _yaml(data: Any) -> str:
    yaml, stream = YAML(typ="rt", pure=True), StringIO()
    yaml.width = 4096
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.dump(data, stream)
    return stream.getvalue()


def import_project(
    manifest: Path,
    catalog: Path | None,
    selectors: Iterable[str],
    target: tuple[Path, str],
    review: Review,
    *,
    force: bool,
) -> tuple[Path, Imported]:
    """Write the pipeline's file, and return it with its tables.

    `target`: the folder of the configuration, and the pipeline's name, '' for dbt's own. Raises
    UsageError, before anything is written, if the project can't be imported.
    """
    beside = manifest.with_name("catalog.json")
    project = read_artifacts(manifest, catalog or (beside if beside.exists() else None))
    config, name = target[0], _name(target[1] or clean(project.name))
    file = config / "pipelines" / f"{name}.yaml"
    check_free(file, force=force)
    chosen = select_nodes(project.nodes, selectors)
    _check_compiled(project, chosen, manifest)
    imported = Imported(project, name, finder(manifest, config.resolve().parent), review)
    imported.add(chosen)
    if not imported.report.views:
        why = "\n".join(lines(imported.report))
        raise UsageError(
            f"none of these models can be a view, so nothing was written\n{why}",
            hint="docs/from_dbt.md says what a model may have",
        )
    write_whole(file, text_of(imported))
    return file, imported


def _name(name: str) -> str:
    try:
        return check_name(name)
    except ValueError as error:
        raise UsageError(f"--pipeline {error}") from None


def _check_compiled(project: DbtProject, chosen: list[str], manifest: Path) -> None:
    """Raise UsageError if no chosen model is there, or none is compiled."""
    models = [node for i in chosen if (node := project.nodes[i]).type == "model" and node.is_in_sql]
    if not models:
        raise UsageError(f"{manifest} has no model in SQL among those chosen", hint=COMPILE)
    if not any(model.sql.strip() for model in models):
        raise UsageError(f"{manifest} has no compiled SQL, as after `dbt parse`", hint=COMPILE)
