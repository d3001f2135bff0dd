"""Kinds of tables: a class each, by name.

This is the one place that lists them. A class is imported when its kind is first used. Commands of
kinds are listed apart from the classes, so `sluice --help` imports no kind.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING

from sluice.declare.kind import Kind

if TYPE_CHECKING:
    from sluice.declare.table_spec import Section

BUILT_IN: Mapping[str, str] = MappingProxyType(
    {
        "source": "sluice.sources.kind.SourceKind",
        "dimension": "sluice.dimensions.kind.DimensionKind",
        "dimension_view": "sluice.dimension_views.kind.DimensionViewKind",
        "topk": "sluice.kinds.topk.kind.TopKKind",
        "cogroup": "sluice.kinds.cogroup.kind.CogroupKind",
        "lookup": "sluice.kinds.lookup.kind.LookupKind",
        "window_store": "sluice.kinds.window_store.kind.WindowStoreKind",
        "join": "sluice.kinds.join.kind.JoinKind",
        "select": "sluice.kinds.select.kind.SelectKind",
        "union": "sluice.kinds.union.kind.UnionKind",
        "over": "sluice.kinds.over.kind.OverKind",
        "sql": "sluice.kinds.sql.kind.SqlKind",
    }
)
COMMANDS: Mapping[str, str] = MappingProxyType(
    {"top": "sluice.kinds.topk.commands:top", "fetch": "sluice.kinds.window_store.commands:fetch"}
)
_added: dict[str, Kind] = {}
_added_commands: dict[str, str] = {}


def register(added: type[Kind], **commands: str) -> None:
    """Add a kind, and its commands as `module:function` by their names. Safe to repeat."""
    new = added()
    _added.setdefault(new.name, new)
    _added_commands.update(commands)


def has_added() -> bool:
    """Return whether there are kinds besides the built-in ones."""
    return bool(_added)


def kinds(section: "Section | None" = None) -> tuple[Kind, ...]:
    """Return every kind, or those of a section."""
    every = map(kind, (*BUILT_IN, *_added))
    return tuple(kind for kind in every if section is None or kind.section == section)


def kind(name: str) -> Kind:
    """Return the kind of that name."""
    return _built_in(name) if name in BUILT_IN else _added[name]


def commands_of_kinds() -> Mapping[str, str]:
    """Return the commands that read one kind of table: name -> `module:function`."""
    return {**COMMANDS, **_added_commands}


@cache
def _built_in(name: str) -> Kind:
    module, _, found = BUILT_IN[name].rpartition(".")
    made: Kind = getattr(import_module(module), found)()
    return made
