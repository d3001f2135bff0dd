"""The module of a kind that makes a table of a declaration."""

from collections.abc import Mapping
from typing import Any, Protocol

from sluice.specs.document import Where
from sluice.specs.resolution.scope import Report
from sluice.specs.table import Table


class Resolver(Protocol):
    """A module `resolve`."""

    def resolve(self, spec: Any, inputs: Mapping[Where, Table], report: Report) -> Table:
        """The table of a declaration; `inputs`: of its references, by their places.

        Mistakes are noted in the report; what can be derived is derived in spite of them.
        """
        ...
