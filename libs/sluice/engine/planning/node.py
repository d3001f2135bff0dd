"""One Delta table that batches maintain, with the classes that work on it."""

from dataclasses import dataclass

from sluice.engine.committing.upkeep import Kept
from sluice.engine.computing.batch import Batch
from sluice.engine.query.maintained import Maintained
from sluice.engine.query.operator import Operator


@dataclass(frozen=True)
class Node(Maintained):
    """Maintained table. `batch` plans, computes and proves its rows; `kept` keeps its files."""

    batch: type[Batch[Operator]]
    kept: type[Kept]
