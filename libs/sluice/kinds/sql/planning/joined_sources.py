"""Sources of a SELECT that are joined so far.

Conditions are applied as soon as the tables that they name are joined.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from sluice.kinds.sql.clauses.windows import as_ranked
from sluice.kinds.sql.planning.planner import Planner
from sluice.kinds.sql.reading.trees import (
    Refused,
    columns_in,
    has_query,
    is_column,
    key_of,
    of_side,
    tables_of,
)
from sluice.kinds.sql.relations.chain import Chain
from sluice.kinds.sql.relations.sources import (
    AnyRows,
    ExplodedRows,
    Joined,
    QueryRows,
    StoredRows,
    TableRows,
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

    planner: Planner
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
        self.rows = as_ranked(self.rows.kept(self.rows.resolved(c) for c in ready))

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
        """Return, once, the conditions that were not applied."""
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
        wanted = self._wanted([*on, *rest])
        left = self._side(self.rows, wanted, type_, "l")
        right = self._side(other, wanted, type_, "r")
        columns = {**_of(left, "l"), **_of(right, "r")}
        both = [(of_side(left.resolved(a), "l"), of_side(right.resolved(b), "r")) for a, b in pairs]
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
            *(everything.resolved(c) for c in others),
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
        return self.planner.chain.stored(self.rows, self._wanted([]))

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
        stored = self.planner.chain.stored(self.rows, self._wanted([call, *rest]))
        number = self.planner.chain.number()
        item, place = exp.column(f"item_{number}"), exp.column(f"place_{number}")
        of = stored.resolved(call.expressions[0])
        found: list[Tree] = [item]
        names = list(names) or ["col"]
        if len(names) > (2 if plain == "posexplode" else 1):
            of = exp.Anonymous(this="map_entries", expressions=[of])
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
            stored = self.planner.chain.stored(self.rows, self._wanted(on))
            here = ExplodedRows(stored.source, stored.where, source.of, source.item, source.place)
            self.rows = QueryRows(here, stored.columns)
        columns = {**self.rows.columns, **constants.columns}
        self.rows = QueryRows(self.rows.source, columns, (*self.rows.where, *constants.where))
        self.aliases = self.aliases | aliases
        self.rows = as_ranked(self.rows.kept(self.rows.resolved(c) for c in on))

    def _wanted(self, trees: Sequence[Tree]) -> set[str]:
        """Return the columns that are still to be evaluated, with those of `trees`."""
        every = [*trees, *self.carried, *self.pending, *self.after]
        return {key_of(c) for tree in every for c in columns_in(tree)}

    def _side(self, rows: AnyRows, wanted: set[str], type_: str, side: str) -> StoredRows:
        chain = self.planner.chain
        stored = chain.stored(rows, wanted)
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


def prefixed(rows: AnyRows, alias: str) -> AnyRows:
    """Return the rows with their columns as `alias.column`."""
    return QueryRows(rows.source, {f"{alias}.{n}": t for n, t in rows.columns.items()}, rows.where)


def _of(rows: AnyRows, side: str) -> dict[str, Tree]:
    return {name: of_side(tree, side) for name, tree in rows.columns.items()}
