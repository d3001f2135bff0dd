"""`kind: join` for the code that works on tables of any kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from sluice.declare.column_lineage import MadeFrom, Seen, of_input
from sluice.declare.document import Where
from sluice.declare.registry import Kind
from sluice.declare.resolution import Scope, TableMistakes
from sluice.declare.table import Table
from sluice.kinds.join import END, PRESENT, EquiJoin, ResolvedJoin
from sluice.language.expression import Expression
from sluice.language.types import are_comparable, common, is_orderable, widen_exactly

if TYPE_CHECKING:
    from sluice.declare.table import Graph
    from sluice.engine.operator import InputRows, Operator
    from sluice.engine.plan import Node
    from sluice.engine.tracing import Condition, Groups, Unmatched


class JoinKind(Kind):
    """Kind of pairs of matching rows of two tables."""

    model = EquiJoin
    needs = "rows that match changes"

    def resolve(
        self, spec: EquiJoin, inputs: Mapping[Where, Table], mistakes: TableMistakes
    ) -> Table:
        """Return the table: the selected columns, or all of both sides.

        A row's key consists of the keys of its two rows; parts that are not selected are hidden.
        PRESENT distinguishes a full join's unmatched rows if their keys are null.
        """
        join = ResolvedJoin(spec, inputs["left",], inputs["right",])
        for which, side, table in join.both:
            if side.time:
                Scope(table.columns).check_time(side.time, mistakes, which, "time")
        scope = Scope({}, {spec.left.as_: join.left.columns, spec.right.as_: join.right.columns})
        _check_on(join, scope, mistakes)
        scope.check_condition(spec.where, mistakes, "where")
        shown = Scope({}, {side.as_: table.columns for _, side, table in join.sides})
        shown.check_select(_showable(join, mistakes), mistakes)
        _check_names(join, mistakes)
        columns = shown.types_of(join.shown)
        tables = {which: table for which, _, table in join.sides}
        keys = {name: tables[which].type_of(c) for name, (which, c) in join.keys.items()}
        keys |= {PRESENT: "INT"} if spec.type == "full" else {}
        types = (common(map(scope.type_of, pair)) for pair in join.pairs)
        values = dict(zip(join.on, types, strict=True))
        end = {END: "TIMESTAMP"} if spec.retention else {}
        every = {**values, **keys, **end}
        hidden = {name: type_ for name, type_ in every.items() if name not in columns}
        ids = tuple(dict.fromkeys((join.left.id, join.right.id)))
        return Table(spec.name, spec.pipeline, spec.KIND, columns, tuple(keys), spec, ids, hidden)

    def nodes(self, table: Table, graph: Graph) -> tuple[Node, ...]:
        from sluice.kinds.join.operator import nodes

        return nodes(table, graph)

    def trace_columns(self, table: Table, inputs: Mapping[str, Table]) -> MadeFrom:
        spec = table.spec
        assert isinstance(spec, EquiJoin)
        left, right = (inputs[table.reference(side.table)] for side in (spec.left, spec.right))
        shape, sides = ResolvedJoin(spec, left, right), {"left": left, "right": right}
        sees = Seen(qualified={spec.left.as_: left, spec.right.as_: right})
        shared = {on: sees.of(*pair) for on, pair in zip(shape.on, shape.pairs, strict=True)}
        keys = {out: of_input(sides[which], column) for out, (which, column) in shape.keys.items()}
        return {**shared, **keys, **{name: sees.of(e) for name, e in shape.shown.items()}}

    def trace_rows(self, operator: Operator, groups: Groups) -> InputRows:
        from sluice.kinds.join.operator import trace_rows

        return trace_rows(operator, groups)

    def list_conditions(self, spec: EquiJoin, found: Sequence[Condition]) -> Sequence[Condition]:
        """Return `where`, unless pairs that meet it remove rows."""
        return () if spec.type == "anti" else found

    def find_unmatched(
        self, operator: Operator, wanted: InputRows, prepared: InputRows, references: InputRows
    ) -> Iterator[Unmatched]:
        from sluice.kinds.join.operator import find_unmatched

        return find_unmatched(operator, wanted, prepared, references)


def _showable(join: ResolvedJoin, mistakes: TableMistakes) -> dict[str, Expression]:
    """Return the selected columns; report those of a side that only filters."""
    spec, select = join.spec, dict(join.spec.select or {})
    for name, expression in () if spec.shows_right else list(select.items()):
        if any(c.split(".")[0] == spec.right.as_ for c in expression.columns):
            what = f"`type: {spec.type}` shows rows of {spec.left.as_} alone"
            mistakes.add(("select", name), f"{expression.text!r}: {what}")
            del select[name]
    return select


def _check_on(join: ResolvedJoin, scope: Scope, mistakes: TableMistakes) -> None:
    sides = join.spec.left, join.spec.right
    for pair in join.pairs:
        if not pair[0].columns and not pair[1].columns:
            continue  # of every row with every other
        for side, expression in zip(sides, pair, strict=True):
            scope.check(expression, mistakes, "on")
            known = [c for c in expression.columns if not scope.problem(c)]
            is_of_another = any(c.split(".")[0] != side.as_ for c in known)
            if is_of_another or not expression.columns:
                tables = f"{sides[0].as_} or {sides[1].as_}"
                what = f"{expression.text!r}: each side of = reads one of the tables, {tables}"
                mistakes.add(("on",), what)
        _check_types(pair, scope, mistakes)


def _check_types(
    pair: tuple[Expression, Expression], scope: Scope, mistakes: TableMistakes
) -> None:
    left, right = map(scope.type_of, pair)
    texts = f"{pair[0].text!r} is {left} and {pair[1].text!r} is {right}"
    if not (is_orderable(left) and is_orderable(right) and are_comparable(left, right)):
        mistakes.add(("on",), f"{texts}: they can't be compared; cast one of them")
    elif not widen_exactly(left, right):
        mistakes.add(("on",), f"{texts}, which are not the same values: cast one of them")


def _check_names(join: ResolvedJoin, mistakes: TableMistakes) -> None:
    """Report columns that both sides have, if none is selected by name."""
    if join.spec.select is not None or not join.spec.shows_right:
        return
    both = [c for c in join.left.columns if c in join.right.columns and c not in join.shared]
    if both:
        names = f"{join.spec.left.as_}.{both[0]}"
        mistakes.add(
            (),
            f"both sides have {', '.join(both)}: `select` the wanted columns, e.g. "
            f"{{{both[0]}: {names}}}",
        )
