"""Clauses as relations: GROUP BY with aggregates and HAVING, set operations, and window functions.

Sums and means of distinct values have a stream for each value, of its distinct rows. Set operations
put rows of both sides together, and count them by the side that has them.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import chain, combinations, product

from sqlglot import exp

from sluice.kinds.sql.chain import Chain
from sluice.kinds.sql.query import OF_SETS
from sluice.kinds.sql.relations import (
    RANK,
    AnyRows,
    Branch,
    DistinctRows,
    ExplodedRows,
    Grouped,
    GroupStream,
    QueryRows,
    Ranked,
    StoredRows,
    Together,
    WindowedRows,
    rename_columns,
)
from sluice.kinds.sql.trees import (
    Refused,
    call_of,
    columns_in,
    conjuncts,
    has_aggregates,
    is_aggregate,
    is_column,
    is_query,
    key_of,
    sql,
    substitute,
    unfiltered,
)
from sluice.language import syntax
from sluice.language.syntax import Tree

EVERY = "every"
LATER = "_later"  # placeholder for values that are joined to groups
FROM_THE_START = ("first_value", "first", "any_value")
SETS = (exp.GroupingSets, exp.Rollup, exp.Cube)
VALUE = "value"


def group_rows(
    parts: Chain, select: exp.Select, scope: AnyRows, trees: Mapping[str, Tree]
) -> AnyRows:
    """Return the groups of a SELECT with its expressions over them."""
    keys, sets = _keys(select, trees), _sets(select)
    used = {key_of(column) for tree in (*keys, *trees.values()) for column in columns_in(tree)}
    stored = parts.store(scope, used)
    plain = [key_of(key) for key in keys if isinstance(key, exp.Column)]
    same = parts.known_of(stored).determined_by([] if sets else plain)
    trees = {name: _of_same(tree, same) for name, tree in trees.items()}
    if sets:
        return _in_sets(parts, stored, keys, sets, trees)
    named = {f"k{i}": stored.resolve(key) for i, key in enumerate(keys)}
    places = GroupedNames({sql(tree): name for name, tree in named.items()}, stored)
    columns = {name: places.place(tree) for name, tree in trees.items()}
    return QueryRows(groups_of(parts, stored, named, places.aggregates), columns)


def _of_same(tree: Tree, same: Collection[str]) -> Tree:
    """Return an expression with `max` for aggregates that take any of values that are the same."""
    found = tree.copy()
    for call in [n for n in found.walk(prune=is_query) if _takes_any(n)]:
        if {key_of(column) for column in columns_in(call)} <= {*same}:
            call.set("this", "max")
            if isinstance(call.parent, exp.IgnoreNulls):
                call.parent.replace(call)
        elif call.name.lower() == "any_value":
            what = f"{sql(call)} returns an arbitrary one of several values"
            raise Refused(call, f"{what}: write min(x), or group by its columns as well")
    return found


def _takes_any(node: Tree) -> bool:
    return (
        isinstance(node, exp.Anonymous)
        and node.name.lower() in FROM_THE_START
        and is_aggregate(node)
        and len(node.expressions) == 1
    )


def groups_of(
    parts: Chain, rows: StoredRows, keys: Mapping[str, Tree], aggregates: Mapping[str, Tree]
) -> Grouped:
    """Return groups of rows; without keys, one of all rows, which is there even over none."""
    by = keys or {EVERY: exp.Literal.number(1)}
    plain, streams = split_distincts(parts, rows, by, aggregates)
    return Grouped(rows.source, rows.where, by, plain, not keys, streams)


def _keys(select: exp.Select, trees: Mapping[str, Tree]) -> list[Tree]:
    group = select.args.get("group")
    if group is None:
        return []
    if group.args.get("all"):
        shown = [t for n, t in trees.items() if not n.startswith(("order ", "having "))]
        return [tree for tree in shown if not has_aggregates([tree])]
    listed = [key for one in _sets(select) for key in one] or group.expressions
    return [*{sql(key): key for key in listed}.values()]


def _sets(select: exp.Select) -> list[list[Tree]]:
    """Return the keys of each of the GROUPING SETS; none for a plain GROUP BY."""
    group = select.args.get("group")
    trees = list(group.expressions) if group else []
    if group and (group.args.get("rollup") or group.args.get("cube")):  # WITH ROLLUP
        whole = exp.Rollup if group.args.get("rollup") else exp.Cube
        trees = [whole(expressions=trees)]
    if not any(isinstance(tree, SETS) for tree in trees):
        return []
    return [[*chain.from_iterable(one)] for one in product(*map(_sets_of, trees))]


def _sets_of(tree: Tree) -> list[list[Tree]]:
    """Return the sets of keys of one item of GROUP BY."""
    items = [item.unnest() for item in tree.expressions]
    each = [[*i.expressions] if isinstance(i, exp.Tuple) else [i] for i in items]
    if isinstance(tree, exp.GroupingSets):
        return each
    if isinstance(tree, exp.Rollup):
        chosen = [each[:n] for n in range(len(each), -1, -1)]
    elif isinstance(tree, exp.Cube):
        chosen = [[*c] for n in range(len(each), -1, -1) for c in combinations(each, n)]
    else:
        return [[tree]]
    return [[*chain.from_iterable(one)] for one in chosen]


def _in_sets(
    parts: Chain,
    stored: StoredRows,
    keys: list[Tree],
    sets: list[list[Tree]],
    trees: Mapping[str, Tree],
) -> AnyRows:
    """Return the groups of each set together; keys that a set lacks are null."""
    branches: list[Branch] = []
    for one in sets:
        named = {sql(stored.resolve(key)): f"k{i}" for i, key in enumerate(one)}
        lacking = [sql(stored.resolve(k)) for k in keys if sql(stored.resolve(k)) not in named]
        places = GroupedNames(named, stored, frozenset(lacking))
        columns = {name: places.place(tree) for name, tree in trees.items()}
        by = {f"k{i}": stored.resolve(key) for i, key in enumerate(one)}
        groups = groups_of(parts, stored, by, places.aggregates)
        source = replace(groups, is_whole=False)
        part = parts.store(QueryRows(source, columns))
        branches.append((part.source, part.where, part.columns))
    return QueryRows(Together(tuple(branches)), {name: exp.column(name) for name in trees})


class GroupedNames:
    """Expressions over groups: keys and aggregates by the names of their places."""

    def __init__(
        self, keys: Mapping[str, str], rows: StoredRows, lacking: frozenset[str] = frozenset()
    ) -> None:
        """`lacking`: keys of other sets, which are null here."""
        self.keys, self.rows, self.lacking = keys, rows, lacking
        self.aggregates: dict[str, Tree] = {}
        self._by_text: dict[str, str] = {}

    def place(self, tree: Tree) -> Tree:
        """Return an expression of a SELECT as one over keys and aggregates."""
        if place := self.keys.get(sql(self.rows.resolve(tree))):
            return exp.column(place)
        if sql(self.rows.resolve(tree)) in self.lacking:
            never = exp.Where(this=exp.Boolean(this=False))  # for a null of the key's type
            any_ = call_of("max", tree.copy())
            return exp.column(self._aggregate(exp.Filter(this=any_, expression=never)))
        if isinstance(tree, exp.Anonymous) and tree.name.lower() in OF_SETS:
            return self._number_of_sets(tree)
        if is_aggregate(tree):
            return exp.column(self._aggregate(tree))
        if isinstance(tree, exp.Column):
            return self._column(tree)
        copied = tree.copy()
        inside = [*copied.iter_expressions()]
        for child, copy in zip(tree.iter_expressions(), inside, strict=True):
            copy.replace(self.place(child))
        return copied

    def _column(self, column: exp.Column) -> Tree:
        """Return a column that is not a key: a value joined to groups, or one that rows share."""
        if column.table == LATER:
            return column.copy()
        if column.table.isupper() and not self.lacking:
            return exp.column(self._aggregate(call_of("max", column.copy())))
        raise Refused(column, f"{syntax.render(column)} is neither in GROUP BY nor in an aggregate")

    def _number_of_sets(self, tree: exp.Anonymous) -> Tree:
        """Return grouping(x): 1 where a set lacks the key x, else 0; grouping_id: bits of these."""
        is_one = tree.name.lower() == "grouping"
        if not tree.expressions or (is_one and len(tree.expressions) != 1):
            raise Refused(tree, f"{syntax.render(tree)!r}: name the keys")
        texts = [sql(self.rows.resolve(key)) for key in tree.expressions]
        bits = "".join(str(int(text in self.lacking)) for text in texts)
        return exp.cast(exp.Literal.number(int(bits, 2)), "tinyint" if is_one else "bigint")

    def _aggregate(self, tree: Tree) -> str:
        resolved = self.rows.resolve(_whole_count(tree))
        text = sql(resolved)
        if text not in self._by_text:
            self._by_text[text] = f"a{len(self.aggregates)}"
            self.aggregates[self._by_text[text]] = resolved
        return self._by_text[text]


def _whole_count(tree: Tree) -> Tree:
    """Return count(*) for count(1), which is the same."""
    counted = unfiltered(tree)
    if isinstance(counted, exp.Anonymous) and counted.name.lower() == "count":
        only = counted.expressions
        if len(only) == 1 and isinstance(only[0], exp.Literal):
            copied = tree.copy()
            unfiltered(copied).set("expressions", [exp.Star()])
            return copied
    return tree


def split_distincts(
    parts: Chain, rows: StoredRows, keys: Mapping[str, Tree], aggregates: Mapping[str, Tree]
) -> tuple[dict[str, Tree], tuple[GroupStream, ...]]:
    """Return the aggregates of all rows, and a stream for each value that is summed distinct."""
    found = {name: _distinct_rows(tree) for name, tree in aggregates.items()}
    values = {sql(value): value for value in found.values() if value is not None}
    shown = {n: tree for n, tree in keys.items() if tree.find(exp.Column)}  # others are constants
    streams = []
    for text, value in values.items():
        seen = DistinctRows(rows.source, {**shown, VALUE: value}, rows.where)
        stored = parts.store(QueryRows(seen, {n: exp.column(n) for n in (*shown, VALUE)}))
        mine = {
            name: call_of(unfiltered(tree).name, stored.columns[VALUE].copy())
            for name, tree in aggregates.items()
            if (its := found[name]) is not None and sql(its) == text
        }
        by = {**keys, **{key: stored.columns[key] for key in shown}}
        streams.append(GroupStream(stored.source, stored.where, by, mine))
    return {n: tree for n, tree in aggregates.items() if found[n] is None}, tuple(streams)


def _distinct_rows(tree: Tree) -> Tree | None:
    """Return the value of a distinct sum or mean; None for other aggregates."""
    of = unfiltered(tree)
    first = of.expressions[0] if of.expressions else None
    if not isinstance(first, exp.Distinct) or of.name.lower() not in ("sum", "avg", "mean"):
        return None
    value: Tree = first.expressions[0].copy()
    if isinstance(tree, exp.Filter):
        return exp.Case(ifs=[exp.If(this=tree.expression.this.copy(), true=value)])
    return value


def set_of(chain: Chain, tree: exp.SetOperation, sides: list[AnyRows]) -> AnyRows:
    """Return the rows of UNION, INTERSECT or EXCEPT of two sides."""
    names = [*sides[0].columns]
    if len(names) != len(sides[1].columns):
        raise Refused(tree, "both sides of a set operation must have the same number of columns")
    sides[1] = rename_columns(sides[1], names)
    is_distinct = tree.args.get("distinct")
    if isinstance(tree, exp.Union):
        together = _unite(chain, sides)
        return keep_distinct(chain, together) if is_distinct else together
    return _compare(chain, tree, sides, is_distinct=bool(is_distinct))


def _unite(chain: Chain, sides: list[AnyRows]) -> AnyRows:
    branches: list[Branch] = []
    for side in sides:
        if isinstance(side.source, Together):
            for source, asked, columns in side.source.branches:
                flat = QueryRows(source, columns, asked)
                conditions = (*asked, *(flat.resolve(w) for w in side.where))
                branches.append(
                    (source, conditions, {n: flat.resolve(t) for n, t in side.columns.items()})
                )
            continue
        stored = chain.store(side)
        branches.append((stored.source, stored.where, stored.columns))
    return QueryRows(Together(tuple(branches)), {n: exp.column(n) for n in sides[0].columns})


def _compare(
    chain: Chain, tree: exp.SetOperation, sides: list[AnyRows], *, is_distinct: bool
) -> AnyRows:
    """Return the rows of the left side that the right one has, or hasn't.

    Distinct ones are there once, others as often as both have them, or as the left has more.
    """
    both_sides = []
    for which, side in enumerate(sides):
        marks = {"in_left": exp.Literal.number(1 - which), "in_right": exp.Literal.number(which)}
        both_sides.append(QueryRows(side.source, {**side.columns, **marks}, side.where))
    together = chain.store(_unite(chain, both_sides))
    keys = {n: together.columns[n] for n in sides[0].columns}
    counts = {n: call_of("sum", together.columns[n]) for n in ("in_left", "in_right")}
    source = Grouped(
        together.source, together.where, {f"k{i}": t for i, t in enumerate(keys.values())}, counts
    )
    shown = {n: exp.column(f"k{i}") for i, n in enumerate(keys)}
    if not is_distinct:
        return _repeat(chain, QueryRows(source, shown), isinstance(tree, exp.Intersect))
    second = exp.GT if isinstance(tree, exp.Intersect) else exp.EQ
    conditions = [
        compared(this=exp.column(n), expression=exp.Literal.number(0))
        for n, compared in (("in_left", exp.GT), ("in_right", second))
    ]
    return QueryRows(source, shown, tuple(conditions))


def _repeat(chain: Chain, groups: QueryRows[Grouped], is_intersection: bool) -> AnyRows:
    """Return each group as often as both sides have it, or as the left side has more."""
    left, right = (exp.column(n) for n in ("in_left", "in_right"))
    both = call_of("least", left, right)
    times: Tree = both if is_intersection else exp.Sub(this=left, expression=right)
    counted = QueryRows(groups.source, {**groups.columns, "times": times})
    stored = chain.store(counted)
    one, many = exp.Literal.number(1), stored.columns["times"]
    numbers = call_of("sequence", one, many.copy())
    number = chain.number()
    where = exp.GT(this=many.copy(), expression=exp.Literal.number(0))
    source = ExplodedRows(
        stored.source,
        (*stored.where, where),
        exp.cast(numbers, "array<bigint>"),
        f"item_{number}",
        f"place_{number}",
    )
    return QueryRows(source, {n: stored.columns[n] for n in groups.columns})


def keep_distinct(chain: Chain, relation: AnyRows) -> AnyRows:
    """Return each row once."""
    stored = chain.store(relation)
    source = DistinctRows(stored.source, stored.columns, stored.where)
    return QueryRows(source, {name: exp.column(name) for name in stored.columns})


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
