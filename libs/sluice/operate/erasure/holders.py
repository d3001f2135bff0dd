"""Tables that hold the rows of a source or a dimension as delivered."""

from dataclasses import dataclass

from sluice.declare.table import Table
from sluice.errors import UsageError
from sluice.language.internal import internal


@dataclass(frozen=True)
class Holder:
    """A table that holds delivered rows, and the columns that distinguish these."""

    id: str
    key: tuple[str, ...]


def delivered_in(table: Table) -> tuple[Holder, ...]:
    """Return the tables that hold a table's delivered rows; the last one holds the current ones.

    Raises UsageError for a table whose rows can't be forgotten.
    """
    if not table.is_delivered:
        raise UsageError(
            f"{table.id} is of kind {table.kind}; only rows of a source or a dimension are "
            "forgotten",
            hint="a view follows the tables that it is made from: forget the row there",
        )
    keys = {internal(table.id, name): key for name, key in table.spec.delivered_beside.items()}
    keys[table.delivered_to] = keys.get(table.delivered_to, table.key)
    return tuple(Holder(*held) for held in keys.items())
