"""Resolution of top-ks."""

from collections.abc import Mapping

from sluice.declare.resolution.scope import Scope, TableMistakes, plain_columns
from sluice.declare.table import Table, carried, hidden_of
from sluice.declare.text.document import Where
from sluice.declare.window import WINDOW
from sluice.kinds.topk.spec import TopK
from sluice.language.typed.types import INTEGERS


def resolve(spec: TopK, inputs: Mapping[Where, Table], mistakes: TableMistakes) -> Table:
    """Return the table: window, partition, then selected or other input columns, then the rank."""
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
    keys = carried(source, _unchanged(spec, columns))
    key = tuple(dict.fromkeys((*list(window)[:1], *partition, *keys)))
    visible = {**columns, spec.rank: "INT"} if spec.rank else columns
    Scope(visible).check_condition(spec.having, mistakes, "having")
    hidden = hidden_of(keys)
    return Table(spec.name, spec.pipeline, spec.KIND, visible, key, spec, (source.id,), hidden)


def _check(spec: TopK, scope: Scope, mistakes: TableMistakes) -> None:
    partition = [named.expression for named in spec.partition_by]
    at = ("sql",) if spec.sql else ("partition_by",)
    scope.check_groups(partition, mistakes, *at)
    scope.check_order(spec.order_by, mistakes, "sql" if spec.sql else "order_by")
    scope.check_select(spec.select, mistakes)
    scope.check_condition(spec.where, mistakes, "where")
    _check_taken(spec, mistakes)
    names = [named.name for named in spec.partition_by]
    for name in sorted({name for name in names if names.count(name) > 1}):
        mistakes.add(at, f"{name!r} is named twice")
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
            at = ("sql",) if spec.sql else ("select", name)
            mistakes.add(at, f"{name!r} is {taken[name]} already; select it under another name")


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
    return {
        name: type_
        for name, type_ in source.columns.items()
        if not _is_old_rank(name, spec, source)
    }


def _is_old_rank(name: str, spec: TopK, source: Table) -> bool:
    """Return whether the column is the input top-k's rank, which the new ranking replaces."""
    return isinstance(source.spec, TopK) and name == source.spec.rank == spec.rank


def _unchanged(spec: TopK, columns: dict[str, str]) -> set[str]:
    partition = {named.name: named.is_plain for named in spec.partition_by}
    selected = set(columns) if spec.select is None else plain_columns(spec.select)
    window = set(WINDOW) if spec.window else set()
    return {
        name for name in columns if partition.get(name, name in selected) and name not in window
    }


def _check_rank(spec: TopK, columns: dict[str, str], mistakes: TableMistakes) -> None:
    if spec.rank in columns:
        at = ("rank",) if "rank" in spec.model_fields_set and not spec.sql else ()
        mistakes.add(
            at,
            f"the rank column {spec.rank!r} has the name of another column; "
            "set `rank:` to a new name, or to false for none",
        )
