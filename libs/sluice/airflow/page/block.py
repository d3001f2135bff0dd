"""Module of a kind that shows its newest rows on the page of a table."""

from collections.abc import Iterable
from typing import Protocol

from sluice.declare.table import Table
from sluice.pages.elements import Address, Chapter
from sluice.read.lake import Lake


class Block(Protocol):
    """Module `page`."""

    def chapters(self, lake: Lake, table: Table, why: Address) -> Iterable[Chapter]:
        """Return the rows that are worth a look.

        `why` gives the address of a row's explanation, by options of `sluice why` that name it.
        """
        ...
