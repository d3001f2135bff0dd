"""Resolution of window stores."""

from collections.abc import Mapping

from sluice.declare.resolution.scope import Scope, TableMistakes, plain_columns
from sluice.declare.table import Table, carried, hidden_of
from sluice.declare.text.document import Where
from sluice.kinds.window_store.spec import WindowStore
from sluice.language.typed.types import base_name

NESTED = ("ARRAY", "STRUCT")
USELESS = "`sequence` chooses one of two rows; with `duplicates` both are kept: drop one"


def resolve(spec: WindowStore, inputs: Mapping[Where, Table], mistakes: TableMistakes) -> Table:
    """Return the table: key, window start (and end), then other input columns or selected ones."""
    source = inputs["from",]
    scope = Scope(source.columns)
    _check(spec, scope, mistakes)
    if spec.duplicates and spec.sequence:
        mistakes.add(("sequence",), USELESS)
    window = {"window_start": "TIMESTAMP", **({"window_end": "TIMESTAMP"} if spec.window else {})}
    first = {**{name: source.type_of(name) for name in spec.key}, **window}
    rest = _rest(spec, source, scope)
    _check_rest(spec, rest, mistakes)
    columns = {**first, **{name: type_ for name, type_ in rest.items() if name not in first}}
    keys = carried(source, _unchanged(spec, columns)) if spec.duplicates else {}
    key = tuple(dict.fromkeys((*spec.key, "window_start", *keys)))
    hidden = hidden_of(keys)
    return Table(spec.name, spec.pipeline, spec.KIND, columns, key, spec, (source.id,), hidden)


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


def _rest(spec: WindowStore, source: Table, scope: Scope) -> dict[str, str]:
    if spec.select is not None:
        return scope.types_of(spec.select)
    return {name: type_ for name, type_ in source.columns.items() if name != spec.time}


def _unchanged(spec: WindowStore, columns: dict[str, str]) -> set[str]:
    kept = set(columns) if spec.select is None else plain_columns(spec.select)
    start = {"window_start"} if spec.time == "window_start" else set()
    return (kept - {"window_start", "window_end"}) | set(spec.key) | start
