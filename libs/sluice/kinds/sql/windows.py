"""Window functions, and rankings with a bound, which are top-ks."""

from sqlglot import exp

from sluice.kinds.sql.chain import Chain
from sluice.kinds.sql.clauses import FROM_THE_START
from sluice.kinds.sql.relations import RANK, AnyRows, QueryRows, Ranked, WindowedRows
from sluice.kinds.sql.trees import (
    Refused,
    columns_in,
    conjuncts,
    is_column,
    key_of,
    sql,
    substitute,
)
from sluice.language import syntax
from sluice.language.syntax import Tree

TO_THE_END = ("last_value", "last", "nth_value")
UP_TO_ROW = exp.WindowSpec(
    kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end="CURRENT ROW"
)
RANKINGS = ("row_number", "rank", "dense_rank")
TURNED = {exp.GT: exp.LT, exp.GTE: exp.LTE, exp.LT: exp.GT, exp.LTE: exp.GTE, exp.EQ: exp.EQ}


def with_windows_inlined(select: exp.Select) -> None:
    """Replace the names of windows by their definitions."""
    named = {w.name: w for w in select.args.get("windows") or ()}
    for window in select.find_all(exp.Window):
        if window.arg_key != "windows" and window.parent_select is select:
            _inline(window, named)


def add_windows(chain: Chain, relation: AnyRows) -> AnyRows:
    """Return the relation with its window functions computed, a part for each window."""
    while windows := [w for tree in relation.columns.values() for w in tree.find_all(exp.Window)]:
        relation = _first_window(chain, relation, windows)
    return relation


def _first_window(chain: Chain, relation: AnyRows, windows: list[exp.Window]) -> AnyRows:
    """Return the relation with the functions of one window as columns."""
    spec = _spec_of(windows[0])
    mine = {sql(w): w for w in windows if _spec_of(w) == spec}
    used = (c for t in (*mine.values(), *relation.columns.values()) for c in columns_in(t))
    inner: dict[str, Tree] = {key_of(c): exp.column(c.name, c.table or None) for c in used}
    stored = chain.store(QueryRows(relation.source, inner, relation.where))
    calls, places = {}, {}
    ends_at_ties = not chain.known_of(stored).are_unique_by(_sorted_by(windows[0]))
    for text, window in mine.items():
        places[text] = f"_w{chain.number()}"
        call = _call(stored.resolve(window), ends_at_ties=ends_at_ties)
        calls[places[text]] = call
        chain.note(call, window)
    first = stored.resolve(next(iter(mine.values())))
    order = first.args.get("order")
    source = WindowedRows(
        stored.source,
        stored.where,
        tuple(first.args.get("partition_by") or ()),
        tuple(order.expressions if order else ()),
        calls,
    )
    columns = {n: stored.resolve(_place(t, places)) for n, t in relation.columns.items()}
    return QueryRows(source, columns)


def _place(tree: Tree, places: dict[str, str]) -> Tree:
    def step(node: Tree) -> Tree:
        if isinstance(node, exp.Window) and sql(node) in places:
            return exp.column(places[sql(node)])
        return node

    return tree.copy().transform(step, copy=False)


def _inline(window: exp.Window, named: dict[str, exp.Window]) -> None:
    """Replace the name of a window by its definition."""
    name = window.alias
    if not name:
        return
    if name not in named:
        raise Refused(window, f"window {name!r} is not defined")
    for part in ("partition_by", "order", "spec"):
        if named[name].args.get(part) and not window.args.get(part):
            given = named[name].args[part]
            window.set(part, [p.copy() for p in given] if isinstance(given, list) else given.copy())


def _spec_of(window: exp.Window) -> tuple[str, ...]:
    order = window.args.get("order")
    partition = [sql(tree) for tree in window.args.get("partition_by") or ()]
    return (*partition, "|", *([sql(key) for key in order.expressions] if order else []))


def _sorted_by(window: exp.Window) -> list[str]:
    """Return the plain columns by which a window partitions and sorts."""
    order = window.args.get("order")
    keys = [
        *(window.args.get("partition_by") or ()),
        *(k.this for k in (order.expressions if order else ())),
    ]
    return [key_of(key) for key in keys if isinstance(key, exp.Column)]


def _call(window: Tree, *, ends_at_ties: bool) -> Tree:
    """Return the function over the view's window `w`, or `p` if it has no order."""
    if not window.args.get("order"):
        if window.args.get("spec"):
            raise Refused(window, f"{syntax.render(window)!r}: a frame needs an ORDER BY")
        return _over(window.this, "p", None)
    if _reads_its_ties(window.this) and not window.args.get("spec"):
        if not ends_at_ties:
            return _over(window.this, "w", UP_TO_ROW)
        raise Refused(
            window,
            f"{syntax.render(window)!r} ends with the last of the rows that tie, in no order; "
            "write ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
        )
    return _over(window.this, "w", window.args.get("spec"))


def _reads_its_ties(function: Tree) -> bool:
    """True if the function may return any of the tied rows at the end of its frame."""
    if isinstance(function, exp.IgnoreNulls):
        return function.this.name.lower() in (*TO_THE_END, *FROM_THE_START)
    called = function.this if isinstance(function, exp.RespectNulls) else function
    return called.name.lower() in TO_THE_END


def _over(function: Tree, name: str, spec: Tree | None) -> Tree:
    window = exp.Window(this=function.copy(), alias=exp.to_identifier(name), over="OVER")
    if spec is not None:
        window.set("spec", spec.copy())
    return window


def rank_rows(relation: AnyRows) -> AnyRows:
    """Return a top-k for the rows of one ranking function that conditions bound."""
    source = relation.source
    if not isinstance(source, WindowedRows) or len(source.calls) != 1 or not source.order:
        return relation
    ((place, call),) = source.calls.items()
    if call.this.name.lower() not in RANKINGS or call.args.get("spec"):
        return relation
    bounds: list[tuple[int | None, int | None]] = []
    others: list[Tree] = []
    for condition in [c for w in relation.where for c in conjuncts(w)]:
        found = _bound(condition, place)
        if found:
            bounds.append(found)
        else:
            others.append(condition)
    lasts = [last for _, last in bounds if last is not None]
    if not lasts:
        return relation
    first = max([1, *(first for first, _ in bounds if first is not None)])
    if min(lasts) < first:
        return relation
    ranked = Ranked(
        source.source,
        source.where,
        source.partition,
        source.order,
        min(lasts) - first + 1,
        first - 1,
        call.this.name.lower(),
    )
    rank = {place: exp.column(RANK)}
    return QueryRows(
        ranked,
        {n: substitute(t, rank) for n, t in relation.columns.items()},
        tuple(substitute(t, rank) for t in others),
    )


def _bound(condition: Tree, place: str) -> tuple[int | None, int | None] | None:
    """Return the first and last rank that a condition admits; None for other conditions."""
    if isinstance(condition, exp.Between) and _is(condition.this, place):
        low, high = (_whole(condition.args[name]) for name in ("low", "high"))
        return None if low is None or high is None else (low, high)
    kind, this, other = type(condition), condition.this, condition.args.get("expression")
    if kind in TURNED and other is not None and _is(other, place):
        kind, this, other = TURNED[kind], other, this
    value = _whole(other) if kind in TURNED and _is(this, place) else None
    if value is None:
        return None
    found: dict[type[Tree], tuple[int | None, int | None]] = {
        exp.EQ: (value, value),
        exp.LT: (None, value - 1),
        exp.LTE: (None, value),
        exp.GT: (value + 1, None),
        exp.GTE: (value, None),
    }
    return found[kind]


def _is(tree: Tree, place: str) -> bool:
    return is_column(tree) and tree.name == place


def _whole(tree: Tree | None) -> int | None:
    is_number = isinstance(tree, exp.Literal) and not tree.is_string and tree.name.isdigit()
    return int(tree.name) if is_number and tree is not None else None
