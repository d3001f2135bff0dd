"""`kind: window_store` for the code that works on tables of any kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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
from sluice.declare.table_spec import END, START
from sluice.kinds.window_store import WindowStore
from sluice.language.types import base_name

if TYPE_CHECKING:
    from sluice.declare.table import Graph
    from sluice.engine.operator import InputRows, Operator
    from sluice.engine.plan import Node
    from sluice.engine.tracing import Groups
    from sluice.pages import Address, Chapter
    from sluice.read.key_order import KeyRange
    from sluice.read.keyed import KeyedTable
    from sluice.read.lake import Lake
    from sluice.read.naming import Given, NamingOption

NESTED = ("ARRAY", "STRUCT")
USELESS = "`sequence` chooses one of two rows; with `duplicates` both are kept: drop one"


class WindowStoreKind(Kind):
    """Kind of rows by key and event time, read newest first."""

    model = WindowStore

    def resolve(
        self, spec: WindowStore, inputs: Mapping[Where, Table], mistakes: TableMistakes
    ) -> Table:
        """Return the table: key, window start (and end), selected or all other input columns."""
        source = inputs["from",]
        scope = Scope(source.columns)
        _check(spec, scope, mistakes)
        if spec.duplicates and spec.sequence:
            mistakes.add(("sequence",), USELESS)
        window = {
            "window_start": "TIMESTAMP",
            **({"window_end": "TIMESTAMP"} if spec.window else {}),
        }
        first = {**{name: source.type_of(name) for name in spec.key}, **window}
        others = {name: type_ for name, type_ in source.columns.items() if name != spec.time}
        rest = others if spec.select is None else scope.types_of(spec.select)
        _check_rest(spec, rest, mistakes)
        columns = {**first, **{name: type_ for name, type_ in rest.items() if name not in first}}
        keys = carried_key(source, _unchanged_columns(spec, columns)) if spec.duplicates else {}
        key = tuple(dict.fromkeys((*spec.key, "window_start", *keys)))
        hidden = hidden_of(keys)
        return Table(spec.name, spec.pipeline, spec.KIND, columns, key, spec, (source.id,), hidden)

    def nodes(self, table: Table, graph: Graph) -> tuple[Node, ...]:
        from sluice.kinds.window_store.operator import nodes

        return nodes(table, graph)

    def trace_columns(self, table: Table, inputs: Mapping[str, Table]) -> MadeFrom:
        """Return the input's columns; a window begins at the event time."""
        spec, source = table.spec, inputs[table.inputs[0]]
        assert isinstance(spec, WindowStore)
        sees, time, select = Seen(source), of_input(source, spec.time), spec.select or {}
        start = time if source.type_of(spec.time) == "TIMESTAMP" else as_changed(time)

        def shown(name: str) -> InputColumns:
            if name in (START, END):
                return start if name == START else as_changed(time)
            return sees.of(select[name]) if name in select else sees.inputs_of(name)

        return {**of_carried(table, source), **{name: shown(name) for name in table.columns}}

    def trace_rows(self, operator: Operator, groups: Groups) -> InputRows:
        """Return the input's row that represents each group."""
        from sluice.kinds.window_store.operator import WindowStoreRows

        assert isinstance(operator, WindowStoreRows)
        found = groups.prepared
        return (
            found if operator.row_wise else {n: operator.last_of_each(r) for n, r in found.items()}
        )

    def verbs(self) -> Mapping[str, Callable[..., Any]]:
        from sluice.kinds.window_store.reader import window

        return {"window": window}

    def naming_options(self) -> Mapping[str, NamingOption]:
        from sluice.kinds.window_store.reader import NAMING_OPTIONS

        return NAMING_OPTIONS

    def find_ranges(
        self, table: KeyedTable, spec: WindowStore, given: Given
    ) -> tuple[KeyRange, ...]:
        from sluice.kinds.window_store.reader import find_ranges

        return find_ranges(table, spec, given)

    def chapters(self, lake: Lake, table: Table, why: Address) -> Iterable[Chapter]:
        from sluice.kinds.window_store.reader import chapters

        return chapters(lake, table, why)


def _check(spec: WindowStore, scope: Scope, mistakes: TableMistakes) -> None:
    scope.check_key(spec.key, mistakes, "key")
    scope.check_time(spec.time, mistakes, "time")
    scope.check_order(spec.sequence, mistakes, "sequence")
    scope.check_select(spec.select, mistakes)
    scope.check_condition(spec.where, mistakes, "where")
    for name in spec.key:
        if (nested := base_name(scope.columns.get(name, ""))) in NESTED:
            mistakes.add(("key",), f"{name} is {nested}; reads sort by plain values: select those")
    if spec.time in spec.key:
        mistakes.add(("key",), f"{spec.time} is already the event time: drop it from the key")


def _check_rest(spec: WindowStore, rest: dict[str, str], mistakes: TableMistakes) -> None:
    selected = spec.select or {}
    for name in sorted({*spec.key} & selected.keys() - plain_columns(selected)):
        mistakes.add(("select", name), f"{name} is the store's key as it is; use another name")
    own = {"window_start"} | ({"window_end"} if spec.window else set())
    for name in sorted(own & rest.keys()):
        at = ("select", name) if spec.select else ()
        mistakes.add(at, f"{name} is the store's own column; `select` the others, or rename it")


def _unchanged_columns(spec: WindowStore, columns: dict[str, str]) -> set[str]:
    kept = set(columns) if spec.select is None else plain_columns(spec.select)
    start = {"window_start"} if spec.time == "window_start" else set()
    return (kept - {"window_start", "window_end"}) | set(spec.key) | start
