"""One Delta table that batches maintain: its operator, and the classes that work on it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sluice.declare.quality import Expectation
from sluice.declare.table import Table
from sluice.engine.query.operator import Operator

if TYPE_CHECKING:
    from sluice.engine.committing.upkeep import Kept
    from sluice.engine.computing.batch import Batch


@dataclass(frozen=True)
class Node:
    """Table with a position of its own.

    `batch` plans, computes and proves its rows; `kept` looks after its files. `ignored`: columns
    that don't make a row differ. `parts`: fingerprints of the parts of its definition, if it has
    separate ones.
    """

    id: str
    table: Table
    operator: Operator
    definition: str
    batch: "type[Batch]"
    kept: "type[Kept]"
    partition_by: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    parts: Mapping[str, str] = field(default_factory=dict)

    @property
    def expectations(self) -> tuple[Expectation, ...]:
        """Expectations of the rows of a view's own table; sources have their gate."""
        is_visible = self.table.is_view and self.id == self.table.id
        return self.table.expect if is_visible else ()
