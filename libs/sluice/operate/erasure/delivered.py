"""Tables in which the rows of a source or a dimension lie as they were delivered."""

from dataclasses import dataclass

from sluice.declare.table import Table
from sluice.dimensions.spec import Dimension
from sluice.errors import UsageError
from sluice.files.marks import ID, INTERVAL
from sluice.language.internal import STATE, internal
from sluice.sources.delivery import stored_as
from sluice.sources.spec import Source


@dataclass(frozen=True)
class Holder:
    """A table that holds delivered rows, and the columns that distinguish these."""

    id: str
    key: tuple[str, ...]


def delivered_in(table: Table) -> tuple[Holder, ...]:
    """Return what holds a table's delivered rows; the last one shows those that stand.

    Raises UsageError for a table whose rows can't be forgotten.
    """
    match table.spec:
        case Dimension() as spec:
            log = Holder(internal(table.id, STATE), spec.identity)
            return (*([log] if spec.is_log else []), Holder(table.id, table.key))
        case Source() as spec:
            return (Holder(stored_as(table, spec), (INTERVAL, ID)),)
    raise UsageError(
        f"{table.id} is a {table.kind}, and only rows of a source or a dimension are forgotten",
        hint="a view follows the tables that it is made from: forget the row there",
    )


def outside(table: Table) -> str:
    """Return where a table's rows come from if that is no path of files, in words."""
    if isinstance(table.spec, Source):
        return table.spec.outside
    options = getattr(table.spec, "options", {})
    asked = options.get("dbtable") or options.get("query")
    return f"the database's {asked}" if asked else ""
