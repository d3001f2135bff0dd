"""A table as its readers see it: visible columns, the key of its rows, its inputs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sluice.declare.expectation import Expectation
from sluice.declare.table_spec import Section, TableSpec
from sluice.declare.window import START
from sluice.language.hidden_columns import CARRIED, HIDDEN_TYPES
from sluice.language.internal import DELIVERIES, internal
from sluice.language.names import RESERVED_PREFIX


@dataclass(frozen=True)
class Table:
    """One table of the graph.

    `taken`: columns that its files brought beyond the declared ones. `through`: the tables
    among its inputs that are not stored. They have no state, so their meaning is part of the
    table's.
    `parts`: the tables in its chain, each with its own kind, itself the last. `is_key_ordered`: the
    declaration gives the order of all of the key's columns.
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
    is_key_ordered: bool = False

    @property
    def id(self) -> str:
        """`retail.top_products`."""
        return f"{self.pipeline}.{self.name}"

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
        """Section of its pipeline's file that declares it."""
        return self.spec.SECTION

    @property
    def description(self) -> str:
        """Description in its declaration."""
        return self.spec.description

    @property
    def expect(self) -> tuple[Expectation, ...]:
        """Expectations of its rows."""
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

    def reference(self, name: str) -> str:
        """Return the id that a name in this table's declaration means."""
        return name if "." in name else f"{self.pipeline}.{name}"

    def type_of(self, column: str) -> str:
        """Return the type of a visible or hidden column; '' if it isn't known."""
        return self.columns.get(column) or self.hidden.get(column) or HIDDEN_TYPES.get(column, "")


def unstored(tables: Iterable[Table]) -> tuple[Table, ...]:
    """Return the tables that are not stored."""
    return tuple(table for table in tables if not table.is_stored)


def carried_name(column: str, unchanged: Iterable[str]) -> str:
    """Return the name under which a view carries its input's key column.

    `unchanged` are the view's visible columns that are the input's, under the same name.
    """
    if column.startswith(RESERVED_PREFIX) or column in unchanged:
        return column
    return CARRIED + column


def carried(source: Table, unchanged: Iterable[str]) -> dict[str, str]:
    """Return the input's key columns as a view carries them, with their types."""
    unchanged = set(unchanged)
    return {carried_name(column, unchanged): source.type_of(column) for column in source.key}


def carried_columns(view: Table, source: Table) -> dict[str, str]:
    """Return output column -> input column, for the input's key columns that the view carries."""
    return {carried_name(name, view.key): name for name in source.key}


def hidden_of(columns: Mapping[str, str]) -> dict[str, str]:
    """Return the columns that readers do not see."""
    return {name: type_ for name, type_ in columns.items() if name.startswith(RESERVED_PREFIX)}
