"""Plans of DataFrames as queries.

A plan's relation becomes rows: columns over a FROM, conditions and an order, which the next
relation adds to as far as one SELECT can say it; else they become a subquery.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import count, repeat
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql.connect import proto
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import NumericType, StructType
from sqlglot import exp

from sluice.interpreter.expressions import split_name
from sluice.interpreter.expressions.from_protocol import schema_of, type_of
from sluice.language.syntax import AGGREGATES, Tree, Verbatim, parse_as, render
from sluice.spark_pipelines.expressions import (
    Expressions,
    NotTranslated,
    call,
    constant,
    is_aggregated,
    literal,
    name_of,
)
from sluice.spark_pipelines.rows import Column, Rows, combine_sets, join

MOST_ROWS = 1_000  # that a plan has itself


@dataclass
class Plans:
    """Reader of plans. Tables, files and texts of queries are read by `Tables`."""

    tables: "Tables"
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    shown: dict[int, list[str]] = field(default_factory=dict)  # the columns of each plan

    def rows(self, relation: Any) -> Rows:
        """Return a relation's rows. Raises NotTranslated for what no query says."""
        kind = relation.WhichOneof("rel_type")
        reader = _READERS.get(kind)
        if reader is None:
            raise NotTranslated(f"{kind} of a DataFrame")
        found = reader(self, getattr(relation, kind))
        if not relation.HasField("common"):
            return found
        self.shown[relation.common.plan_id] = [column.name for column in found.columns]
        plan = frozenset([relation.common.plan_id])
        columns = (replace(column, plans=column.plans | plan) for column in found.columns)
        return replace(found, columns=tuple(columns))

    def from_table(self, name: str, columns: Iterable[str], aliases: Iterable[str]) -> Rows:
        """Return the rows of a table."""
        alias = f"{name.rpartition('.')[2]}_{next(self.numbers)}"
        source = exp.Select().from_(exp.alias_(exp.to_table(name), alias, table=True))
        known = frozenset(aliases)
        made = (Column(c, exp.column(c, alias), aliases=known) for c in columns)
        return Rows(tuple(made), source)

    def from_query(self, query: exp.Query, columns: Iterable[Column], names: list[str]) -> Rows:
        """Return the rows of a query as a subquery. `names`: those of its columns."""
        alias = f"q_{next(self.numbers)}"
        source = exp.Select().from_(query.subquery(alias, copy=False))
        pairs = zip(columns, names, strict=True)
        return Rows(tuple(replace(c, tree=exp.column(n, alias)) for c, n in pairs), source)

    def nest(self, rows: Rows) -> Rows:
        """Return rows as those of a subquery."""
        return self.from_query(rows.query, rows.columns, rows.names)

    def types(self, rows: Rows) -> Sequence[str]:
        """Return the types of the columns; those of a query that is computed whole are ''."""
        return self.tables.types(render(rows.query))

    def _input(self, plan: Any) -> Rows:
        rows = self.rows(plan.input)
        return self.nest(rows) if rows.has_windows else rows

    def read_table(self, plan: Any) -> Rows:
        if plan.WhichOneof("read_type") == "named_table":
            name = split_name(plan.named_table.unparsed_identifier)
            return self.tables.named(self, name, plan)
        return self.tables.at_place(self, plan)

    def project(self, plan: Any) -> Rows:
        rows = self._input(plan)
        source, columns = rows.source.copy(), list[Column]()
        for expression in plan.expressions:
            if names := _several_names(expression):
                columns += self._spread(source, Expressions(rows.find).tree(expression), names)
            else:
                columns += self._shown(rows, expression)
        if any(is_aggregated(column.tree) for column in columns):
            return self._grouped(rows, [], columns)
        found = replace(rows.show(columns), source=source)
        return self.nest(found) if source.args.get("laterals") else found

    def _spread(self, source: exp.Select, tree: Tree, names: Sequence[str]) -> list[Column]:
        """Add a function that gives several columns to a FROM; return its columns."""
        name, shown = f"l_{next(self.numbers)}", [*map(exp.to_identifier, names)]
        is_outer = tree.name.lower().endswith("_outer")
        tree.set("this", tree.name.lower().removesuffix("_outer"))
        alias = exp.TableAlias(this=exp.to_identifier(name), columns=shown)
        lateral = exp.Lateral(this=tree, view=True, outer=is_outer, alias=alias)
        source.append("laterals", lateral)
        return [Column(one, exp.column(one, name)) for one in names]

    def _shown(self, rows: Rows, expression: Any) -> Iterator[Column]:
        """Yield the columns that an expression of a select shows."""
        kind = expression.WhichOneof("expr_type")
        if kind == "unresolved_star":
            star = expression.unresolved_star
            of = star.unparsed_target.removesuffix(".*").lower()
            if star.HasField("plan_id"):
                names = self.shown.get(star.plan_id, ["*"])
                yield from (rows.column([name], star.plan_id)[0] for name in names)
                return
            ours = [c for c in (*rows.keys, *rows.columns) if of in c.aliases]
            yield from self._fields(rows, of) if of and not ours else (ours or rows.columns)
            return
        if kind == "expression_string" and expression.expression_string.expression.strip() == "*":
            yield from rows.columns
            return
        if known := _column_named(rows, expression):
            yield known
            return
        tree = Expressions(rows.find).tree(expression)
        tree = tree.this if isinstance(tree, exp.Alias) else tree
        yield Column(name_of(expression), tree, is_given=kind == "alias")

    def _fields(self, rows: Rows, of: str) -> Iterator[Column]:
        """Yield the fields of a column that is a struct."""
        tree, types = rows.find(split_name(of), None), self.types(rows)
        known = zip((c.tree for c in rows.columns), types, strict=True)
        names = _field_names(tree, next((type_ for one, type_ in known if one == tree), ""))
        if not names:
            raise NotTranslated(f"{of}.*: name the fields")
        for name in names:
            yield Column(name, exp.Dot(this=tree.copy(), expression=exp.to_identifier(name)))

    def filter_rows(self, plan: Any) -> Rows:
        rows = self._input(plan)
        condition = Expressions(rows.find_also_hidden).tree(plan.condition)
        return replace(rows, where=(*rows.where, condition))

    def _grouped(self, rows: Rows, keys: Sequence[Column], columns: Sequence[Column]) -> Rows:
        """Return groups; the columns are aggregates."""
        found = replace(rows, columns=(*keys, *columns), order=())
        query = found.query
        for key in keys:
            query = query.group_by(key.tree.copy(), copy=False)
        return self.from_query(query, found.columns, found.names)

    def aggregate(self, plan: Any) -> Rows:
        rows = self._input(plan)
        keys = [
            # A number in GROUP BY would be that of a column.
            replace(c, tree=exp.cast(c.tree, "int", dialect=Verbatim)) if c.tree.is_int else c
            for e in plan.grouping_expressions
            for c in self._shown(rows, e)
        ]
        columns = [c for e in plan.aggregate_expressions for c in self._shown(rows, e)]
        group = proto.Aggregate
        made: type[exp.Expression]
        match plan.group_type:
            case group.GROUP_TYPE_GROUPBY:
                return self._grouped(rows, keys, columns)
            case group.GROUP_TYPE_PIVOT:
                return self._grouped(rows, keys, [*self._pivoted(rows, plan.pivot, columns)])
            case group.GROUP_TYPE_ROLLUP:
                arg, made, trees = "rollup", exp.Rollup, [key.tree.copy() for key in keys]
            case group.GROUP_TYPE_CUBE:
                arg, made, trees = "cube", exp.Cube, [key.tree.copy() for key in keys]
            case _:
                find = Expressions(rows.find).tree
                sets = [[*map(find, one.grouping_set)] for one in plan.grouping_sets]
                used = {tree.sql() for one in sets for tree in one}
                if not {key.tree.sql() for key in keys} <= used:
                    raise NotTranslated("groupingSets with a column that no set has")
                trees = [exp.Tuple(expressions=one) for one in sets]
                arg, made = "grouping_sets", exp.GroupingSets
        found = replace(rows, columns=(*keys, *columns), order=())
        query = found.query
        query.set("group", exp.Group(**{arg: [made(expressions=trees)]}))
        return self.from_query(query, found.columns, found.names)

    def _pivoted(self, rows: Rows, pivot: Any, columns: Sequence[Column]) -> Iterator[Column]:
        """Yield each aggregate of the rows with each value.

        Where a group has no such row, it's null if all are numbers or boolean, as in Spark; else
        what it is over no rows.
        """
        if not pivot.values:
            raise NotTranslated("pivot without its values: give them, pivot(column, [values])")
        types = self.types(self._grouped(rows, (), columns))
        calls = [c.tree.name.lower() for c in columns]
        has_array = not _ARRAYS.isdisjoint(calls)
        if not (all(types) or has_array or {*calls} <= AGGREGATES - _COUNTS):
            raise NotTranslated("pivot of a count or expression, in a query that is computed whole")
        is_null = not has_array and not any(map(_is_apart, types))
        of = Expressions(rows.find).tree(pivot.col)
        for value in map(literal, pivot.values):
            test = exp.Where(this=exp.NullSafeEQ(this=of.copy(), expression=value))
            has_rows = exp.Filter(this=call("count", exp.Star()), expression=test)
            shown = value.this if isinstance(value, exp.Cast) else value
            for column in columns:
                name = shown.name if len(columns) == 1 else f"{shown.name}_{column.name}"
                one = _filtered(column.tree, test)
                when = exp.If(this=exp.GT(this=has_rows.copy(), expression=_ZERO.copy()), true=one)
                yield Column(name, exp.Case(ifs=[when]) if is_null else one)

    def sort(self, plan: Any) -> Rows:
        rows = self._input(plan)
        expressions = Expressions(rows.find_also_hidden)
        order = tuple(expressions.sort_order(one) for one in plan.order)
        return replace(rows, order=order if plan.is_global else ())

    def limit(self, plan: Any) -> Rows:
        rows = self.rows(plan.input)
        query = rows.query
        if rows.order:
            query.set("order", exp.Order(expressions=[one.copy() for one in rows.order]))
        query = query.limit(plan.limit, copy=False)
        return self.from_query(query, rows.columns, rows.names)

    def deduplicate(self, plan: Any) -> Rows:
        rows = self._input(plan)
        if plan.all_columns_as_keys or not plan.column_names:
            query = rows.query.distinct(copy=False)
            return self.from_query(query, rows.columns, rows.names)
        keys = [rows.find([name], None) for name in plan.column_names]
        others = [exp.Ordered(this=c.tree.copy(), nulls_first=True) for c in rows.columns]
        order = exp.Order(expressions=others)
        number = exp.Window(this=call("row_number"), partition_by=keys, order=order)
        nested = self.nest(replace(rows, columns=(*rows.columns, Column("rn__", number))))
        first = exp.EQ(this=nested.columns[-1].tree, expression=exp.Literal.number(1))
        return replace(nested, columns=nested.columns[:-1], where=(first,))

    def add_columns(self, plan: Any) -> Rows:
        rows = self._input(plan)
        made = {
            rows.own_name(alias.name[0]): Column(
                alias.name[0], Expressions(rows.find).tree(alias.expr), is_given=True
            )
            for alias in plan.aliases
        }
        columns = [made.get(c.name.lower(), c) for c in rows.columns]
        known = {c.name.lower() for c in rows.columns}
        return rows.show((*columns, *(c for name, c in made.items() if name not in known)))

    def drop(self, plan: Any) -> Rows:
        rows = self._input(plan)
        names = {*map(rows.own_name, plan.column_names)}
        dropped = list[Column | None]()
        for expression in plan.columns:
            with suppress(NotTranslated):  # Spark ignores a column that is not there
                dropped.append(_column_named(rows, expression))
        return rows.show(
            c for c in rows.columns if c.name.lower() not in names and c not in dropped
        )

    def rename(self, plan: Any) -> Rows:
        rows = self.rows(plan.input)
        renames = [(r.col_name, r.new_col_name) for r in plan.renames]
        every = (*renames, *plan.rename_columns_map.items())
        found = rows
        for old, new in every:  # one after another
            name = found.own_name(old)
            columns = (
                Column(new, c.tree, is_given=True) if c.name.lower() == name else c
                for c in found.columns
            )
            found = replace(found, columns=tuple(columns))
        return rows.show(found.columns)

    def rename_all(self, plan: Any) -> Rows:
        rows = self.rows(plan.input)
        if len(plan.column_names) != len(rows.columns):
            raise NotTranslated(f"toDF with {len(plan.column_names)} names")
        pairs = zip(plan.column_names, rows.columns, strict=True)
        columns = (Column(name, column.tree, is_given=True) for name, column in pairs)
        return rows.show(columns)

    def alias_rows(self, plan: Any) -> Rows:
        rows = self.rows(plan.input)
        alias = frozenset([plan.alias.lower()])
        columns = tuple(replace(c, aliases=alias) for c in rows.columns)
        return replace(rows, columns=columns, hidden=(), keys=())

    def drop_nulls(self, plan: Any) -> Rows:
        """Return the rows with so many values, by default all, that are neither null nor NaN."""
        rows = self._input(plan)
        trees = [rows.find([n], None) for n in plan.cols] or [c.tree for c in rows.columns]
        known = zip(rows.columns, self.types(rows), strict=True)
        types = {column.tree.sql(): type_ for column, type_ in known}
        tests = [_is_value(tree, types[tree.sql()]) for tree in trees]
        least = plan.min_non_nulls if plan.HasField("min_non_nulls") else len(tests)
        if least == len(tests):
            return replace(rows, where=(*rows.where, *tests))
        ifs = [exp.If(this=test, true=exp.Literal.number(1)) for test in tests]
        ones: list[Tree] = [exp.Case(ifs=[one], default=_ZERO.copy()) for one in ifs]
        number = reduce(lambda left, right: exp.Add(this=left, expression=right), ones)
        has_enough = exp.GTE(this=number, expression=exp.Literal.number(least))
        return replace(rows, where=(*rows.where, has_enough))

    def fill_nulls(self, plan: Any) -> Rows:
        """Return the rows with values instead of null and NaN, in the columns of their types.

        Several values belong to a column each, whose type they take.
        """
        rows = self._input(plan)
        types = self.types(rows)
        every = [c.name.lower() for c in rows.columns]
        names = [*map(rows.own_name, plan.cols)] or every
        has_one = len(plan.values) == 1
        values = dict(zip(names, repeat(plan.values[0]) if has_one else plan.values, strict=False))
        columns = []
        for name, column, type_ in zip(every, rows.columns, types, strict=True):
            value = values.get(name)
            if value is None or (has_one and not _is_of(value, type_)):
                columns.append(column)
                continue
            is_value = exp.If(this=_is_value(column.tree, type_), true=column.tree.copy())
            filled = exp.cast(literal(value), type_, dialect=Verbatim)
            tree = exp.Case(ifs=[is_value], default=filled)
            columns.append(Column(column.name, tree, is_given=column.is_given))
        return rows.show(columns)

    def read_text_over(self, plan: Any) -> Rows:
        if plan.root.WhichOneof("rel_type") != "sql":
            raise NotTranslated("a DataFrame inside an expression")
        views = {r.subquery_alias.alias: self.rows(r.subquery_alias.input) for r in plan.references}
        return self.tables.text(self, text_of(plan.root.sql), views)

    def read_local(self, plan: Any) -> Rows:
        """Return rows that the plan itself has, as VALUES."""
        if not plan.HasField("data"):
            raise NotTranslated("a DataFrame without rows")
        table = pa.ipc.open_stream(plan.data).read_all()
        found = table.to_pylist()
        if not 0 < len(found) <= MOST_ROWS:
            raise NotTranslated(f"a DataFrame of {len(found)} rows of its own: 1 to {MOST_ROWS}")
        schema = schema_of(plan.schema) if plan.schema else from_arrow_schema(table.schema)
        name, columns = f"v_{next(self.numbers)}", [f"c{n}" for n in range(len(schema))]
        rows = [exp.Tuple(expressions=[*map(constant, row.values())]) for row in found]
        shown = [*map(exp.to_identifier, columns)]
        alias = exp.TableAlias(this=exp.to_identifier(name), columns=shown)
        types = [field.dataType.simpleString() for field in schema]
        made = (
            Column(field.name, exp.cast(exp.column(c, name), type_, dialect=Verbatim))
            for field, c, type_ in zip(schema, columns, types, strict=True)
        )
        return Rows(tuple(made), exp.Select().from_(exp.Values(expressions=rows, alias=alias)))

    def read_range(self, plan: Any) -> Rows:
        name = f"r_{next(self.numbers)}"
        numbers = [exp.Literal.number(n) for n in (plan.start, plan.end, plan.step)]
        alias = exp.TableAlias(this=exp.to_identifier(name))
        source = exp.Select().from_(exp.Table(this=call("range", *numbers), alias=alias))
        return Rows((Column("id", exp.column("id", name)),), source)


class Tables(Protocol):
    """Tables and texts that plans read from: see `pipeline`."""

    def named(self, plans: Plans, name: Sequence[str], read: Any) -> Rows:
        """Return the rows of a table or view by its name."""

    def at_place(self, plans: Plans, read: Any) -> Rows:
        """Return the rows of files or of a table by its path."""

    def text(self, plans: Plans, query: str, views: dict[str, Rows]) -> Rows:
        """Return the rows of a query's text, which may name DataFrames as views."""

    def types(self, query: str) -> Sequence[str]:
        """Return the types of a query's columns; those of one that is computed whole are ''."""


_ZERO = exp.Literal.number(0)
_ARRAYS = frozenset({"collect_list", "collect_set", "array_agg"})
_COUNTS = frozenset({"count", "count_if", "approx_count_distinct", "regr_count", "approx_top_k"})


def text_of(plan: Any) -> str:
    """Return the text of `spark.sql`. Raises NotTranslated if it has arguments."""
    if plan.args or plan.pos_args or plan.named_arguments or plan.pos_arguments:
        raise NotTranslated("spark.sql with arguments: write them into the text")
    return str(plan.query)


def _is_value(tree: Tree, type_: str) -> Tree:
    """Return the test that a value is neither null nor, of a type that has it, NaN."""
    if not type_:
        raise NotTranslated("dropna or fillna over a query that is computed whole: ask for nulls")
    is_known = exp.Not(this=exp.Is(this=tree.copy(), expression=exp.null()))
    if type_.upper() not in ("DOUBLE", "FLOAT"):
        return is_known
    return exp.And(this=is_known, expression=exp.Not(this=call("isnan", tree.copy())))


def _is_of(value: Any, type_: str) -> bool:
    """True if `fillna` with a value, a literal, concerns columns of a type."""
    match value.WhichOneof("literal_type"):
        case "string":
            return type_.upper() == "STRING"
        case "boolean":
            return type_.upper() == "BOOLEAN"
    return isinstance(type_of(type_), NumericType) if type_ else True


def _filtered(tree: Tree, test: exp.Where) -> Tree:
    """Return an expression with its aggregates over the rows that pass a test."""
    if not is_aggregated(tree):
        raise NotTranslated("pivot of an expression without an aggregate")
    found = exp.Paren(this=tree.copy())
    for one in [*found.find_all(exp.Anonymous)]:
        if one.name.lower() in AGGREGATES:
            one.replace(exp.Filter(this=one.copy(), expression=test.copy()))
    return found.this  # type: ignore[no-any-return]


def _is_apart(type_: str) -> bool:
    """True if Spark's pivot takes aggregates of a type for what they are over no rows."""
    return (
        bool(type_) and type_.upper() != "BOOLEAN" and not isinstance(type_of(type_), NumericType)
    )


def _column_named(rows: Rows, expression: Any) -> Column | None:
    """Return the column that an expression only names; else None. Raises NotTranslated."""
    found = getattr(expression, expression.WhichOneof("expr_type"))
    match expression.WhichOneof("expr_type"):
        case "unresolved_attribute":
            plan = found.plan_id if found.HasField("plan_id") else None
            column, fields = rows.column(split_name(found.unparsed_identifier), plan)
        case "expression_string":
            tree = parse_as(found.expression, None)
            if not isinstance(tree, exp.Column) or isinstance(tree.this, exp.Star):
                return None
            column, fields = rows.column([part.name for part in tree.parts], None)
        case _:
            return None
    return None if fields else column


def _several_names(expression: Any) -> list[str]:
    """Return the names of an expression that gives several columns; else nothing."""
    is_alias = expression.WhichOneof("expr_type") == "alias"
    function = (expression.alias.expr if is_alias else expression).unresolved_function
    names = [*expression.alias.name] if is_alias else ["pos", "col"]
    is_numbered = function.function_name.lower() in ("posexplode", "posexplode_outer")
    return names if is_numbered or (is_alias and len(names) > 1) else []


def _field_names(tree: Tree, type_: str) -> list[str]:
    """Return the fields of a struct: of a call that makes one, or by its type."""
    match tree.name.lower() if isinstance(tree, exp.Anonymous) else "":
        case "struct":
            return [one.alias_or_name for one in tree.expressions]
        case "from_json":
            type_ = tree.expressions[1].name
    found = type_of(type_) if type_ else None
    return found.names if isinstance(found, StructType) else []


_READERS: dict[str, Callable[[Plans, Any], Rows]] = {
    "read": Plans.read_table,
    "project": Plans.project,
    "filter": Plans.filter_rows,
    "join": join,
    "set_op": combine_sets,
    "sort": Plans.sort,
    "limit": Plans.limit,
    "aggregate": Plans.aggregate,
    "sql": lambda plans, plan: plans.tables.text(plans, text_of(plan), {}),
    "with_relations": Plans.read_text_over,
    "deduplicate": Plans.deduplicate,
    "range": Plans.read_range,
    "local_relation": Plans.read_local,
    "subquery_alias": Plans.alias_rows,
    "to_df": Plans.rename_all,
    "with_columns_renamed": Plans.rename,
    "drop": Plans.drop,
    "with_columns": Plans.add_columns,
    "drop_na": Plans.drop_nulls,
    "fill_na": Plans.fill_nulls,
    **dict.fromkeys(
        ("hint", "repartition", "repartition_by_expression", "with_watermark"),
        lambda plans, plan: plans.rows(plan.input),
    ),
}
