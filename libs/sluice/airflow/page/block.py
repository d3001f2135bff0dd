"""Block of a kind's newest rows on the page of a table."""

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from sluice.declare.table import Table
from sluice.pages.elements import Address, Chapter
from sluice.read.lake import Lake


@runtime_checkable
class Block(Protocol):
    """Kind with a block on the page."""

    def chapters(self, lake: Lake, table: Table, why: Address) -> Iterable[Chapter]:
        """Return the rows that are worth a look.

        `why` gives the address of a row's explanation, by options of `sluice why` that name it.
        """
        ...
