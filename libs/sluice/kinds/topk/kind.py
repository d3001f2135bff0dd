"""`kind: topk` for the code that works on tables of any kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sluice.declare.column_lineage import (
    InputColumns,
    MadeFrom,
    Seen,
    as_changed,
    of_carried,
    of_input,
)
from sluice.declare.document import Where
from sluice.declare.registry import Kind
from sluice.declare.resolution import Scope, TableMistakes, plain_columns
from sluice.declare.table import Table, carried_key, hidden_of
from sluice.declare.table_spec import END, START, WINDOW
from sluice.kinds.topk import TopK
from sluice.language.types import INTEGERS

if TYPE_CHECKING:
    from sluice.declare.table import Graph
    from sluice.engine.operator import InputRows, Operator
    from sluice.engine.plan import Node
    from sluice.engine.tracing import Condition, Groups, Unmatched
    from sluice.pages import Address, Chapter
    from sluice.read.changelog import Changelog, TouchedGroups
    from sluice.read.key_order import KeyRange
    from sluice.read.keyed import KeyedTable, KeyValues
    from sluice.read.lake import Lake
    from sluice.read.naming import Given, NamingOption


class TopKKind(Kind):
    """Kind of rankings: the first rows of each group, by an order."""

    model = TopK
    needs = "rows that move up"

    def resolve(self, spec: TopK, inputs: Mapping[Where, Table], mistakes: TableMistakes) -> Table:
        """Return the table: window, partition, selected or all other input columns, rank."""
        source = inputs["from",]
        scope = Scope(source.columns)
        _check(spec, scope, mistakes)
        _check_window(spec, source, mistakes)
        window = WINDOW if spec.window else {}
        partition = {named.name: scope.type_of(named.expression) for named in spec.partition_by}
        head = {**window, **partition}
        rest = {k: v for k, v in _rest(spec, source, scope).items() if k not in head}
        columns = {**head, **rest}
        _check_rank(spec, columns, mistakes)
        keys = carried_key(source, _unchanged_columns(spec, columns))
        key = tuple(dict.fromkeys((*list(window)[:1], *partition, *keys)))
        visible = {**columns, spec.rank: "INT"} if spec.rank else columns
        Scope(visible).check_condition(spec.having, mistakes, "having")
        hidden = hidden_of(keys)
        return Table(spec.name, spec.pipeline, spec.KIND, visible, key, spec, (source.id,), hidden)

    def nodes(self, table: Table, graph: Graph) -> tuple[Node, ...]:
        from sluice.kinds.topk.batch import nodes

        return nodes(table, graph)

    def trace_columns(self, table: Table, inputs: Mapping[str, Table]) -> MadeFrom:
        """Return the input's columns; a rank is made from those of the order."""
        spec, source = table.spec, inputs[table.inputs[0]]
        assert isinstance(spec, TopK)
        sees, groups = Seen(source), {named.name: named.expression for named in spec.partition_by}
        if spec.window:
            time = as_changed(of_input(source, spec.window.time))
            sees = Seen(source, made={START: time, END: time})
        order = as_changed(sees.of(*(key.expression for key in spec.order_by)))

        def shown(name: str) -> InputColumns:
            if name == spec.rank:
                return order
            expression = groups.get(name) or (spec.select or {}).get(name)
            return sees.of(expression) if expression else sees.inputs_of(name)

        return {**of_carried(table, source), **{name: shown(name) for name in table.columns}}

    def trace_rows(self, operator: Operator, groups: Groups) -> InputRows:
        from sluice.kinds.topk.operator import trace_rows

        return trace_rows(operator, groups)

    def list_conditions(self, spec: TopK, found: Sequence[Condition]) -> Sequence[Condition]:
        from sluice.kinds.topk.operator import list_conditions

        return list_conditions(spec, found)

    def find_unmatched(
        self, operator: Operator, wanted: InputRows, prepared: InputRows, references: InputRows
    ) -> Iterator[Unmatched]:
        return iter(())

    def open_table(
        self, lake: Lake, table: Table, version: int | None, *, backward_iteration: bool
    ) -> KeyValues:
        from sluice.kinds.topk.reader import shown_first

        assert isinstance(table.spec, TopK)
        first = shown_first(table.spec)
        return lake.stored(table, version, backward_iteration=backward_iteration, first=first)

    def verbs(self) -> Mapping[str, Callable[..., Any]]:
        from sluice.kinds.topk.reader import Ranking, top

        return {"ranking": Ranking.open, "top": top}

    def read_maps(
        self, changelog: Changelog, *, from_version: int | None, run: str | None
    ) -> TouchedGroups:
        from sluice.kinds.topk.reader import Maps, Ranking

        return Maps(changelog, Ranking.open(changelog.lake, changelog.name), from_version, run)

    def naming_options(self) -> Mapping[str, NamingOption]:
        from sluice.kinds.topk.reader import NAMING_OPTIONS

        return NAMING_OPTIONS

    def find_ranges(self, table: KeyedTable, spec: TopK, given: Given) -> tuple[KeyRange, ...]:
        from sluice.kinds.topk.reader import find_ranges

        return find_ranges(table, spec, given)

    def chapters(self, lake: Lake, table: Table, why: Address) -> Iterable[Chapter]:
        from sluice.kinds.topk.page import chapters

        return chapters(lake, table, why)


def _check(spec: TopK, scope: Scope, mistakes: TableMistakes) -> None:
    partition = [named.expression for named in spec.partition_by]
    scope.check_groups(partition, mistakes, "partition_by")
    scope.check_order(spec.order_by, mistakes, "order_by")
    scope.check_select(spec.select, mistakes)
    scope.check_condition(spec.where, mistakes, "where")
    _check_taken(spec, mistakes)
    names = [named.name for named in spec.partition_by]
    for name in sorted({name for name in names if names.count(name) > 1}):
        mistakes.add(("partition_by",), f"{name!r} is named twice")
    if isinstance(spec.limit, str):
        scope.check_names([spec.limit], mistakes, "limit")
        type_ = scope.columns.get(spec.limit, "")
        if type_ and type_ not in INTEGERS:
            mistakes.add(("limit",), f"{spec.limit} is {type_}; a limit is a whole number")


def _check_taken(spec: TopK, mistakes: TableMistakes) -> None:
    """Note selected columns named like a window or partition column but with another meaning."""
    taken = dict.fromkeys(WINDOW, "the window's") if spec.window else {}
    groups = {named.name: named.expression.sql for named in spec.partition_by}
    taken |= {name: f"the partition's {sql}" for name, sql in groups.items()}
    for name, expression in (spec.select or {}).items():
        if name in taken and groups.get(name) != expression.sql:
            mistakes.add(
                ("select", name), f"{name!r} is {taken[name]} already; select it under another name"
            )


def _check_window(spec: TopK, source: Table, mistakes: TableMistakes) -> None:
    if spec.window:
        Scope(source.columns).check_time(spec.window.time, mistakes, "window", "time")
        if "window_start" in source.columns:
            mistakes.add(
                ("window",),
                f"{source.name} has windows already; put window_start into `partition_by` instead",
            )
        if spec.window.type == "session":
            mistakes.add(("window", "type"), "a top-k's window is tumbling or hopping")
    elif spec.retention:
        hint = "is inherited from the input" if source.spec.windows else "needs a `window`"
        mistakes.add(("retention",), f"`retention` is how long a window is kept: it {hint}")


def _rest(spec: TopK, source: Table, scope: Scope) -> dict[str, str]:
    if spec.select is not None:
        return scope.types_of(spec.select)
    old_rank = source.spec.rank if isinstance(source.spec, TopK) else None
    replaced = {old_rank} & {spec.rank}  # an input top-k's rank gives way to the new one
    return {name: type_ for name, type_ in source.columns.items() if name not in replaced}


def _unchanged_columns(spec: TopK, columns: dict[str, str]) -> set[str]:
    partition = {named.name: named.is_plain for named in spec.partition_by}
    selected = set(columns) if spec.select is None else plain_columns(spec.select)
    window = set(WINDOW) if spec.window else set()
    return {
        name for name in columns if partition.get(name, name in selected) and name not in window
    }


def _check_rank(spec: TopK, columns: dict[str, str], mistakes: TableMistakes) -> None:
    if spec.rank in columns:
        at = ("rank",) if "rank" in spec.model_fields_set else ()
        mistakes.add(
            at,
            f"the rank column {spec.rank!r} has the name of another column; "
            "set `rank:` to a new name, or to false for none",
        )
