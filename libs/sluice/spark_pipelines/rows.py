"""Rows of a plan while it becomes a query: columns over a FROM, conditions and an order.

Two inputs become one by joins of all types, and by set operations by position or by name.

Columns keep the name that Spark gives them, the aliases and the plans that may name them, so that
`df["id"]` and `col("a.id")` find their side of a join.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Protocol

from pyspark.sql.connect import proto
from sqlglot import exp

from sluice.language.names import unknown
from sluice.language.syntax import Tree, Verbatim
from sluice.spark_pipelines.expressions import Expressions, NotTranslated, call
from sluice.spark_pipelines.texts import column_name

TWICE = "the name of column {!r} is that of another one, in a table"
REPLACED = "column {0!r} of a DataFrame is not here any more: name it by col({0!r}), or by alias"
UNNAMED = frozenset({"explode", "explode_outer", "posexplode", "posexplode_outer", "inline"})


@dataclass(frozen=True)
class Column:
    """A column: Spark's name of it, its expression over the rows' FROM, and what may name it.

    `is_given`: the author chose the name, so a table must have it as it is.
    """

    name: str
    tree: Tree
    plans: frozenset[int] = frozenset()
    aliases: frozenset[str] = frozenset()
    is_given: bool = False


@dataclass(frozen=True)
class Rows:
    """Rows of a SELECT: `source` has its FROM and joins.

    `hidden`: the columns before each select, the last one's first, by which Spark may still filter
    and sort. `keys`: what a join by names shows as another column; an alias or a plan names them.
    """

    columns: tuple[Column, ...]
    source: exp.Select
    where: tuple[Tree, ...] = ()
    order: tuple[exp.Ordered, ...] = ()
    hidden: tuple[tuple[Column, ...], ...] = ()
    keys: tuple[Column, ...] = ()

    @property
    def names(self) -> list[str]:
        """Names of the columns in a query, each once."""
        found: list[str] = []
        for column in self.columns:
            name = first = column_name(column.name)
            numbers = count(1)
            while name in found:
                name = f"{first}_{next(numbers)}"
            found.append(name)
        return found

    @property
    def query(self) -> exp.Select:
        """The SELECT of the rows, without their order."""
        query = self.source.copy()
        shown = [
            tree if isinstance(tree, exp.Column) and tree.name == name else exp.alias_(tree, name)
            for name, tree in zip(self.names, (c.tree.copy() for c in self.columns), strict=True)
        ]
        query.set("expressions", shown)
        for condition in self.where:
            query = query.where(condition.copy(), copy=False)
        return query

    def stored(self) -> exp.Select:
        """Return the SELECT of a table's rows. Raises NotTranslated if two columns share a name."""
        seen = Counter(column_name(column.name) for column in self.columns)
        for column in self.columns:
            if column.is_given and seen[column_name(column.name)] > 1:
                raise NotTranslated(TWICE.format(column.name))
        return self.query

    def own_name(self, name: str) -> str:
        """Return a name as the columns have it, in lower case; a table's are `column_name`s."""
        lower = name.lower()
        return lower if any(c.name.lower() == lower for c in self.columns) else column_name(name)

    @property
    def is_plain(self) -> bool:
        """True if they only show columns of their FROM."""
        trees = (column.tree for column in self.columns)
        return not self.where and all(isinstance(tree, exp.Column) for tree in trees)

    @property
    def has_windows(self) -> bool:
        return any(
            tree.find(exp.Window)
            or any(call.name.lower() in UNNAMED for call in tree.find_all(exp.Anonymous))
            for tree in (column.tree for column in self.columns)
        )

    def show(self, columns: Iterable[Column]) -> "Rows":
        """Return the rows with other columns; these are hidden."""
        hidden = () if self.has_windows else (self.columns, *self.hidden)
        return replace(self, columns=tuple(columns), hidden=hidden)

    def column(
        self, parts: Sequence[str], plan: int | None, *, also_hidden: bool = False
    ) -> tuple[Column, Sequence[str]]:
        """Return the column of that name and plan, and the names of the field in it.

        Raises NotTranslated if there isn't exactly one.
        """
        lower = [part.lower() for part in parts]
        for columns in (self.columns, *(self.hidden if also_hidden else ())):
            for size in (len(lower), *range(1, len(lower))):
                of, name = ".".join(lower[: size - 1]), lower[size - 1]
                known = (*columns, *self.keys) if of or plan is not None else columns
                found = [c for c in known if column_name(c.name) == column_name(name)]
                found = [c for c in found if not of or of in c.aliases]
                found = [c for c in found if plan is None or plan in c.plans]
                found = [c for c in found if c.name.lower() == name] or found
                if len({c.tree.sql() for c in found}) == 1:
                    return found[0], parts[size:]
                if found:
                    raise NotTranslated(
                        f"column {'.'.join(parts)!r} is ambiguous: alias the DataFrames"
                    )
        names = [c.name for c in self.columns]
        if plan is not None and column_name(parts[0]) in map(column_name, names):
            raise NotTranslated(REPLACED.format(".".join(parts)))
        raise NotTranslated(unknown("column", ".".join(parts), names))

    def find(self, parts: Sequence[str], plan: int | None, *, also_hidden: bool = False) -> Tree:
        """Return the expression of that column or field. Raises NotTranslated as `column`."""
        column, fields = self.column(parts, plan, also_hidden=also_hidden)
        tree = column.tree.copy()
        for part in fields:
            tree = exp.Dot(this=tree, expression=exp.to_identifier(part))
        return tree

    def find_also_hidden(self, parts: Sequence[str], plan: int | None) -> Tree:
        """Return that of the column, or of the hidden one. Raises NotTranslated."""
        return self.find(parts, plan, also_hidden=True)


_JOINS = {
    "inner": "inner",
    "cross": "inner",
    "left_outer": "left",
    "right_outer": "right",
    "full_outer": "full",
    "left_semi": "left semi",
    "left_anti": "left anti",
}


class Reader(Protocol):
    """Reader of the plans of the inputs: `Plans`."""

    def rows(self, relation: Any) -> Rows: ...

    def types(self, rows: Rows) -> Sequence[str]: ...

    def nest(self, rows: Rows) -> Rows: ...

    def from_query(self, query: exp.Query, columns: Iterable[Column], names: list[str]) -> Rows: ...


def join(plans: Reader, plan: Any) -> Rows:
    """Return the rows of a join. Raises NotTranslated."""
    kinds = proto.Join.JoinType
    type_ = kinds.Name(plan.join_type).removeprefix("JOIN_TYPE_").lower()
    left, right = _side(plans, plan.left, joined=True), _side(plans, plan.right)
    left, right = _without(left, plan.left, plan.right), _without(right, plan.right, plan.left)
    keys = (*left.keys, *right.keys)
    both = Rows((*left.columns, *right.columns), left.source, keys=keys)
    shown: tuple[Column, ...] = both.columns
    on = None
    if plan.HasField("join_condition"):
        on = Expressions(both.find).tree(plan.join_condition)
    for name in plan.using_columns:
        one, other = left.find([name], None), right.find([name], None)
        same = exp.EQ(this=one, expression=other)
        on = same if on is None else exp.And(this=on, expression=same)
    if type_ not in _JOINS or (on is None and type_ not in ("inner", "cross")):
        raise NotTranslated(f"a {type_} join without a condition")
    if plan.using_columns:
        shown, hidden = _using(left, right, [*plan.using_columns], type_)
        keys = (*hidden, *keys)
    if type_ in ("left_semi", "left_anti"):
        shown, keys = tuple(c for c in shown if c in left.columns), left.keys
    table = right.source.args["from_"].this.copy()
    how = "cross" if on is None else _JOINS[type_]
    source = left.source.copy().join(table, on=on, join_type=how, copy=False)
    return Rows(shown, source, keys=keys)


def _without(rows: Rows, own: Any, other: Any) -> Rows:
    """Return a side of a join without the plan that the other side itself is: it's named there."""
    plan = frozenset([other.common.plan_id]) - {own.common.plan_id}
    sides = ((replace(c, plans=c.plans - plan) for c in of) for of in (rows.columns, rows.keys))
    columns, keys = map(tuple, sides)
    return replace(rows, columns=columns, keys=keys)


def _side(plans: Reader, relation: Any, *, joined: bool = False) -> Rows:
    """Return rows as a side of a join: one table, or more if `joined`."""
    rows = plans.rows(relation)
    is_one = not rows.source.args.get("joins")
    return rows if rows.is_plain and (is_one or joined) else plans.nest(rows)


def combine_sets(plans: Reader, plan: Any) -> Rows:
    """Return the rows of a union, an intersection or a difference. Raises NotTranslated."""
    left, right = plans.rows(plan.left_input), plans.rows(plan.right_input)
    if plan.by_name:
        left, right = _align(plans, left, right, missing=plan.allow_missing_columns)
    if len(left.columns) != len(right.columns):
        raise NotTranslated("a union of DataFrames with different numbers of columns")
    name = proto.SetOperation.SetOpType.Name(plan.set_op_type).rpartition("_")[2]
    made = {"UNION": exp.Union, "INTERSECT": exp.Intersect, "EXCEPT": exp.Except}[name]
    query = made(this=left.query, expression=right.query, distinct=not plan.is_all)
    is_new = made is exp.Union  # Spark takes its columns for other ones than the left's
    columns = (
        Column(c.name, c.tree, frozenset() if is_new else c.plans, c.aliases) for c in left.columns
    )
    return plans.from_query(query, columns, left.names)


def _align(plans: Reader, left: Rows, right: Rows, *, missing: bool) -> tuple[Rows, Rows]:
    """Return both with the columns of either, in the order of the left's."""
    ours, theirs = _by_name(left), _by_name(right)
    names = dict.fromkeys((*ours, *theirs))
    if ours.keys() != theirs.keys():
        if not missing:
            raise NotTranslated("unionByName of DataFrames with different columns")
        ours, theirs = {**_nulls(plans, right), **ours}, {**_nulls(plans, left), **theirs}
    one, other = (tuple(side[name] for name in names) for side in (ours, theirs))
    return replace(left, columns=one), replace(right, columns=other)


def _nulls(plans: Reader, rows: Rows) -> dict[str, Column]:
    """Return a null of the type of each column, by its name."""
    types = plans.types(rows)
    nulls = (exp.cast(exp.null(), t, dialect=Verbatim) if t else exp.null() for t in types)
    pairs = zip(_by_name(rows).items(), nulls, strict=True)
    return {name: replace(column, tree=null) for (name, column), null in pairs}


def _using(
    left: Rows, right: Rows, names: list[str], type_: str
) -> tuple[tuple[Column, ...], list[Column]]:
    """Return the columns of a join by names, each of them once, and the keys that it hides."""
    shown, hidden = list[Column](), list[Column]()
    for name in names:
        one, other = left.column([name], None)[0], right.column([name], None)[0]
        match type_:
            case "full_outer":
                shown.append(Column(one.name, call("coalesce", one.tree, other.tree)))
                hidden += [one, other]
            case "right_outer":
                shown.append(other)
                hidden.append(one)
            case _:
                shown.append(one)
                hidden.append(other)
    for side in (left, right):
        keys = {*map(side.own_name, names)}
        shown += (c for c in side.columns if c.name.lower() not in keys)
    return tuple(shown), hidden


def _by_name(rows: Rows) -> dict[str, Column]:
    """Return columns by their names in a table; two that would share one, by their own names."""
    names = [column_name(c.name) for c in rows.columns]
    pairs = zip(names, rows.columns, strict=True)
    found = {n if names.count(n) == 1 else c.name.lower(): c for n, c in pairs}
    if len(found) < len(names):
        raise NotTranslated("unionByName of a DataFrame with two columns of one name")
    return found
