"""FROM and JOIN: the rows that a query may name, and its sources joined one after the other.

An equality between two tables joins them, in ON or in WHERE.

Sources are tables, common table expressions, queries in FROM, and rows that the query itself
writes: VALUES, and a SELECT without FROM. Constants need a table: the single, empty group of a
table that the query names. A join absorbs them without it. Conditions are applied as soon as the
tables that they name are joined.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from sluice.kinds.sql import correlated
from sluice.kinds.sql.chain import Chain
from sluice.kinds.sql.clauses import EVERY, rank_rows
from sluice.kinds.sql.relations import (
    AnyRows,
    ExplodedRows,
    Grouped,
    Joined,
    QueryRows,
    StoredRows,
    TableRows,
    rename_columns,
)
from sluice.kinds.sql.trees import (
    Refused,
    call_of,
    columns_in,
    conjuncts,
    has_query,
    is_column,
    is_true,
    key_of,
    line_of,
    of_side,
    sql,
    tables_of,
)
from sluice.language import syntax
from sluice.language.syntax import Tree

# Sides whose own conditions may become part of the join's.
ABSORBED = {"inner": "lr", "semi": "lr", "left": "r", "right": "l", "anti": "r", "full": ""}
# Sides whose columns are null in rows without a match.
NULLED = {"left": "r", "right": "l", "full": "lr"}
SHOWN = {"semi": "l", "anti": "l"}
NO_EQUALITY = (
    "a join without an equality between the two sides can't be maintained incrementally: every row "
    "may match every other; join on a key"
)
NULL_SAFE = (
    "`<=>` alone can't be maintained incrementally: a join needs an equality (`=`) between the two "
    "sides; to match nulls as well, compare coalesce(...) of both sides"
)
NEVER: Tree = exp.Boolean(this=False)


def no_equality(conditions: Iterable[Tree]) -> str:
    """Return the reason why a join on these conditions is not supported."""
    is_null_safe = any(c.find(exp.NullSafeEQ) for c in conditions)
    return NULL_SAFE if is_null_safe else NO_EQUALITY


@dataclass
class JoinedSources:
    """Sources joined so far. `pending`: conditions of WHERE that wait for their tables.

    `after`: expressions that are evaluated after all joins. `nulls_follow`: a RIGHT or FULL JOIN
    will bring rows with nulls, which WHERE must see too. `carried`: conditions of inner joins that
    name tables of later ones.
    """

    planner: "Planner"
    rows: AnyRows
    aliases: set[str]
    pending: list[Tree]
    after: list[Tree]
    nulls_follow: bool = False
    carried: list[Tree] = field(default_factory=list)

    def apply(self) -> None:
        """Apply the conditions whose tables are all joined."""
        ready = [c for c in self.usable([]) if tables_of(c) <= self.aliases]
        self._take(ready)
        self.rows = rank_rows(self.rows.filter(self.rows.resolve(c) for c in ready))

    def usable(self, on: list[Tree]) -> list[Tree]:
        """Return the conditions that an inner join may use, with its own."""
        where = [] if self.nulls_follow else self.pending
        return [c for c in (*self.carried, *on, *where) if not has_query(c)]

    def taken_by(self, aliases: set[str], on: list[Tree]) -> list[Tree]:
        """Return the conditions that an inner join can use; keep its others for later."""
        found = [c for c in self.usable(on) if tables_of(c) <= self.aliases | aliases]
        self.carried += [c for c in on if not _is_among(c, found)]
        self._take(found)
        return found

    def left_over(self) -> list[Tree]:
        """Return the conditions that were not applied, and drop them."""
        found, self.carried, self.pending = [*self.carried, *self.pending], [], []
        return found

    def _take(self, conditions: list[Tree]) -> None:
        self.pending = [c for c in self.pending if not _is_among(c, conditions)]
        self.carried = [c for c in self.carried if not _is_among(c, conditions)]

    def join(
        self,
        other: AnyRows,
        aliases: set[str],
        type_: str,
        on: Sequence[Tree],
        rest: Sequence[Tree],
    ) -> None:
        """Join a further source, whose columns are `alias.column`.

        `on`: its conditions; `rest`: trees still to be evaluated.
        """
        for condition in on:
            if has_query(condition):
                raise Refused(condition, "a subquery in ON is not supported; write it in WHERE")
        if type_ == "inner" and is_constant(self.planner.chain, other):
            self.beside(other, aliases, on)
            return
        pairs, others = equalities(on, self.aliases, aliases)
        if type_ == "inner" and not pairs and is_constant(self.planner.chain, self.rows):
            constants, before = self.rows, self.aliases
            self.rows, self.aliases = other, aliases
            self.beside(constants, before, on)
            return
        is_one_row = type_ == "inner" and self.is_free(other)
        one = exp.Literal.number(1)
        wanted = self._list_needed([*on, *rest])
        left = self._side(self.rows, wanted, type_, "l")
        right = self._side(other, wanted, type_, "r")
        columns = {**_of(left, "l"), **_of(right, "r")}
        both = [(of_side(left.resolve(a), "l"), of_side(right.resolve(b), "r")) for a, b in pairs]
        for sides, written in zip(both, pairs, strict=True):
            for side, said in zip(sides, written, strict=True):
                self.planner.chain.note(side, said)
        on_both = [pair for pair in both if all(side.find(exp.Column) for side in pair)]
        fixed = [exp.EQ(this=a, expression=b) for a, b in both if (a, b) not in on_both]
        if not on_both and not is_one_row:
            raise Refused(on[0] if on else self.after[0], no_equality(on))
        everything = QueryRows(TableRows(""), columns)
        where = [
            *(of_side(w, "l") for w in left.where),
            *(of_side(w, "r") for w in right.where),
            *(everything.resolve(c) for c in others),
            *fixed,
        ]
        names = left.source.table, right.source.table
        source = Joined(*names, type_, tuple(on_both) or ((one, one),), tuple(where))
        shown = SHOWN.get(type_, "lr")
        self.rows = QueryRows(
            source, {**_of(left, "l"), **(_of(right, "r") if "r" in shown else {})}
        )
        self.aliases = self.aliases | (aliases if "r" in shown else set())

    def side(self) -> StoredRows:
        """Return the rows joined so far over a stored table, and the rest to evaluate."""
        return self.planner.chain.store(self.rows, self._list_needed([]))

    def is_free(self, other: AnyRows) -> bool:
        """True if an inner join needs no equality: one side has one row, or is constant."""
        chain = self.planner.chain
        return any(chain.is_one_row(r) or is_constant(chain, r) for r in (other, self.rows))

    def explode(
        self, call: Tree, alias: str, names: Sequence[str], rest: Sequence[Tree], *, outer: bool
    ) -> None:
        """Replace each row by one for each element of an array. `names`: its columns."""
        name = call.name.lower() if isinstance(call, exp.Anonymous) else ""
        plain = name.removesuffix("_outer")
        if plain not in ("explode", "posexplode") or len(call.expressions) != 1:
            raise Refused(
                call, f"{syntax.render(call)!r} can't be maintained incrementally: explode an array"
            )
        stored = self.planner.chain.store(self.rows, self._list_needed([call, *rest]))
        number = self.planner.chain.number()
        item, place = exp.column(f"item_{number}"), exp.column(f"place_{number}")
        of = stored.resolve(call.expressions[0])
        found: list[Tree] = [item]
        names = list(names) or ["col"]
        if len(names) > (2 if plain == "posexplode" else 1):
            of = call_of("map_entries", of)
            found = [exp.Dot(this=item, expression=exp.to_identifier(f)) for f in ("key", "value")]
        found = [place, *found] if plain == "posexplode" else found
        if len(found) != len(names):
            raise Refused(call, f"{syntax.render(call)!r} gives {len(found)} columns: name them")
        is_outer = outer or name.endswith("_outer")
        source = ExplodedRows(stored.source, stored.where, of, item.name, place.name, is_outer)
        new = {f"{alias}.{n}": tree for n, tree in zip(names, found, strict=True)}
        self.rows = QueryRows(source, {**stored.columns, **new})
        self.aliases = self.aliases | {alias}

    def beside(self, constants: AnyRows, aliases: set[str], on: Sequence[Tree]) -> None:
        """Join constants, one row or as many as an array has; no table is needed for them."""
        source = constants.source
        if isinstance(source, ExplodedRows):
            stored = self.planner.chain.store(self.rows, self._list_needed(on))
            here = ExplodedRows(stored.source, stored.where, source.of, source.item, source.place)
            self.rows = QueryRows(here, stored.columns)
        columns = {**self.rows.columns, **constants.columns}
        self.rows = QueryRows(self.rows.source, columns, (*self.rows.where, *constants.where))
        self.aliases = self.aliases | aliases
        self.rows = rank_rows(self.rows.filter(self.rows.resolve(c) for c in on))

    def _list_needed(self, trees: Sequence[Tree]) -> set[str]:
        """Return the columns that are still to be evaluated, with those of `trees`."""
        every = [*trees, *self.carried, *self.pending, *self.after]
        return {key_of(c) for tree in every for c in columns_in(tree)}

    def _side(self, rows: AnyRows, wanted: set[str], type_: str, side: str) -> StoredRows:
        chain = self.planner.chain
        stored = chain.store(rows, wanted)
        is_plain = all(is_column(tree) for tree in stored.columns.values())
        if (stored.where and side not in ABSORBED[type_]) or (
            side in NULLED.get(type_, "") and not is_plain
        ):
            return chain.table(stored)
        return stored


def is_constant(chain: Chain, rows: AnyRows) -> bool:
    """True for constants: one row of them, or the elements of a constant array for one row."""
    source = rows.source
    if isinstance(source, ExplodedRows):
        base = QueryRows(source.source, {}, source.where)
        return chain.is_one_row(base) and next(columns_in(source.of), None) is None
    columns = (c for tree in rows.columns.values() for c in columns_in(tree))
    return chain.is_one_row(rows) and next(columns, None) is None


def _is_among(condition: Tree, conditions: Iterable[Tree]) -> bool:
    return any(condition is other for other in conditions)


def equalities(
    conditions: Iterable[Tree], left: set[str], right: set[str]
) -> tuple[list[tuple[Tree, Tree]], list[Tree]]:
    """Return pairs (of the left, of the right side) that must be equal, and other conditions."""
    pairs, others = [], []
    for condition in conditions:
        pair = _pair(condition, left, right)
        if pair:
            pairs.append(pair)
        else:
            others.append(condition)
    return pairs, others


def _pair(condition: Tree, left: set[str], right: set[str]) -> tuple[Tree, Tree] | None:
    if not isinstance(condition, exp.EQ) or has_query(condition):
        return None
    for one, other in (
        (condition.this, condition.expression),
        (condition.expression, condition.this),
    ):
        a, b = tables_of(one), tables_of(other)
        if a and b and a <= left and b <= right:
            return one, other
    return None


def prefix_columns(rows: AnyRows, alias: str) -> AnyRows:
    """Return the rows with their columns as `alias.column`."""
    return rows.show({f"{alias}.{n}": tree for n, tree in rows.columns.items()})


def _of(rows: AnyRows, side: str) -> dict[str, Tree]:
    return {name: of_side(tree, side) for name, tree in rows.columns.items()}


@dataclass
class Planner(ABC):
    """Plans the queries inside a query. `shared`: relations of common table expressions, by name.

    A query may occur wherever rows or a value may, so every part's planner gets this.
    """

    chain: Chain
    tables: Mapping[str, AnyRows]
    shared: dict[str, AnyRows] = field(default_factory=dict)

    @abstractmethod
    def query(self, tree: Tree) -> AnyRows:
        """Return the relation of a SELECT, a set operation or a list of VALUES."""

    @abstractmethod
    def value(self, joined: Any, subquery: exp.Subquery) -> Tree:
        """Join a scalar subquery to the `joined` sources; return the expression of its value."""

    def one_row(self) -> AnyRows:
        """Return one row without columns, even if all tables are empty."""
        table = next(t.source for t in self.tables.values() if isinstance(t.source, TableRows))
        counted = {"n": call_of("count", exp.Star())}
        every = {EVERY: exp.Literal.number(1)}
        return QueryRows(Grouped(table, (NEVER,), every, counted, is_whole=True), {})

    def values(self, tree: exp.Values) -> AnyRows:
        """Return the rows of VALUES; columns without a name are col1, col2 and so on."""
        rows = [list(e.expressions) if isinstance(e, exp.Tuple) else [e] for e in tree.expressions]
        names = _column_list(tree) or [f"col{i + 1}" for i in range(len(rows[0]))]
        if any(len(row) != len(names) for row in rows):
            raise Refused(tree, "each row of VALUES needs a value for each column")
        for value in (value for row in rows for value in row):
            if next(columns_in(value), None) is not None:
                raise Refused(value, f"{sql(value)!r}: VALUES must be constants")
        single = self.one_row().source
        if len(rows) == 1:
            return QueryRows(single, dict(zip(names, rows[0], strict=True)))
        number = self.chain.number()
        stored = self.chain.store(QueryRows(single, {"one": exp.Literal.number(1)}))
        bounds = [exp.Literal.number(0), exp.Literal.number(len(rows) - 1)]
        numbers = exp.cast(call_of("sequence", *bounds), "array<int>")
        source = ExplodedRows(stored.source, (), numbers, f"item_{number}", f"place_{number}")
        columns = zip(names, zip(*rows, strict=True), strict=True)
        return QueryRows(source, {n: _choose_value(source.item, each) for n, each in columns})

    @contextmanager
    def sharing(self, tree: Tree) -> Iterator[None]:
        """Plan the common table expressions of a query, whose names are valid only within it."""
        outside = dict(self.shared)
        with_ = tree.args.get("with_")
        for cte in with_.expressions if with_ else ():
            relation = self.query(cte.this)
            uses = [t for t in tree.find_all(exp.Table) if not t.db and t.name == cte.alias]
            stored = self.chain.store(relation) if len(uses) > 1 else relation
            self.shared[cte.alias] = rename_columns(stored, _column_list(cte))
        try:
            yield
        finally:
            self.shared = outside

    def source(self, tree: Tree) -> tuple[str, AnyRows]:
        """Return the alias of a table or subquery in FROM, and its rows."""
        if tree.args.get("sample"):
            raise Refused(tree, "TABLESAMPLE can't be maintained incrementally")
        if isinstance(tree, exp.Table) and not tree.db and tree.name not in self.shared:
            raise Refused(tree, f"{tree.name!r} of WITH is not known here; give it another name")
        if isinstance(tree, exp.Table) and not tree.db:
            return tree.alias_or_name, self.shared[tree.name]
        if isinstance(tree, exp.Table):
            return tree.alias_or_name, self.tables[f"{tree.db}.{tree.name}"]
        if isinstance(tree, exp.Values):
            return tree.alias, self.values(tree)
        if isinstance(tree, exp.Subquery):
            return tree.alias, rename_columns(self.query(tree), _column_list(tree))
        raise Refused(
            tree, f"{type(tree).__name__.upper()} in FROM can't be maintained incrementally yet"
        )


def _column_list(tree: Tree) -> list[str]:
    """Return the column names of an alias, as in `AS t (a, b)`."""
    alias = tree.args.get("alias") or exp.TableAlias()
    return [column.name for column in alias.args.get("columns") or ()]


def _choose_value(item: str, each: Sequence[Tree]) -> Tree:
    """Return the expression of a column of VALUES: the value of the row with that number."""
    branches = [
        exp.If(this=exp.Literal.number(i), true=value.copy()) for i, value in enumerate(each)
    ]
    return exp.Case(this=exp.column(item), ifs=branches)


TYPES = {
    "": "inner",
    "INNER": "inner",
    "CROSS": "inner",
    "LEFT": "left",
    "RIGHT": "right",
    "FULL": "full",
    "SEMI": "semi",
    "ANTI": "anti",
}


def join_sources(
    planner: Planner, select: exp.Select, conditions: list[Tree], after: list[Tree]
) -> tuple[JoinedSources, list[Tree]]:
    """Return the joined sources, and the conditions that were not applied: those with queries."""
    from_ = select.args.get("from_")  # without FROM, one row
    rows, aliases = _source(planner, from_.this) if from_ else (planner.one_row(), set())
    joined = JoinedSources(planner, rows, aliases, list(conditions), after)
    waiting = [_Join.of(planner, join) for join in select.args.get("joins") or ()]
    _check_commas(waiting)
    views = [
        _Join.of_array(view, view.args.get("outer")) for view in select.args.get("laterals", ())
    ]
    _join_all(joined, waiting, views)
    for view in views:
        view.explode(joined, [])
        joined.apply()
    queries = joined.left_over()
    joined.after = [*joined.after, *queries]
    return joined, queries


def _source(planner: Planner, tree: Tree) -> tuple[AnyRows, set[str]]:
    """Return the rows of a source or of joins in parentheses, by `alias.column`; its aliases."""
    inner = tree.this if isinstance(tree, exp.Subquery) and not tree.alias else tree
    if isinstance(inner, exp.Table) and inner.args.get("joins"):
        alone = inner.copy()
        alone.set("joins", None)
        joins = inner.args["joins"]
        select = exp.Select(from_=exp.From(this=alone), joins=[j.copy() for j in joins])
        after: list[Tree] = [c.copy() for c in columns_in(tree.root())]
        joined, rest = join_sources(planner, select, [], after)
        if rest:
            raise Refused(rest[0], "a subquery in ON is not supported; write it in WHERE")
        return joined.rows, joined.aliases
    alias, rows = planner.source(tree)
    return prefix_columns(rows, alias), {alias}


def _join_all(joined: JoinedSources, waiting: "list[_Join]", later: "list[_Join]") -> None:
    """Join the sources, each as soon as it can be."""
    while waiting:
        joined.nulls_follow = any(join.type in ("right", "full") for join in waiting)
        join = _next(joined, waiting)
        waiting.remove(join)
        joined.apply()
        rest = [c for other in (*waiting, *later) for c in (*other.on, *other.arrays)]
        if join.arrays:
            join.explode(joined, rest)
        elif join.type == "inner":
            on = joined.taken_by(join.aliases, join.on)
            joined.join(join.rows, join.aliases, "inner", on, rest)
        else:
            joined.join(join.rows, join.aliases, join.type, join.on, rest)
    joined.nulls_follow = False
    joined.apply()


def _check_commas(joins: "list[_Join]") -> None:
    """Refuse a comma before a RIGHT or FULL JOIN, which binds more tightly."""
    has_comma = False
    for join in joins:
        has_comma = has_comma or join.is_comma
        if has_comma and join.type in ("right", "full"):
            raise Refused(
                join.tree,
                "write JOIN in place of the comma or CROSS JOIN before a RIGHT or FULL JOIN",
            )


@dataclass(eq=False)
class _Join:
    """A source with the way in which it is joined; or an array to explode, of `arrays`."""

    aliases: set[str]
    rows: AnyRows
    type: str
    on: list[Tree]
    tree: Tree
    arrays: tuple[Tree, ...] = ()

    @property
    def is_comma(self) -> bool:
        """True for `FROM a, b`, which reads like a CROSS JOIN."""
        return isinstance(self.tree, exp.Join) and self.tree.kind.upper() == "CROSS"

    @classmethod
    def of(cls, planner: Planner, join: exp.Join) -> "_Join":
        if join.args.get("match_condition") or join.args.get("using"):
            raise Refused(join, "this join can't be maintained incrementally")
        kind, side = join.kind.upper(), join.side.upper()
        name = kind if kind in ("SEMI", "ANTI", "CROSS") else side or kind
        if name not in TYPES or (join.method and join.method.upper() != "NATURAL"):
            words = " ".join(word for word in (join.method.upper(), name, "JOIN") if word)
            raise Refused(join, f"{words} can't be maintained incrementally")
        on = conjuncts(join.args.get("on"))
        for column in (c for condition in on for c in columns_in(condition) if not line_of(c)):
            column.meta["line"] = line_of(join)  # USING, whose columns have no place of their own
        if isinstance(join.this, exp.Lateral):
            on = [condition for condition in on if not is_true(condition)]
            if on or name not in ("", "INNER", "CROSS", "LEFT"):
                raise Refused(join, "join a LATERAL array by CROSS JOIN, or LEFT JOIN … ON true")
            if isinstance(join.this.this, exp.Subquery):
                return cls.of_query(planner, join.this, name == "LEFT")
            return cls.of_array(join.this, name == "LEFT")
        rows, aliases = _source(planner, join.this)
        return cls(aliases, rows, TYPES[name], on, join)

    @classmethod
    def of_array(cls, view: exp.Lateral, outer: bool) -> "_Join":
        """Return the step that explodes the array of a LATERAL VIEW."""
        call = view.this
        if not isinstance(call, exp.Anonymous):
            raise Refused(view, "write this LATERAL query after a comma or JOIN")
        kind = "left" if outer else "inner"
        return cls({view.alias}, QueryRows(TableRows(""), {}), kind, [], view, (call,))

    @classmethod
    def of_query(cls, planner: Planner, view: exp.Lateral, outer: bool) -> "_Join":
        """Return the step that joins the rows that a LATERAL query has for each row."""
        select, kind = view.this.this, "left" if outer else "inner"
        if not isinstance(select, exp.Select):
            raise Refused(view, "a LATERAL query must be one SELECT")
        if select.args.get("from_") is None or correlated.is_total(select):
            return cls({view.alias}, QueryRows(TableRows(""), {}), kind, [], view, (view.this,))
        found = correlated.untie_query(select)
        rows = planner.query(found.select)
        return cls(
            {view.alias}, prefix_columns(rows, view.alias), kind, found.tie(view.alias), view
        )

    def explode(self, joined: JoinedSources, rest: list[Tree]) -> None:
        """Replace each row joined so far by a row for each element, or add columns."""
        if isinstance(self.arrays[0], exp.Subquery):
            _add_values(joined, self.arrays[0], *self.aliases)
            return
        names = [name.name for name in self.tree.args["alias"].args.get("columns") or ()]
        (alias,) = self.aliases
        joined.explode(self.arrays[0], alias, names, rest, outer=self.type == "left")


def _add_values(joined: JoinedSources, subquery: exp.Subquery, alias: str) -> None:
    """Add the columns of a query that has one row for each row."""
    if subquery.this.args.get("having"):
        raise Refused(
            subquery, "a LATERAL aggregate with HAVING is not supported: write WHERE outside"
        )
    found = {}
    joined.after += [item.copy() for item in subquery.this.expressions]
    for item in subquery.this.expressions:
        single = subquery.copy()
        single.this.set("expressions", [item.copy()])
        value = joined.planner.value(joined, single)
        found[f"{alias}.{item.alias_or_name}"] = value
    columns = {name: joined.rows.resolve(value) for name, value in found.items()}
    joined.rows = joined.rows.show({**joined.rows.columns, **columns})
    joined.aliases = joined.aliases | {alias}


def _next(joined: JoinedSources, waiting: list[_Join]) -> _Join:
    """Return the join to do next: the first, or an inner one that an equality links by now."""
    for join in waiting:
        if join.arrays or join.type != "inner":
            if join is waiting[0]:
                return join
            break
        if equalities(joined.usable(join.on), joined.aliases, join.aliases)[0]:
            return join
        if joined.is_free(join.rows):
            return join
    raise Refused(waiting[0].tree, no_equality(waiting[0].on))
