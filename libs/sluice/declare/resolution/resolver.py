"""Interface of a kind's module that makes a table from a declaration."""

from collections.abc import Mapping
from typing import Any, Protocol

from sluice.declare.resolution.scope import TableMistakes
from sluice.declare.table import Table
from sluice.declare.text.document import Where


class Resolver(Protocol):
    """The module `resolve` of a kind."""

    def resolve(self, spec: Any, inputs: Mapping[Where, Table], mistakes: TableMistakes) -> Table:
        """Return the table of a declaration; `inputs` holds its references, by their places.

        Mistakes are noted in the report; the rest is derived in spite of them.
        """
        ...
