"""Kind of tables: what its declarations are, and how they become tables.

Every kind has only this. Whatever else a kind may offer is a protocol, which callers test for where
they need it: `isinstance(kind(table.kind), Maker)`. Each protocol describes one part of a class:

    Columns     columns that its columns are made from      declare.column_lineage
    Maker       its stored tables, operators and batches    engine.planning.nodes
    Unstored    rows of a table that is not stored          engine.query.operator
    Lineage     rows that its rows come from                engine.query.operator
    Absence     what absent rows lack                       engine.query.absence
    Reader      reads of its tables in ways of its own      read.lake
    Mapped      its changes in groups of rows               read.changelog
    Naming      rows that are named otherwise than by key   read.naming
    Landed      reasons to deliver nothing                  read.pending
    Lagging     what was not read yet outside the lake      read.pending
    Planned     its next deliveries, for `sluice plan`      operate.explain
    Delivering  deliveries, replays and rebuilds            operate.delivering
    Resuming    reads that continue elsewhere               operate.delivering
    Block       its block on Airflow's page                 report.table_page
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from sluice.declare.document import Where
    from sluice.declare.resolution import TableMistakes
    from sluice.declare.table import Table
    from sluice.declare.table_spec import Section, TableSpec


class Kind(ABC):
    """One kind of table.

    A kind is imported to check a configuration, to read and to parse DAG files. So its module
    imports neither Spark nor Delta Lake; the methods that need them import what they call.
    `model`: the model of its declarations.
    """

    model: "ClassVar[type[TableSpec]]"

    @property
    def name(self) -> str:
        """Name of the kind; for views, as written under `kind:`."""
        return self.model.KIND

    @property
    def section(self) -> "Section":
        """Section of a pipeline's file that declares it."""
        return self.model.SECTION

    @abstractmethod
    def resolve(
        self, spec: Any, inputs: "Mapping[Where, Table]", mistakes: "TableMistakes"
    ) -> "Table | None":
        """Return the table of a declaration; `inputs` holds its references, by their places.

        Mistakes are noted in the report; the rest is derived in spite of them. None if that can't
        be done.
        """
