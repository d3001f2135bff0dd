"""Columns of the inputs that a table's columns are made from.

Each kind returns it for its own tables. Columns that only select rows, as in
`where`, are not among them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

from sluice.declare.registry import kind
from sluice.declare.table import Graph, Table, carried_columns
from sluice.language.expression import Expression


@dataclass(frozen=True)
class InputColumn:
    """One column of an input; `is_same`: its value is unchanged."""

    table: str
    column: str
    is_same: bool = True


InputColumns = frozenset[InputColumn]
MadeFrom = Mapping[str, InputColumns]


@runtime_checkable
class Columns(Protocol):
    """Kind whose columns are made from columns of other tables."""

    def trace_columns(self, table: Table, inputs: Mapping[str, Table]) -> MadeFrom:
        """Return the input columns of each column, hidden ones included; `inputs` are by id."""


@dataclass(frozen=True)
class Seen:
    """Columns that an expression can name: an input's own, qualified ones, computed ones."""

    plain: Table | None = None
    qualified: Mapping[str, Table] = field(default_factory=dict)
    made: MadeFrom = field(default_factory=dict)

    def of(self, *expressions: Expression) -> InputColumns:
        """Return the input columns that expressions read."""
        found = set[InputColumn]()
        for one in expressions:
            for name in one.columns:
                named = self.inputs_of(name)
                is_plain = one.plain_column == name
                found |= {replace(c, is_same=c.is_same and is_plain) for c in named}
        return frozenset(found)

    def inputs_of(self, name: str) -> InputColumns:
        """Return the input columns behind one name."""
        first, _, rest = name.partition(".")
        if name in self.made or first in self.made:
            return self.made[name if name in self.made else first]
        if rest and first in self.qualified:
            return _column(self.qualified[first], rest)
        return _column(self.plain, name) if self.plain else frozenset()


def of_input(table: Table, *columns: str) -> InputColumns:
    """Return columns of one input, with unchanged values."""
    return frozenset(InputColumn(table.id, column) for column in columns)


def of_carried(table: Table, source: Table) -> dict[str, InputColumns]:
    """Return the columns of an input that a table's hidden key columns are."""
    carried = carried_columns(table, source).items()
    return {out: of_input(source, column) for out, column in carried}


def as_changed(made: Iterable[InputColumn]) -> InputColumns:
    """Return the same columns, all with changed values."""
    return frozenset(replace(column, is_same=False) for column in made)


def made_from(table: Table, graph: Graph) -> MadeFrom:
    """Return the columns of its inputs that each of a table's columns is made from.

    A table of several parts is followed through them. Delivered tables are made from files.
    """
    known: dict[str, MadeFrom] = {}
    tables = {**graph.tables, **{part.id: part for part in table.parts}}
    for part in table.parts or (table,):
        found = made_from_inputs(part, tables)
        known[part.id] = {name: _through(made, known) for name, made in found.items()}
    return known[table.id]


def made_from_inputs(table: Table, inputs: Mapping[str, Table]) -> MadeFrom:
    """Return the same for a table of one part, given its inputs by id."""
    traced = kind(table.kind)
    return traced.trace_columns(table, inputs) if isinstance(traced, Columns) else {}


def _through(made: InputColumns, known: Mapping[str, MadeFrom]) -> InputColumns:
    """Replace columns of a table's parts by the stored inputs' columns that make them."""
    found = set[InputColumn]()
    for one in made:
        if one.table not in known:
            found.add(one)
            continue
        behind = known[one.table].get(one.column, frozenset())
        found |= {replace(c, is_same=c.is_same and one.is_same) for c in behind}
    return frozenset(found)


def _column(table: Table, name: str) -> InputColumns:
    if name in table.columns or name in table.key:
        return of_input(table, name)
    column = name.partition(".")[0]
    return as_changed(of_input(table, column)) if column in table.columns else frozenset()
