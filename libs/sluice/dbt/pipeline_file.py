"""The pipeline's file: YAML for people, written atomically."""

from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from tempfile import NamedTemporaryFile
from textwrap import indent
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import LiteralScalarString

from sluice.dbt.pipeline import Imported
from sluice.errors import UsageError

YamlFields = Mapping[str, Any]


def check_free(path: Path, *, force: bool) -> None:
    """Raise UsageError if the file exists and may not be replaced."""
    if path.exists() and not force:
        raise UsageError(
            f"{path} exists already",
            hint="--force replaces it, --pipeline NAME writes another pipeline",
        )


def write(path: Path, text: str) -> None:
    """Write the file whole, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
    ) as draft:
        draft.write(text)
    Path(draft.name).chmod(0o644)
    Path(draft.name).replace(path)


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
    parts = (indent(_yaml({table: _shaped(fields)}), "  ") for table, fields in tables.items())
    return f"\n{name}:\n" + "\n".join(parts)


def _shaped(fields: YamlFields) -> CommentedMap:
    """Return the fields formatted: queries as blocks, lists in one line."""
    return CommentedMap((name, _value(value)) for name, value in fields.items())


def _value(value: Any) -> Any:
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
    shaped = CommentedMap((name, _value(value)) for name, value in item.items())
    shaped.fa.set_flow_style()
    return shaped


def _yaml(data: Any) -> str:
    yaml, stream = YAML(typ="rt", pure=True), StringIO()
    yaml.width = 4096
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.dump(data, stream)
    return stream.getvalue()
