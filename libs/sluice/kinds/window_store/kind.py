"""All that others ask of a window store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sluice.declare.kind import Kind
from sluice.kinds.window_store.spec import WindowStore

if TYPE_CHECKING:
    import click

    from sluice.declare.graph import Graph
    from sluice.declare.meaning.column_lineage import MadeFrom
    from sluice.declare.resolution.scope import TableMistakes
    from sluice.declare.table import Table
    from sluice.declare.text.document import Where
    from sluice.engine.planning.node import Node
    from sluice.engine.query.lineage import Groups
    from sluice.engine.query.operator import InputRows, Operator
    from sluice.pages.elements import Address, Chapter
    from sluice.read.conditions.key_order import KeyRange
    from sluice.read.lake import Lake
    from sluice.read.naming import Given, NamingOption
    from sluice.read.ordered.key_values import KeyValues
    from sluice.read.ordered.keyed import KeyedTable


class WindowStoreKind(Kind):
    """`WindowStore` as a kind of table."""

    model = WindowStore

    def resolve(
        self, spec: WindowStore, inputs: Mapping[Where, Table], mistakes: TableMistakes
    ) -> Table:
        from sluice.kinds.window_store.resolve import resolve

        return resolve(spec, inputs, mistakes)

    def nodes(self, table: Table, graph: Graph) -> tuple[Node, ...]:
        from sluice.kinds.window_store.nodes import nodes

        return nodes(table, graph)

    def trace_columns(self, table: Table, inputs: Mapping[str, Table]) -> MadeFrom:
        from sluice.kinds.window_store.columns import columns

        return columns(table, inputs)

    def trace_rows(self, operator: Operator, groups: Groups) -> InputRows:
        from sluice.kinds.window_store.lineage import contributing

        return contributing(operator, groups)

    def open_table(
        self, lake: Lake, table: Table, version: int | None, *, backward_iteration: bool
    ) -> KeyValues:
        from sluice.kinds.window_store.reader import opened

        return opened(lake, table, version, backward_iteration=backward_iteration)

    def verbs(self) -> Mapping[str, Callable[..., Any]]:
        from sluice.kinds.window_store.reader import VERBS

        return VERBS

    def naming_options(self) -> Mapping[str, NamingOption]:
        from sluice.kinds.window_store.naming import OPTIONS

        return OPTIONS

    def find_ranges(
        self, table: KeyedTable, spec: WindowStore, given: Given
    ) -> tuple[KeyRange, ...]:
        from sluice.kinds.window_store.naming import ranges

        return ranges(table, spec, given)

    def commands(self) -> Sequence[click.Command]:
        from sluice.kinds.window_store.commands import COMMANDS

        return COMMANDS

    def chapters(self, lake: Lake, table: Table, why: Address) -> Iterable[Chapter]:
        from sluice.kinds.window_store.page import chapters

        return chapters(lake, table, why)
