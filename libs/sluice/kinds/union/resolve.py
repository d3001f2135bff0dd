"""Resolution of unions."""

from collections.abc import Mapping, Sequence

from sluice.declare.resolution.scope import Scope, TableMistakes, plain_columns
from sluice.declare.table import Table, carried_name
from sluice.declare.text.document import Where
from sluice.kinds.union.spec import Input, Union
from sluice.language.names import UnknownName
from sluice.language.typed.coercion import widened
from sluice.language.typed.families import family
from sluice.language.typed.inference import ColumnTypes

NUMBER = "_sluice_from"  # which of the inputs a row comes from


def resolve(spec: Union, inputs: Mapping[Where, Table], mistakes: TableMistakes) -> Table:
    """Return the table: the tag, and the columns that all inputs have, in the first one's order.

    A row's key is the number of its input and the input's own key, as far as needed hidden.
    """
    sources = [inputs["from", i] for i in range(len(spec.from_))]
    found = [
        _columns(i, *pair, mistakes) for i, pair in enumerate(zip(spec.from_, sources, strict=True))
    ]
    tag = {spec.tag: "STRING"} if spec.tag else {}
    if spec.tag in found[0]:
        mistakes.add(("tag",), f"the inputs have a column {spec.tag!r} already; use another name")
    columns = {**tag, **_together(spec, found, mistakes)}
    keys = {NUMBER: "INT"}
    for part, source in zip(keys_of(spec, sources), sources, strict=True):
        keys |= {name: source.type_of(column) for name, column in part.items()}
    _check_keys(sources, mistakes)
    hidden = {name: type_ for name, type_ in keys.items() if name not in columns}
    ids = tuple(dict.fromkeys(source.id for source in sources))
    return Table(spec.name, spec.pipeline, spec.KIND, columns, tuple(keys), spec, ids, hidden)


def _check_keys(sources: list[Table], mistakes: TableMistakes) -> None:
    for i, source in enumerate(sources):
        for name in source.key:
            if not source.type_of(name):
                why = f"{source.name}'s key column {name} is of an unknown type: cast it there"
                mistakes.add(("from", i), UnknownName(why))


def keys_of(spec: Union, sources: list[Table]) -> list[dict[str, str]]:
    """Return output column -> key column of each input.

    Keys of the same names and types share columns; all others have separate columns.
    """
    keys = [{name: source.type_of(name) for name in source.key} for source in sources]
    if any(key != keys[0] for key in keys) or NUMBER in keys[0]:
        return [{f"{NUMBER}_{i}_{name}": name for name in key} for i, key in enumerate(keys)]
    everywhere = set.intersection(*(_unchanged(*p) for p in zip(spec.from_, sources, strict=True)))
    return [{carried_name(name, everywhere - {spec.tag}): name for name in key} for key in keys]


def _unchanged(part: Input, source: Table) -> set[str]:
    return set(source.columns) if part.select is None else plain_columns(part.select)


def _columns(i: int, part: Input, source: Table, mistakes: TableMistakes) -> dict[str, str]:
    scope = Scope(source.columns)
    scope.check_condition(part.where, mistakes, "from", i, "where")
    for name, expression in (part.select or {}).items():
        scope.check(expression, mistakes, "from", i, "select", name)
        scope.check_storable(expression, mistakes, "from", i, "select", name)
    return dict(source.columns) if part.select is None else scope.types_of(part.select)


def _together(spec: Union, found: list[dict[str, str]], mistakes: TableMistakes) -> dict[str, str]:
    first = spec.from_[0].table
    for i, columns in enumerate(found[1:], 1):
        _check_names(i, spec.from_[i].table, columns, first, found[0], mistakes)
        for name in [n for n in found[0] if n in columns]:
            types = [c[name] for c in found[i::-1] if name in c]
            if not _go_together(types):
                here, there = _named(types[0]), _named(types[-1])
                why = f"{name} is {here} here and {there} in {first}: cast one"
                mistakes.add(("from", i), why if all(types) else UnknownName(why))
    return {name: widened(c[name] for c in found if name in c) for name in found[0]}


def _named(type_: str) -> str:
    return type_ or "of an unknown type"


def _go_together(types: Sequence[str]) -> bool:
    """True if Spark widens the types without reading texts; unknown ones must be cast."""
    are_texts = {family(type_) == "string" for type_ in types}
    return "" not in types and len(are_texts) == 1 and widened(types) != ""


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
