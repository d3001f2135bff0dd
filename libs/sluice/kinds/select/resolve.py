"""Resolution of selects."""

from collections.abc import Mapping

from sluice.declare.resolution.scope import Scope, TableMistakes
from sluice.declare.table import Table, carried_name, hidden_of
from sluice.declare.text.document import Where
from sluice.kinds.select.spec import Selection
from sluice.language.typed.coercion import element
from sluice.language.typed.types import base_name

PLACE = "_sluice_place"


def resolve(spec: Selection, inputs: Mapping[Where, Table], mistakes: TableMistakes) -> Table:
    """Return the table: the selected columns, by the input's key or, if distinct, by all of them.

    Key columns of the input have the names that they are selected under, or are carried along,
    hidden.
    """
    source = inputs["from",]
    known = {**source.columns, **_exploded(spec, source, mistakes)}
    scope = Scope(known)
    scope.check_condition(spec.where, mistakes, "where")
    scope.check_select(spec.select, mistakes)
    columns = known if spec.select is None else scope.types_of(spec.select)
    if spec.distinct:
        Scope(columns).check_key(tuple(columns), mistakes, *(("select",) if spec.select else ()))
        keys = columns
    else:
        keys = {name: source.type_of(column) for name, column in keys_of(spec, source).items()}
        keys |= {place_of(source): "INT"} if spec.explode else {}
    hidden = hidden_of(keys)
    return Table(
        spec.name, spec.pipeline, spec.KIND, columns, tuple(keys), spec, (source.id,), hidden
    )


def _exploded(spec: Selection, source: Table, mistakes: TableMistakes) -> dict[str, str]:
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


def place_of(source: Table) -> str:
    """Return the hidden column with the number of a row's element, -1 for no element."""
    taken = sum(column.startswith(PLACE) for column in source.key)
    return f"{PLACE}_{taken}" if taken else PLACE


def keys_of(spec: Selection, source: Table) -> dict[str, str]:
    """Return key column of the view -> key column of the input."""
    if spec.select is None:
        return {carried_name(column, source.columns): column for column in source.key}
    plain = {expression.plain_column: name for name, expression in spec.select.items()}
    plain |= {name: name for name in spec.select if spec.select[name].plain_column == name}
    return {plain.get(column) or carried_name(column, ()): column for column in source.key}
