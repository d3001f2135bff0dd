"""Kinds of tables: a package each, with modules of fixed names.

This is the one place that lists them. A package is imported when its kind is first used. The
modules are these:

    spec      `SPEC`: the model of the declaration (declare.table_spec)
    resolve   `resolve(spec, inputs, report)`: the table that it declares
    nodes     `nodes(table, graph)`: the stored tables, each with its operator and its batches
    rows      `rows(table, inputs)`: rows of a table that is not stored (engine.query.unstored)
    columns   `columns(table, inputs)`: what columns are made from (declare.meaning.column_lineage)
    lineage   `contributing(operator, groups)`: rows that rows come from (engine.query.lineage)
    absence   `conditions(spec, found)`, `unmatched(...)`: what rows lack (engine.query.absence)
    reader    `opened(lake, table, ...)`: a stored table as this kind's reader (read.lake)
    maps      `maps(changelog, ...)`: what each version touched, whole (read.changelog)
    naming    `OPTIONS`, `ranges(table, spec, given)`: rows not named by key (read.naming)
    pending   `nothing_new(project, table, interval)`: for delivered tables (read.pending)
    lag       `unread(...)`, `outside(...)`: what was not read yet outside (read.pending)
    plan      `deliveries_ahead(...)`: next deliveries, for `sluice plan` (operate.explain)
    deliver   `deliver(...)`, `replay(...)`, ...: of delivered tables (operate.delivering)
    resume    `resume(...)`: continues elsewhere in what a table follows (operate.delivering)
    commands  `COMMANDS`: the commands that read it (cli.kinds)
    page      `chapters(lake, table, why)`: its block on Airflow's page (airflow.page.block)

`spec` and `resolve` are required, `deliver` of kinds whose tables are delivered, and `rows` of
those that are not stored. `spec`, `resolve`, `reader`, `maps`, `naming`, `pending`, `lag` and
`page` import no Spark.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sluice.declare.table_spec import Section, TableSpec

BUILT_IN = (
    "sluice.sources",
    "sluice.dimensions",
    "sluice.dimension_views",
    "sluice.kinds.topk",
    "sluice.kinds.cogroup",
    "sluice.kinds.lookup",
    "sluice.kinds.window_store",
    "sluice.kinds.join",
    "sluice.kinds.select",
    "sluice.kinds.union",
    "sluice.kinds.over",
    "sluice.kinds.sql",
)
ROLES = (
    "spec",
    "resolve",
    "nodes",
    "rows",
    "columns",
    "lineage",
    "absence",
    "reader",
    "maps",
    "naming",
    "pending",
    "lag",
    "plan",
    "deliver",
    "resume",
    "commands",
    "page",
)
_added: list[str] = []


@dataclass(frozen=True)
class Kind:
    """One kind of table, named by the package that describes it."""

    package: str

    @property
    def model(self) -> "type[TableSpec]":
        """Model of its declarations."""
        model: type[TableSpec] = import_module(f"{self.package}.spec").SPEC
        return model

    @property
    def name(self) -> str:
        """Name of the kind; for views, as written under `kind:`."""
        return self.model.KIND

    @property
    def section(self) -> "Section":
        """Section of a pipeline's file that declares it."""
        return self.model.SECTION

    def module(self, role: str) -> ModuleType | None:
        """Return its module for that role; None if the kind has nothing special there."""
        return _module(f"{self.package}.{role}")


def register(package: str) -> None:
    """Add the kind that a package describes. Safe to repeat."""
    if package not in (*BUILT_IN, *_added):
        _added.append(package)


def has_added() -> bool:
    """Return whether there are kinds besides the built-in ones."""
    return bool(_added)


def kinds(section: "Section | None" = None) -> tuple[Kind, ...]:
    """Return every kind, or those of a section."""
    every = (Kind(package) for package in (*BUILT_IN, *_added))
    return tuple(kind for kind in every if section is None or kind.section == section)


def kind(name: str) -> Kind:
    """Return the kind of that name."""
    return next(kind for kind in kinds() if kind.name == name)


def modules(role: str) -> Iterator[ModuleType]:
    """Yield every kind's module for that role."""
    for each in kinds():
        if (module := each.module(role)) is not None:
            yield module


@cache
def _module(name: str) -> ModuleType | None:
    return import_module(name) if find_spec(name) else None
