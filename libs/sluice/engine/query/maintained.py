"""One Delta table that batches maintain, with the operator that computes its rows."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field

from sluice.declare.expectation import Expectation
from sluice.declare.table import Table
from sluice.engine.query.operator import Operator


@dataclass(frozen=True)
class Maintained:
    """Table with a position of its own.

    `ignored`: columns that don't make a row differ. `parts`: fingerprints of the parts of its
    definition, if it has separate ones.
    """

    id: str
    table: Table
    operator: Operator
    definition: str
    _: KW_ONLY
    partition_by: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    parts: Mapping[str, str] = field(default_factory=dict)

    @property
    def expectations(self) -> tuple[Expectation, ...]:
        """Expectations of the rows of a view's own table; sources have their gate."""
        is_visible = self.table.is_view and self.id == self.table.id
        return self.table.expect if is_visible else ()
