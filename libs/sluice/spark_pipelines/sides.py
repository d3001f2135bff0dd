"""Plans over two inputs: joins of all types, and set operations by position or by name."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from pyspark.sql.connect import proto
from sqlglot import exp

from sluice.language.syntax import Verbatim
from sluice.spark_pipelines.expressions import Expressions, NotTranslated, call
from sluice.spark_pipelines.rows import Column, Rows
from sluice.spark_pipelines.texts import column_name

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
