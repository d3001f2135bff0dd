"""`kind: union` for the code that works on tables of any kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING

from sluice.declare.column_lineage import InputColumns, MadeFrom, Seen, of_input
from sluice.declare.document import Where
from sluice.declare.registry import Kind
from sluice.declare.resolution import Scope, TableMistakes
from sluice.declare.table import Table
from sluice.kinds.union import NUMBER, Input, Union, keys_of
from sluice.language.inference import ColumnTypes
from sluice.language.names import UnknownName
from sluice.language.types import family, widened_type

if TYPE_CHECKING:
    from sluice.declare.table import Graph
    from sluice.engine.plan import Node


class UnionKind(Kind):
    """Kind of the rows of several tables in one."""

    model = Union

    def resolve(self, spec: Union, inputs: Mapping[Where, Table], mistakes: TableMistakes) -> Table:
        """Return the table: the tag, and the columns of all inputs in the first one's order.

        A row's key is the number of its input and the input's own key, as far as needed hidden.
        """
        sources = [inputs["from", i] for i in range(len(spec.from_))]
        found = [
            _columns(i, *pair, mistakes)
            for i, pair in enumerate(zip(spec.from_, sources, strict=True))
        ]
        tag = {spec.tag: "STRING"} if spec.tag else {}
        if spec.tag in found[0]:
            mistakes.add(
                ("tag",), f"the inputs have a column {spec.tag!r} already; use another name"
            )
        columns = {**tag, **_merge_columns(spec, found, mistakes)}
        keys = {NUMBER: "INT"}
        for part, source in zip(keys_of(spec, sources), sources, strict=True):
            keys |= {name: source.type_of(column) for name, column in part.items()}
        _check_keys(sources, mistakes)
        hidden = {name: type_ for name, type_ in keys.items() if name not in columns}
        ids = tuple(dict.fromkeys(source.id for source in sources))
        return Table(spec.name, spec.pipeline, spec.KIND, columns, tuple(keys), spec, ids, hidden)

    def nodes(self, table: Table, graph: Graph) -> tuple[Node, ...]:
        from sluice.kinds.union.operator import nodes

        return nodes(table, graph)

    def trace_columns(self, table: Table, inputs: Mapping[str, Table]) -> MadeFrom:
        """Return the columns of every input; the tag is made from none."""
        spec = table.spec
        assert isinstance(spec, Union)
        sources = [inputs[table.reference(part.table)] for part in spec.from_]
        found = defaultdict[str, InputColumns](frozenset)
        for part, source, keys in zip(spec.from_, sources, keys_of(spec, sources), strict=True):
            sees = Seen(source)
            for name in (c for c in table.columns if c != spec.tag):
                found[name] |= sees.of(part.select[name]) if part.select else sees.inputs_of(name)
            for out in keys.keys() - table.columns.keys():
                found[out] |= of_input(source, keys[out])
        return {**dict.fromkeys(filter(None, [spec.tag]), frozenset()), **found}


def _check_keys(sources: list[Table], mistakes: TableMistakes) -> None:
    for i, source in enumerate(sources):
        for name in source.key:
            if not source.type_of(name):
                why = f"{source.name}'s key column {name} is of an unknown type: cast it there"
                mistakes.add(("from", i), UnknownName(why))


def _columns(i: int, part: Input, source: Table, mistakes: TableMistakes) -> dict[str, str]:
    scope = Scope(source.columns)
    scope.check_condition(part.where, mistakes, "from", i, "where")
    for name, expression in (part.select or {}).items():
        scope.check(expression, mistakes, "from", i, "select", name)
        scope.check_storable(expression, mistakes, "from", i, "select", name)
    return dict(source.columns) if part.select is None else scope.types_of(part.select)


def _merge_columns(
    spec: Union, found: list[dict[str, str]], mistakes: TableMistakes
) -> dict[str, str]:
    first = spec.from_[0].table
    for i, columns in enumerate(found[1:], 1):
        _check_names(i, spec.from_[i].table, columns, first, found[0], mistakes)
        for name in [n for n in found[0] if n in columns]:
            types = [c[name] for c in found[i::-1] if name in c]
            # Spark widens types without reading texts; unknown ones must be cast.
            are_texts = {family(type_) == "string" for type_ in types}
            if "" in types or len(are_texts) > 1 or not widened_type(types):
                here, there = _show_type(types[0]), _show_type(types[-1])
                why = f"{name} is {here} here and {there} in {first}: cast one"
                mistakes.add(("from", i), why if all(types) else UnknownName(why))
    return {name: widened_type(c[name] for c in found if name in c) for name in found[0]}


def _show_type(type_: str) -> str:
    return type_ or "of an unknown type"


def _check_names(
    i: int,
    table: str,
    columns: ColumnTypes,
    first: str,
    wanted: ColumnTypes,
    mistakes: TableMistakes,
) -> None:
    lacking = [name for name in wanted if name not in columns]
    further = [name for name in columns if name not in wanted]
    if lacking or further:
        lacks = [f"{table} lacks {', '.join(lacking)}"] if lacking else []
        has = [f"{table} has {', '.join(further)}, which {first} lacks"] if further else []
        why = f"{'; '.join([*lacks, *has])}: `select` the common columns"
        mistakes.add(("from", i), UnknownName(why))
