"""A table as its readers see it: visible columns, the key of its rows, its inputs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pydantic import InstanceOf
from pydantic.json_schema import SkipJsonSchema

from sluice.declare.table_spec import START, Expectation, Section, TableSpec
from sluice.errors import ConfigError, UsageError
from sluice.language.names import (
    CARRIED,
    DELIVERIES,
    HIDDEN_TYPES,
    RESERVED_PREFIX,
    internal,
    listing,
    near,
)


@dataclass(frozen=True)
class Table:
    """One table of the graph.

    `taken`: columns that its files brought beyond the declared ones. `through`: the tables
    among its inputs that are not stored. They have no state, so their meaning is part of the
    table's.
    `parts`: the tables in its chain, each with its own kind, itself the last. `written_as`: the
    kind in its declaration, if `kind`, which says how it is computed, is another.
    `is_key_ordered`: the declaration gives the order of all of the key's columns.
    """

    name: str
    pipeline: str
    kind: str
    columns: Mapping[str, str]
    key: tuple[str, ...]
    spec: TableSpec
    inputs: tuple[str, ...] = ()
    hidden: Mapping[str, str] = field(default_factory=dict)
    taken: frozenset[str] = frozenset()
    through: tuple["Table", ...] = ()
    parts: tuple["Table", ...] = ()
    written_as: str = ""
    is_key_ordered: bool = False

    @property
    def id(self) -> str:
        """`retail.top_products`."""
        return f"{self.pipeline}.{self.name}"

    @property
    def declared_kind(self) -> str:
        """Kind that its user wrote, which people see."""
        return self.written_as or self.kind

    @property
    def is_view(self) -> bool:
        """True if `advance` maintains it."""
        return self.section == "views"

    @property
    def is_stored(self) -> bool:
        """True if it is a table on disk, and not resolved when it is read."""
        return self.spec.IS_STORED

    @property
    def is_delivered(self) -> bool:
        """True if its rows are delivered from outside; unusable ones are quarantined."""
        return self.spec.IS_DELIVERED

    @property
    def delivered_to(self) -> str:
        """Id of the table that its deliveries are committed to: its own, or an internal one."""
        is_apart = DELIVERIES in self.spec.delivered_beside
        return internal(self.id, DELIVERIES) if is_apart else self.id

    @property
    def is_ingested(self) -> bool:
        """True if its rows arrive over time, delivery by delivery."""
        return self.spec.STEP == "ingest"

    @property
    def is_loaded(self) -> bool:
        """True if a delivery is its whole state, of which a run uses one version."""
        return self.spec.STEP == "load"

    @property
    def section(self) -> Section:
        return self.spec.SECTION

    @property
    def description(self) -> str:
        return self.spec.description

    @property
    def expect(self) -> tuple[Expectation, ...]:
        return self.spec.expectations

    @property
    def current_key(self) -> tuple[str, ...]:
        """Columns that identify current rows: a history has one of each key."""
        return self.key[:-1] if self.spec.has_history else self.key

    @property
    def named_key(self) -> tuple[str, ...]:
        """Key in the order in which readers give it: a window's start last, unless declared.

        Files are in the order of `key`, so that new windows don't rewrite those of old ones.
        """
        if not self.is_view or self.is_key_ordered:
            return self.key
        return tuple(sorted(self.key, key=START.__eq__))

    @property
    def reads(self) -> set[str]:
        """Ids of the tables that it reads, also of those that it only looks up."""
        return {*self.inputs, *(self.reference(r.name) for r in self.spec.references())}

    def reference(self, name: str) -> str:
        """Return the id that a name in this table's declaration means."""
        return name if "." in name else f"{self.pipeline}.{name}"

    def type_of(self, column: str) -> str:
        """Return the type of a visible or hidden column; '' if it isn't known."""
        return self.columns.get(column) or self.hidden.get(column) or HIDDEN_TYPES.get(column, "")


def tables_not_stored(tables: Iterable[Table]) -> tuple[Table, ...]:
    """Return the tables that are not stored."""
    return tuple(table for table in tables if not table.is_stored)


def carried_name(column: str, unchanged: Iterable[str]) -> str:
    """Return the name under which a view carries its input's key column.

    `unchanged` are the view's visible columns that are the input's, under the same name.
    """
    if column.startswith(RESERVED_PREFIX) or column in unchanged:
        return column
    return CARRIED + column


def carried_key(source: Table, unchanged: Iterable[str]) -> dict[str, str]:
    """Return the input's key columns as a view carries them, with their types."""
    unchanged = set(unchanged)
    return {carried_name(column, unchanged): source.type_of(column) for column in source.key}


def carried_columns(view: Table, source: Table) -> dict[str, str]:
    """Return output column -> input column, for the input's key columns that the view carries."""
    return {carried_name(name, view.key): name for name in source.key}


def hidden_of(columns: Mapping[str, str]) -> dict[str, str]:
    """Return the columns that readers do not see."""
    return {name: type_ for name, type_ in columns.items() if name.startswith(RESERVED_PREFIX)}


class UnknownTable(UsageError):
    """A name that no table of the configuration has."""


@dataclass(frozen=True)
class Graph:
    """Every table by its id, inputs before the views over them.

    `left_out`: the mistakes of pipelines that are not in it. `broken`: these pipelines by their
    files; '' of a file that names none.
    """

    tables: Mapping[str, Table] = field(default_factory=dict)
    left_out: SkipJsonSchema[InstanceOf[ConfigError] | None] = None
    broken: Mapping[str, str] = field(default_factory=dict)

    def table(self, name: str) -> Table:
        """Return the table of that id, or of that name if only one pipeline has it.

        Raises the mistakes of pipelines that were left out if no other has the table.
        """
        if name in self.tables:
            return self.tables[name]
        named = [table for table in self.tables.values() if table.name == name]
        if len(named) == 1:
            return named[0]
        raise self._ambiguous(name, named) if named else self._left_out(name) or self._unknown(name)

    def pipeline(self, name: str) -> tuple[Table, ...]:
        """Return the tables of one pipeline, in order."""
        return tuple(table for table in self.tables.values() if table.pipeline == name)

    def inputs(self, table_id: str) -> tuple[Table, ...]:
        return tuple(self.tables[input_] for input_ in self.tables[table_id].inputs)

    def stored(self, ids: Iterable[str]) -> tuple[str, ...]:
        """Return the stored tables behind these: of one that is not stored, its inputs."""
        found: list[str] = []
        for table_id in ids:
            table = self.tables[table_id]
            found += [table_id] if table.is_stored else self.stored(table.inputs)
        return tuple(dict.fromkeys(found))

    def consumers(self, table_id: str) -> tuple[Table, ...]:
        """Return the views that read that table."""
        return tuple(table for table in self.tables.values() if table_id in table.inputs)

    def ancestors(self, table_id: str) -> tuple[Table, ...]:
        """Return the direct and indirect inputs of that table, in order."""
        found: set[str] = set()
        waiting = list(self.tables[table_id].inputs)
        while waiting:
            current = waiting.pop()
            if current not in found:
                found.add(current)
                waiting += self.tables[current].inputs
        return tuple(table for table in self.tables.values() if table.id in found)

    def _left_out(self, name: str) -> ConfigError | None:
        """Return why a table may be left out; a broken file's pipeline may have any table."""
        if not self.left_out or self.broken:
            return self.left_out
        of_table = f": {name.rpartition('.')[2]}: "
        reasons = [reason for reason in self.left_out.mistakes if of_table in reason]
        return ConfigError(reasons, hint=self.left_out.hint) if reasons else None

    def _unknown(self, name: str) -> UnknownTable:
        known = [*self.tables, *(table.name for table in self.tables.values())]
        match = near(name, known)
        guess = f"did you mean {match!r}? " if match else ""
        return UnknownTable(
            f"unknown table {name!r}", hint=f"{guess}tables are: {listing(self.tables)}"
        )

    def _ambiguous(self, name: str, named: list[Table]) -> UnknownTable:
        ids = ", ".join(sorted(table.id for table in named))
        return UnknownTable(
            f"{name!r} names several tables: {ids}", hint="write <pipeline>.<table>"
        )
