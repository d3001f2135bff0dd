"""Module of a kind that shows its newest rows on the page of a table."""

from collections.abc import Sequence
from typing import Any, Protocol

from sluice.declare.table import Table
from sluice.read.lake import Lake


class Block(Protocol):
    """Module `page`. `TEMPLATE` lies beside it and is given `rows`."""

    TEMPLATE: str

    def shown(self, lake: Lake, table: Table) -> Sequence[Any]:
        """Return the rows that are worth a look, in the form that the template takes."""
        ...
