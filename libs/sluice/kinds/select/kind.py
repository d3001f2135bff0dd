"""`kind: select` for the code that works on tables of any kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sluice.declare.column_lineage import MadeFrom, Seen, as_changed, of_input
from sluice.declare.document import Where
from sluice.declare.registry import Kind
from sluice.declare.resolution import Scope, TableMistakes
from sluice.declare.table import Table, hidden_of
from sluice.kinds.select import Selection, keys_of, place_of
from sluice.language.types import base_name, element

if TYPE_CHECKING:
    from sluice.declare.table import Graph
    from sluice.engine.plan import Node


class SelectKind(Kind):
    """Kind of rows of a table that meet a condition, with chosen columns."""

    model = Selection

    def resolve(
        self, spec: Selection, inputs: Mapping[Where, Table], mistakes: TableMistakes
    ) -> Table:
        """Return the table: the selected columns, by the input's key or, if distinct, by all.

        Key columns of the input have the names that they are selected under, or are carried along,
        hidden.
        """
        source = inputs["from",]
        if spec.changes == "refuse":
            spec = spec.model_copy(update={"read_at": mistakes.with_place(("from",), "")})
        known = {**source.columns, **_explode(spec, source, mistakes)}
        scope = Scope(known)
        scope.check_condition(spec.where, mistakes, "where")
        scope.check_select(spec.select, mistakes)
        columns = known if spec.select is None else scope.types_of(spec.select)
        if spec.distinct:
            Scope(columns).check_key(
                tuple(columns), mistakes, *(("select",) if spec.select else ())
            )
            keys = columns
        else:
            keys = {name: source.type_of(column) for name, column in keys_of(spec, source).items()}
            keys |= {place_of(source): "INT"} if spec.explode else {}
        hidden = hidden_of(keys)
        return Table(
            spec.name, spec.pipeline, spec.KIND, columns, tuple(keys), spec, (source.id,), hidden
        )

    def nodes(self, table: Table, graph: Graph) -> tuple[Node, ...]:
        from sluice.kinds.select.operator import nodes

        return nodes(table, graph)

    def trace_columns(self, table: Table, inputs: Mapping[str, Table]) -> MadeFrom:
        """Return the input's columns that each column reads; elements count as their array."""
        spec, source = table.spec, inputs[table.inputs[0]]
        assert isinstance(spec, Selection)
        sees, array = Seen(source), spec.explode
        if array:
            elements = as_changed(sees.of(array.of))
            sees = Seen(
                source, made=dict.fromkeys(filter(None, (array.as_, array.position)), elements)
            )
        select = spec.select or {}
        shown = {c: sees.of(select[c]) if select else sees.inputs_of(c) for c in table.columns}
        if spec.distinct:
            return shown
        hidden = {out: of_input(source, column) for out, column in keys_of(spec, source).items()}
        return {**hidden, **shown}


def _explode(spec: Selection, source: Table, mistakes: TableMistakes) -> dict[str, str]:
    """Return the columns that an exploded array adds; report its mistakes."""
    if spec.explode is None:
        return {}
    scope = Scope(source.columns)
    scope.check(spec.explode.of, mistakes, "explode", "of")
    type_ = scope.type_of(spec.explode.of)
    if base_name(type_) not in ("", "ARRAY"):
        hint = (
            "; write map_entries(…) for the entries of a MAP" if base_name(type_) == "MAP" else ""
        )
        why = f"{spec.explode.of.text!r} is {type_}; an ARRAY is exploded{hint}"
        mistakes.add(("explode", "of"), why)
    found = {spec.explode.as_: element(type_)}
    if spec.explode.position:
        found[spec.explode.position] = "INT"
    for name in found:
        if name in source.columns:
            mistakes.add(
                ("explode",), f"{source.name} has a column {name!r} already; use another name"
            )
    return found
