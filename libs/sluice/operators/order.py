"""Total orders: sort keys with their null order, ended by a unique key."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column
from pyspark.sql import functions as F

Side = Callable[[str], Column]


@dataclass(frozen=True)
class Direction:
    """One column of an order."""

    column: str
    descending: bool = False
    nulls_first: bool = True

    def by(self, row: Side) -> Column:
        """That column of `row` as a sort order."""
        return by(row(self.column), self.descending, self.nulls_first)

    @property
    def reversed(self) -> "Direction":
        """The other way round: what comes last comes first."""
        return replace(self, descending=not self.descending, nulls_first=not self.nulls_first)


def by(column: Column, descending: bool, nulls_first: bool) -> Column:
    """`column` as a sort order."""
    if descending:
        return column.desc_nulls_first() if nulls_first else column.desc_nulls_last()
    return column.asc_nulls_first() if nulls_first else column.asc_nulls_last()


def last_first(columns: Sequence[str]) -> list[Column]:
    """Descending, nulls last: the greatest row comes first."""
    return [by(F.col(f"`{c}`"), descending=True, nulls_first=False) for c in columns]


def at_or_before(order: Sequence[Direction], left: Side, right: Side) -> Column:
    """Whether the row of `left` comes no later in the order than that of `right`. Never null."""
    found = F.lit(True)
    for direction in reversed(order):
        a, b = left(direction.column), right(direction.column)
        found = _before(direction, a, b) | (a.eqNullSafe(b) & found)
    return found


def _before(direction: Direction, a: Column, b: Column) -> Column:
    by_value = F.coalesce(a > b if direction.descending else a < b, F.lit(False))
    first, second = (a, b) if direction.nulls_first else (b, a)
    return by_value | (first.isNull() & second.isNotNull())


def own(column: str) -> Column:
    """The column of the row itself, as a side."""
    return F.col(f"`{column}`")


def within_struct(name: str) -> Side:
    """The columns of a row that is held in a struct column, as a side."""
    return F.col(name).getField
