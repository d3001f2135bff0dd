"""A query planned into a chain of views, each resolved by its own kind.

Each SELECT becomes a relation: sources and joins, conditions, groups, windows, order. The query's
names are resolved before: every column has its table.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from pydantic import ValidationError
from sqlglot import exp

from sluice.declare.document import Where
from sluice.declare.mistakes import explain
from sluice.declare.registry import kind
from sluice.declare.resolution import TableMistakes
from sluice.declare.table import Table
from sluice.kinds.sql import NTH, Sql, spelling, subqueries
from sluice.kinds.sql.chain import Chain, Uniqueness, Written, of_table
from sluice.kinds.sql.clauses import (
    add_windows,
    group_rows,
    keep_distinct,
    rank_rows,
    set_of,
    with_windows_inlined,
)
from sluice.kinds.sql.joining import JoinedSources, Planner, join_sources
from sluice.kinds.sql.query import OF_ROWS, are_shown
from sluice.kinds.sql.relations import AnyRows, QueryRows, Ranked, TableRows, ViewFields
from sluice.kinds.sql.subqueries import defer_queries, with_later
from sluice.kinds.sql.trees import (
    CALLED_WITH,
    Refused,
    columns_in,
    conjuncts,
    find_aggregates,
    has_aggregates,
    line_of,
    sql,
)
from sluice.language import Mistaken
from sluice.language.expression import UNREADABLE
from sluice.language.inference import ColumnTypes
from sluice.language.names import UnknownName, check_name, unknown
from sluice.language.syntax import Tree
from sluice.language.type_rules import RefusedBySpark
from sluice.language.types import inner_types

Tables = Mapping[str, Table]

NEVER = {
    "pivots": "PIVOT",
    "sample": "TABLESAMPLE",
    "match": "MATCH_RECOGNIZE",
    "connect": "CONNECT BY",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "sort": "SORT BY",
    "into": "INTO",
    "locks": "FOR UPDATE",
}


@dataclass
class _Noted:
    """Report that keeps the mistakes of a chain's parts, in the query's words and by its lines.

    `tree`: the query; `written`: what it says in place of a part's expressions. `impossible`: the
    mistakes for which Spark can't compute the whole query either.
    """

    tree: exp.Query
    written: Mapping[str, Written] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    impossible: list[str] = field(default_factory=list)

    def add(self, _: Where, problem: str) -> None:
        message, line = problem, 0
        for text, (said, of) in sorted(self.written.items(), key=lambda item: -len(item[0])):
            known = re.compile(rf"(?<![\w.]){re.escape(text)}(?![\w.(])")
            if known.search(message):
                message, line = said.join(known.split(message)), line or of
        message = message.replace("OVER (w ", "OVER (… ")
        if line := line or self._line_of(message):
            message = f"line {line}: {message}"
        self.keep(message)
        if isinstance(problem, RefusedBySpark) and message not in self.impossible:
            self.impossible.append(message)

    def keep(self, message: str) -> None:
        if message not in self.problems:
            self.problems.append(message)

    def _line_of(self, message: str) -> int:
        """Return the line of the longest expression that the message shows; 0 for none."""
        plain = self.tree.copy()
        for column in plain.find_all(exp.Column):
            column.set("table", None)
        nodes = plain.find_all(exp.Func, exp.Binary, exp.Unary, exp.Case)
        shown = {text: line_of(node) for node in nodes if (text := sql(node)) in message}
        return shown[max(shown, key=len)] if shown else 0


SAME_NAME = "two columns have the same name: rename one of them by AS"


def resolve(spec: Sql, inputs: Mapping[Where, Table], mistakes: TableMistakes) -> Table | None:
    """Return the last table of the chain, under the view's name; `parts` are all of them.

    An unsupported query is a mistake or, if `incremental` is only preferred, a table computed
    whole. The table of a mistaken query has its names, so that views over it are checked as well.
    """
    tables: Tables = {table.id: table for table in inputs.values()}
    if not mistakes.is_certain:
        known = spec.query.with_named({i: table.columns for i, table in tables.items()})
        tables = {i: replace(table, columns=known[i]) for i, table in tables.items()}
    try:
        tree, names, problems = _qualify(spec, tables, is_certain=mistakes.is_certain)
    except ValueError as error:
        for problem in error.messages if isinstance(error, Mistaken) else (str(error),):
            mistakes.add(("sql",), UnknownName(problem))
        named = tuple(spec.query.tree.named_selects)
        return None if "*" in named else _whole(spec, named, tables)
    noted = _Noted(tree)
    chain = _chain(spec, tree.copy(), tables, noted) if are_shown(tree) else Chain(spec.name)
    if problems or spec.query.problems:
        for problem in (*problems, *_hindrances(spec, noted)):
            mistakes.add(("sql",), problem)
        return _whole(spec, names, tables)
    noted.written = chain.written
    parts = _parts(spec, chain, tables, noted)
    if noted.problems and spec.incremental == "preferred" and not noted.impossible:
        if spec.key:
            mistakes.add(
                ("key",), f"a query that is computed whole has no key: {noted.problems[0]}"
            )
        refusal = mistakes.with_place(("sql",), noted.problems[0])
        return _whole(spec.model_copy(update={"refusal": refusal}), names, tables)
    for problem in _hindrances(spec, noted):
        mistakes.add(("sql",), problem)
    table_id = f"{spec.pipeline}.{spec.name}"
    if table_id not in parts:
        return _whole(spec, names, tables)
    last = parts[table_id] = replace(parts[table_id], written_as=spec.KIND)
    shown = {n: last.columns[n] for n in names} if {*names} == {*last.columns} else last.columns
    declared = _key(spec, shown, chain.uniqueness[spec.name], mistakes)
    return replace(
        last,
        columns=shown,
        key=declared or last.key,
        inputs=tuple(tables),
        parts=tuple(parts.values()),
        is_key_ordered=bool(declared),
    )


def _qualify(
    spec: Sql, tables: Tables, *, is_certain: bool
) -> tuple[exp.Query, tuple[str, ...], tuple[str, ...]]:
    """Return the query with the tables of its columns, the names that it selects, its mistakes.

    Raises ValueError if it can't be read further, as one that may not be mistaken.
    """
    columns = {table_id: table.columns for table_id, table in tables.items()}
    tree, problems = spec.query.resolve_names(columns)
    spelling.pivot_to_groups(tree, columns)
    names = tuple(tree.named_selects)
    for name in names:
        check_name(name)
    if len({*names}) < len(names):
        raise Refused(tree, SAME_NAME)
    if not is_certain and (problems or UNREADABLE in names):
        raise Mistaken(problems)
    return tree, names, problems


def _hindrances(spec: Sql, noted: _Noted) -> list[str]:
    """Return the mistakes for which the view can't be kept in either way."""
    return noted.impossible if spec.incremental == "preferred" else noted.problems


def _key(
    spec: Sql, shown: ColumnTypes, uniqueness: Uniqueness, mistakes: TableMistakes
) -> tuple[str, ...]:
    """Return the declared key; note if the query does not prove it, or a reader can't name it."""
    key = spec.key or ()
    for name in key:
        if name not in shown:
            mistakes.add(("key",), unknown("column", name, shown))
        elif inner_types(shown[name]):
            mistakes.add(("key",), f"{name!r} is {shown[name]}: readers can't name such a key")
    if key and {*key} <= {*shown} and not uniqueness.are_unique_by(key):
        several = f"the query may give several rows for one ({', '.join(key)})"
        mistakes.add(("key",), f"{several}: {_instead(uniqueness)}")
    return key


def _instead(uniqueness: Uniqueness) -> str:
    """Return by what rows are unique, in words."""
    known = sorted(sorted(one) for one in uniqueness.unique)
    if not known:
        return (
            "no selected columns are known to be unique; select all keys of GROUP BY or of the "
            "input, or use DISTINCT"
        )
    each = " or ".join(f"({', '.join(one)})" for one in known)
    return f"its rows are known to be unique by {each}"


def _with_names(spec: Sql, table: Table) -> str:
    return table.id if table.pipeline != spec.pipeline else table.name


def _whole(spec: Sql, names: tuple[str, ...], tables: Tables) -> Table:
    """Return the table of a query that Spark computes; only Spark knows the types."""
    columns = dict.fromkeys(names, "")
    key = (*names, NTH)
    return Table(
        spec.name, spec.pipeline, spec.KIND, columns, key, spec, tuple(tables), {NTH: "INT"}
    )


def _parts(spec: Sql, chain: Chain, tables: Tables, noted: _Noted) -> dict[str, Table]:
    parts: dict[str, Table] = {}
    for name, fields in chain.views.items():
        own = {"description": spec.description, "expect": spec.expect}
        declared = {**fields, **own} if name == spec.name else fields
        part = _resolve_part(spec, name, declared, {**tables, **parts}, noted)
        if part is None:
            return {}
        parts[part.id] = part
    return parts


def _chain(spec: Sql, tree: exp.Query, tables: Tables, noted: _Noted) -> Chain:
    """Return the query's chain; unsupported parts are noted, and the chain then has no views."""
    rows = {
        table_id: QueryRows(TableRows(_with_names(spec, t)), {n: exp.column(n) for n in t.columns})
        for table_id, t in tables.items()
    }
    uniqueness = {_with_names(spec, t): of_table(t.columns, t.key) for t in tables.values()}
    chain = Chain(spec.name, uniqueness)
    planned = Queries(chain, rows).query(tree)
    for problem in chain.refused:
        noted.keep(problem)
    if chain.refused:
        return Chain(spec.name)
    try:
        chain.end(planned)
    except ValueError as error:
        noted.keep(str(error))
        return Chain(spec.name)
    return chain


def _resolve_part(
    spec: Sql, name: str, fields: ViewFields, tables: Tables, noted: _Noted
) -> Table | None:
    of = kind(fields["kind"])
    try:
        part: Any = of.model.model_validate({**fields, "name": name, "pipeline": spec.pipeline})
    except ValidationError as error:
        for problem in error.errors():
            noted.add((), explain(problem, of.model, fields)[1])
        return None
    ids = {
        r.where: r.name if "." in r.name else f"{spec.pipeline}.{r.name}" for r in part.references()
    }
    found = {where: tables[table_id] for where, table_id in ids.items()}
    return of.resolve(part, found, cast(TableMistakes, noted))


class Queries(Planner):
    """Plans queries into a chain."""

    def value(self, joined: JoinedSources, subquery: exp.Subquery) -> Tree:
        """Join a scalar subquery to rows; return the expression of its value."""
        return subqueries.scalar(joined, subquery, f"S{self.chain.number()}")

    def query(self, tree: Tree) -> AnyRows:
        """Return the relation of a SELECT, a set operation or a list of VALUES."""
        inner = tree.this if isinstance(tree, exp.Subquery) else tree
        try:
            with self.sharing(inner):
                return self._query(inner)
        except ValueError as error:
            return self.chain.refuse(error, inner)

    def _query(self, inner: Tree) -> AnyRows:
        if isinstance(inner, exp.Select):
            return self._finish(self._select(inner), inner)
        if isinstance(inner, exp.SetOperation):
            sides = [self.query(side) for side in (inner.left, inner.right)]
            return self._finish(set_of(self.chain, inner, sides), inner)
        if isinstance(inner, exp.Subquery):
            return self.query(inner)
        if isinstance(inner, exp.Values):
            return self.values(inner)
        raise Refused(
            inner, f"{type(inner).__name__.upper()} can't be maintained incrementally yet"
        )

    def _select(self, select: exp.Select) -> AnyRows:
        for name, what in NEVER.items():
            if select.args.get(name):
                raise Refused(select, f"{what} can't be maintained incrementally")
        with_windows_inlined(select)
        items = {item.alias_or_name: item.unalias() for item in select.expressions}
        if len(items) < len(select.expressions):
            raise Refused(select, SAME_NAME)
        order = select.args.get("order")
        keys = [key.copy() for key in order.expressions] if order and _is_limited(select) else []
        having = select.args.get("having")
        after = [*items.values(), *keys, *([having.this] if having else [])]
        group = select.args.get("group")
        after += [*(group.expressions if group else ())]
        after += [select.args["qualify"].this] if select.args.get("qualify") else []
        where = select.args.get("where")
        conditions = conjuncts(where.this if where else None)
        for node in find_aggregates((*conditions, *(group.expressions if group else ()))):
            raise Refused(node, f"{sql(node)} in WHERE or GROUP BY: write conditions in HAVING")
        conditions = subqueries.filter_before_joins(select, conditions)
        joined, queries = join_sources(self, select, conditions, after)
        for condition in queries:
            subqueries.keep(joined, condition)
        items = _explode(joined, items, after)
        return self._show(select, joined, items, keys)

    def _show(
        self, select: exp.Select, joined: JoinedSources, items: dict[str, Tree], keys: list[Tree]
    ) -> AnyRows:
        having = select.args.get("having")
        items, keys = _by_alias(items, keys)
        trees = {**items, **{f"order {i}": key.this for i, key in enumerate(keys)}}
        asked = {f"having {i}": c for i, c in enumerate(conjuncts(having.this if having else None))}
        qualify = select.args.get("qualify")
        best = {f"best {i}": c for i, c in enumerate(conjuncts(qualify.this if qualify else None))}
        trees = {**trees, **asked, **best}
        for node in find_aggregates(trees.values()):
            if not isinstance(node, CALLED_WITH) and has_aggregates(node.iter_expressions()):
                why = "an aggregate of an aggregate: write the inner one in a subquery"
                raise Refused(node, f"{sql(node)}, {why}")
        if select.args.get("group") or has_aggregates(trees.values()):
            relation = self._group(select, joined, trees)
        else:
            trees = subqueries.with_scalars(joined, trees)
            shown = {name: joined.rows.resolve(tree) for name, tree in trees.items()}
            relation = joined.rows.show(shown)
        relation = relation.filter(relation.columns[name] for name in asked)
        relation = add_windows(self.chain, _without(relation, asked))
        relation = rank_rows(relation.filter(relation.columns[name] for name in best))
        relation = _without(relation, best)
        if select.args.get("distinct"):
            relation = self._distinct(select, relation, keys)
        if _is_limited(select):
            return self._first(select, relation, [*items], keys)
        return relation

    def _group(self, select: exp.Select, joined: JoinedSources, trees: dict[str, Tree]) -> AnyRows:
        trees, later = defer_queries(trees)
        trees = subqueries.with_scalars(joined, trees)
        relation = group_rows(self.chain, select, joined.rows, trees)
        return with_later(self, relation, later)

    def _distinct(self, select: exp.Select, relation: AnyRows, keys: list[Tree]) -> AnyRows:
        if select.args["distinct"].args.get("on"):
            raise Refused(select, "DISTINCT ON is not Spark SQL")
        if keys:
            shown = {sql(t): n for n, t in relation.columns.items() if not n.startswith("order ")}
            order = {n: t for n, t in relation.columns.items() if n.startswith("order ")}
            if any(sql(tree) not in shown for tree in order.values()):
                raise Refused(
                    select, "ORDER BY of a SELECT DISTINCT sorts by columns that it shows"
                )
            once = keep_distinct(self.chain, _without(relation, order))
            return QueryRows(
                once.source,
                {**once.columns, **{n: exp.column(shown[sql(t)]) for n, t in order.items()}},
            )
        return keep_distinct(self.chain, relation)

    def _first(
        self, select: Tree, relation: AnyRows, shown: list[str], keys: list[Tree]
    ) -> AnyRows:
        if not keys:
            raise Refused(select, "LIMIT without ORDER BY takes arbitrary rows: add an ORDER BY")
        stored = self.chain.store(relation)
        order = []
        for i, key in enumerate(keys):
            ordered = key.copy()
            ordered.set("this", stored.columns[f"order {i}"].copy())
            order.append(ordered)
        limit, offset = (_read_number(select, which) for which in ("limit", "offset"))
        if limit is None:
            raise Refused(select, "OFFSET without LIMIT changes with every row; add a LIMIT")
        source = Ranked(stored.source, stored.where, (), tuple(order), limit, offset or 0)
        return QueryRows(source, {name: stored.columns[name] for name in shown})

    def _finish(self, relation: AnyRows, tree: Tree) -> AnyRows:
        """Return a set operation after its ORDER BY and LIMIT; a SELECT has done that itself."""
        if isinstance(tree, exp.Select) or not _is_limited(tree):
            return relation
        order = tree.args.get("order")
        keys = [key.copy() for key in order.expressions] if order else []
        sorted_by = {f"order {i}": relation.resolve(key.this) for i, key in enumerate(keys)}
        more = relation.show({**relation.columns, **sorted_by})
        return self._first(tree, more, [*relation.columns], keys)


def _explode(joined: JoinedSources, items: dict[str, Tree], after: list[Tree]) -> dict[str, Tree]:
    """Return selected expressions with a column instead of an exploded array."""
    calls = {
        name: tree
        for name, tree in items.items()
        if isinstance(tree, exp.Anonymous) and tree.name.lower() in OF_ROWS
    }
    if not calls:
        return items
    if len(calls) > 1:
        raise Refused([*calls.values()][1], "two arrays are exploded: write LATERAL VIEW for each")
    ((name, call),) = calls.items()
    alias = f"E{joined.planner.chain.number()}"
    joined.explode(call, alias, [name], after, outer=False)
    return {**items, name: exp.column(name, alias)}


def _by_alias(items: dict[str, Tree], keys: list[Tree]) -> tuple[dict[str, Tree], list[Tree]]:
    """Return ORDER BY with the names of selected columns replaced by their expressions."""
    for key in keys:
        for column in [c for c in columns_in(key) if not c.table]:
            if column.name in items:
                column.replace(items[column.name].copy())
    return items, keys


def _without(relation: AnyRows, names: Iterable[str]) -> AnyRows:
    return relation.show({n: t for n, t in relation.columns.items() if n not in names})


def _is_limited(tree: Tree) -> bool:
    return bool(tree.args.get("limit") or tree.args.get("offset"))


def _read_number(tree: Tree, which: str) -> int | None:
    found = tree.args.get(which)
    if found is None:
        return None
    value = found.expression
    if not isinstance(value, exp.Literal) or not value.name.isdigit():
        raise Refused(found, f"{which.upper()} wants a number")
    return int(value.name)
