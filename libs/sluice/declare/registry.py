"""Kinds of tables: a class each, by name, and what the class of a kind has.

`BUILT_IN` is the one place that lists them. A class is imported when its kind is first used.
Commands of kinds are listed apart from the classes, so `sluice --help` imports no kind.

Every kind is a `Kind`. Whatever else it may offer is a protocol, which callers test for where they
need it: `isinstance(kind(table.kind), Maker)`. Each protocol describes one part of a class:

    Columns     columns that its columns are made from      declare.column_lineage
    Maker       its stored tables, operators and batches    engine.plan
    Unstored    rows of a table that is not stored          engine.operator
    Lineage     rows that its rows come from                engine.tracing
    Absence     what absent rows lack                       engine.tracing
    Opener      its tables, opened in a way of its own      read.lake
    Reading     further ways to read its tables             read.lake
    Mapped      its changes in groups of rows               read.changelog
    Naming      rows that are named otherwise than by key   read.naming
    Landed      reasons to deliver nothing                  read.pending
    Lagging     what was not read yet outside the lake      read.pending
    Planned     its next deliveries, for `sluice plan`      operate.explain
    Delivering  deliveries, replays and rebuilds            operate.delivering
    Resuming    reads that continue elsewhere               operate.delivering
    Block       its block on Airflow's page                 report.pages
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from sluice.declare.document import Where
    from sluice.declare.resolution import TableMistakes
    from sluice.declare.table import Table
    from sluice.declare.table_spec import Section, TableSpec


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


class Kind(ABC):
    """One kind of table.

    A kind is imported to check a configuration, to read and to parse DAG files. So its module
    imports neither Spark nor Delta Lake; the methods that need them import what they call.
    `model`: the model of its declarations. `needs`: what a batch reads of an input besides its
    changes, as text.
    """

    model: "ClassVar[type[TableSpec]]"
    needs: ClassVar[str] = "the old rows of changes"

    @property
    def name(self) -> str:
        """Name of the kind; for views, as written under `kind:`."""
        return self.model.KIND

    @property
    def section(self) -> "Section":
        """Section of a pipeline's file that declares it."""
        return self.model.SECTION

    @abstractmethod
    def resolve(
        self, spec: Any, inputs: "Mapping[Where, Table]", mistakes: "TableMistakes"
    ) -> "Table | None":
        """Return the table of a declaration; `inputs` holds its references, by their places.

        Mistakes are noted in the report; the rest is derived in spite of them. None if that can't
        be done.
        """


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
