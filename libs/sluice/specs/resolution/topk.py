"""A top-k's table."""

from sluice.specs.resolution.scope import Report, Scope, plain_columns
from sluice.specs.table import Table, carried, hidden_of
from sluice.specs.topk import TopK

WINDOW = {"window_start": "TIMESTAMP", "window_end": "TIMESTAMP"}


def resolve_topk(spec: TopK, source: Table, report: Report) -> Table:
    """Window, partition columns, then the selected or the input's other ones, then the rank."""
    scope = Scope(source.columns)
    _check(spec, scope, report)
    window = WINDOW if spec.window else {}
    partition = {named.name: scope.type_of(named.expression) for named in spec.partition_by}
    rest = _rest(spec, source, scope)
    columns = {**window, **partition, **{k: v for k, v in rest.items() if k not in {*window, *partition}}}
    _check_rank(spec, columns, report)
    keys = carried(source, _unchanged(spec, columns))
    key = dict.fromkeys((*list(window)[:1], *partition, *keys))
    rank = {spec.rank: "INT"} if spec.rank else {}
    return Table(
        spec.name, spec.pipeline, "topk", {**columns, **rank}, tuple(key), spec, (source.id,), hidden_of(keys)
    )


def _check(spec: TopK, scope: Scope, report: Report) -> None:
    for i, named in enumerate(spec.partition_by):
        scope.check(named.expression, report, "partition_by", i)
    for i, key in enumerate(spec.order_by):
        scope.check(key.expression, report, "order_by", i)
    for name, expression in (spec.select or {}).items():
        scope.check(expression, report, "select", name)
    if isinstance(spec.limit, str):
        scope.check_names([spec.limit], report, "limit")
    if spec.window:
        scope.check_time(spec.window.time, report, "window", "time")


def _rest(spec: TopK, source: Table, scope: Scope) -> dict[str, str]:
    if spec.select is not None:
        return {name: scope.type_of(expression) for name, expression in spec.select.items()}
    dropped = source.spec.rank if isinstance(source.spec, TopK) else None
    return {name: type_ for name, type_ in source.columns.items() if name != dropped or name != spec.rank}


def _unchanged(spec: TopK, columns: dict[str, str]) -> set[str]:
    partition = {named.name: named.is_plain for named in spec.partition_by}
    selected = columns.keys() if spec.select is None else plain_columns(spec.select)
    window = set(WINDOW) if spec.window else set()
    return {name for name in columns if partition.get(name, name in selected) and name not in window}


def _check_rank(spec: TopK, columns: dict[str, str], report: Report) -> None:
    if spec.rank in columns:
        report.add(
            ("rank",) if "rank" in spec.model_fields_set else (),
            f"the rank column {spec.rank!r} has the name of another column; set `rank:` to a new name or false",
        )
