"""All that others ask of a top-k."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sluice.declare.kind import Kind
from sluice.kinds.topk.spec import TopK

if TYPE_CHECKING:
    import click

    from sluice.declare.graph import Graph
    from sluice.declare.meaning.column_lineage import MadeFrom
    from sluice.declare.resolution.scope import TableMistakes
    from sluice.declare.table import Table
    from sluice.declare.text.document import Where
    from sluice.engine.planning.node import Node
    from sluice.engine.query.absence import Condition, Unmatched
    from sluice.engine.query.lineage import Groups
    from sluice.engine.query.operator import InputRows, Operator
    from sluice.pages.elements import Address, Chapter
    from sluice.read.changelog import Changelog, TouchedGroups
    from sluice.read.conditions.key_order import KeyRange
    from sluice.read.lake import Lake
    from sluice.read.naming import Given, NamingOption
    from sluice.read.ordered.key_values import KeyValues
    from sluice.read.ordered.keyed import KeyedTable


class TopKKind(Kind):
    """`TopK` as a kind of table."""

    model = TopK

    def resolve(self, spec: TopK, inputs: Mapping[Where, Table], mistakes: TableMistakes) -> Table:
        from sluice.kinds.topk.resolve import resolve

        return resolve(spec, inputs, mistakes)

    def nodes(self, table: Table, graph: Graph) -> tuple[Node, ...]:
        from sluice.kinds.topk.nodes import nodes

        return nodes(table, graph)

    def trace_columns(self, table: Table, inputs: Mapping[str, Table]) -> MadeFrom:
        from sluice.kinds.topk.columns import columns

        return columns(table, inputs)

    def trace_rows(self, operator: Operator, groups: Groups) -> InputRows:
        from sluice.kinds.topk.lineage import contributing

        return contributing(operator, groups)

    def list_conditions(self, spec: TopK, found: Sequence[Condition]) -> Sequence[Condition]:
        from sluice.kinds.topk.absence import conditions

        return conditions(spec, found)

    def find_unmatched(
        self, operator: Operator, wanted: InputRows, prepared: InputRows, references: InputRows
    ) -> Iterator[Unmatched]:
        from sluice.kinds.topk.absence import unmatched

        return unmatched(operator, wanted, prepared, references)

    def open_table(
        self, lake: Lake, table: Table, version: int | None, *, backward_iteration: bool
    ) -> KeyValues:
        from sluice.kinds.topk.reader import opened

        return opened(lake, table, version, backward_iteration=backward_iteration)

    def verbs(self) -> Mapping[str, Callable[..., Any]]:
        from sluice.kinds.topk.reader import VERBS

        return VERBS

    def read_maps(
        self, changelog: Changelog, *, from_version: int | None, run: str | None
    ) -> TouchedGroups:
        from sluice.kinds.topk.maps import maps

        return maps(changelog, from_version=from_version, run=run)

    def naming_options(self) -> Mapping[str, NamingOption]:
        from sluice.kinds.topk.naming import OPTIONS

        return OPTIONS

    def find_ranges(self, table: KeyedTable, spec: TopK, given: Given) -> tuple[KeyRange, ...]:
        from sluice.kinds.topk.naming import ranges

        return ranges(table, spec, given)

    def commands(self) -> Sequence[click.Command]:
        from sluice.kinds.topk.commands import COMMANDS

        return COMMANDS

    def chapters(self, lake: Lake, table: Table, why: Address) -> Iterable[Chapter]:
        from sluice.kinds.topk.page import chapters

        return chapters(lake, table, why)
