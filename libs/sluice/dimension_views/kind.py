"""All that others ask of a view of dimensions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sluice.declare.kind import Kind
from sluice.dimension_views.spec import DimensionView

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sluice.declare.meaning.column_lineage import MadeFrom
    from sluice.declare.resolution.scope import TableMistakes
    from sluice.declare.table import Table
    from sluice.declare.text.document import Where
    from sluice.read.lake import Lake
    from sluice.read.ordered.key_values import KeyValues


class DimensionViewKind(Kind):
    """`DimensionView` as a kind of table."""

    model = DimensionView

    def resolve(
        self, spec: DimensionView, inputs: Mapping[Where, Table], mistakes: TableMistakes
    ) -> Table:
        from sluice.dimension_views.resolve import resolve

        return resolve(spec, inputs, mistakes)

    def compute_rows(self, table: Table, inputs: Mapping[str, DataFrame]) -> DataFrame:
        from sluice.dimension_views.rows import rows

        return rows(table, inputs)

    def trace_columns(self, table: Table, inputs: Mapping[str, Table]) -> MadeFrom:
        from sluice.dimension_views.columns import columns

        return columns(table, inputs)

    def open_table(
        self, lake: Lake, table: Table, version: int | None, *, backward_iteration: bool
    ) -> KeyValues:
        from sluice.dimension_views.reader import opened

        return opened(lake, table, version, backward_iteration=backward_iteration)

    def verbs(self) -> Mapping[str, Callable[..., Any]]:
        from sluice.dimension_views.reader import VERBS

        return VERBS
