"""Total orders: sort keys with their null order, ended by a unique key."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column
from pyspark.sql import functions as F


@dataclass(frozen=True)
class Direction:
    """One column of an order."""

    column: str
    descending: bool = False
    nulls_first: bool = True

    def sql(self, row: str = "") -> str:
        """Return an item of ORDER BY; `row`: the struct column or alias that has the column."""
        direction = "DESC" if self.descending else "ASC"
        nulls = "FIRST" if self.nulls_first else "LAST"
        return f"{field(row, self.column)} {direction} NULLS {nulls}"

    @property
    def reversed(self) -> "Direction":
        """The reverse direction: the last comes first."""
        return replace(self, descending=not self.descending, nulls_first=not self.nulls_first)


def by(column: Column, descending: bool, nulls_first: bool) -> Column:
    """Return `column` as a sort order."""
    if descending:
        return column.desc_nulls_first() if nulls_first else column.desc_nulls_last()
    return column.asc_nulls_first() if nulls_first else column.asc_nulls_last()


def last_first(columns: Sequence[str]) -> list[Column]:
    """Return a descending order, nulls last: the greatest row comes first."""
    return [by(F.col(f"`{c}`"), descending=True, nulls_first=False) for c in columns]


def at_or_before(order: Sequence[Direction], left: str, right: str) -> str:
    """SQL that is true if the row `left` comes no later in the order than `right`. Never null."""
    found = "true"
    for direction in reversed(order):
        a, b = field(left, direction.column), field(right, direction.column)
        by_value = f"coalesce({a} {'>' if direction.descending else '<'} {b}, false)"
        first, second = (a, b) if direction.nulls_first else (b, a)
        before = f"{by_value} OR ({first} IS NULL AND {second} IS NOT NULL)"
        found = f"({before} OR ({a} <=> {b} AND {found}))"
    return found


def field(row: str, column: str) -> str:
    """SQL for a column of a struct column or alias; of the row itself without one."""
    return f"{row}.`{column}`" if row else f"`{column}`"
