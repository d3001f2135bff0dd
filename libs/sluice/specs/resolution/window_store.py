"""A window store's table."""

from sluice.specs.resolution.scope import Report, Scope, plain_columns
from sluice.specs.table import Table, carried, hidden_of
from sluice.specs.window_store import WindowStore


def resolve_window_store(spec: WindowStore, source: Table, report: Report) -> Table:
    """Key, window start (and end), then the other columns of the input or the selected ones."""
    scope = Scope(source.columns)
    _check(spec, scope, report)
    window = {"window_start": "TIMESTAMP", **({"window_end": "TIMESTAMP"} if spec.window else {})}
    head = {**{name: source.type_of(name) for name in spec.key}, **window}
    rest = {name: type_ for name, type_ in _rest(spec, source, scope).items() if name not in head}
    columns = {**head, **rest}
    keys = carried(source, _unchanged(spec, columns)) if spec.duplicates else {}
    key = tuple(dict.fromkeys((*spec.key, "window_start", *keys)))
    return Table(
        spec.name, spec.pipeline, "window_store", columns, key, spec, (source.id,), hidden_of(keys)
    )


def _check(spec: WindowStore, scope: Scope, report: Report) -> None:
    scope.check_names(spec.key, report, "key")
    scope.check_time(spec.time, report, "time")
    for i, key in enumerate(spec.sequence):
        scope.check(key.expression, report, "sequence", i)
    for name, expression in (spec.select or {}).items():
        scope.check(expression, report, "select", name)


def _rest(spec: WindowStore, source: Table, scope: Scope) -> dict[str, str]:
    if spec.select is not None:
        return {name: scope.type_of(expression) for name, expression in spec.select.items()}
    return {name: type_ for name, type_ in source.columns.items() if name != spec.time}


def _unchanged(spec: WindowStore, columns: dict[str, str]) -> set[str]:
    kept = set(columns) if spec.select is None else plain_columns(spec.select)
    start = {"window_start"} if spec.time == "window_start" else set()
    return (kept - {"window_start", "window_end"}) | set(spec.key) | start
