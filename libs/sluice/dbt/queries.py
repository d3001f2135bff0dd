"""Compiled SQL as Spark SQL over the pipeline's tables.

sqlglot translates. What it writes alike although Spark means something else is mended here, or
refused: a wrong result is worse than none.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import sqlglot
from sqlglot import ErrorLevel, exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types

from sluice.dbt.artifacts import Node
from sluice.dbt.names import Relations
from sluice.dbt.types import sized, spark_type
from sluice.declare.document import VARIABLE

THIS = re.compile(r"\bthis\b")
SPARKS = frozenset({"spark", "spark2", "databricks", "hive"})
DIFFERENCES = (exp.DateDiff, exp.DatetimeDiff, exp.TsOrDsDiff)
COUNT_WHOLE_UNITS = frozenset({"presto", "trino", "athena"})
BOUNDS = {  # between two times, as warehouses count them
    "DAY": "datediff(later, earlier)",
    "MONTH": "(year(later) - year(earlier)) * 12 + month(later) - month(earlier)",
    "YEAR": "year(later) - year(earlier)",
}
OTHER_BOUNDS = "Spark counts whole units that have passed, not bounds; write it by days"
READS_ITSELF = (
    "it reads its own table, because dbt compiled it for an incremental run; "
    "`dbt compile --full-refresh`, then import again"
)


@dataclass(frozen=True)
class Query:
    """Spark SQL, the nodes that it reads, and what to look at, because Spark may differ."""

    text: str
    reads: tuple[str, ...]
    cautions: tuple[str, ...] = ()


def translated(
    node: Node, dialect: str, relations: Relations, names: Mapping[str, str], pipeline: str
) -> Query:
    """Return a model's query. Raises ValueError, in words, if it can't be read or translated."""
    tree = _tree(node.sql, dialect)
    reads = _renamed(tree, node, relations, names, pipeline)
    cautions = (*_when_compiled(node), *_divisions(tree))
    text = _spark(tree, dialect)
    if found := VARIABLE.search(text):
        raise ValueError(f"{found[0]!r} in its SQL would be read from the environment")
    return Query(text, reads, cautions)


def translated_condition(text: str, dialect: str) -> str:
    """Return a condition on rows as Spark SQL. Raises ValueError if it can't be translated."""
    try:
        return _spark(exp.maybe_parse(text, into=exp.Condition, dialect=dialect), dialect)
    except SqlglotError as error:
        raise ValueError(f"{text!r} can't be read as {dialect}: {_reason(error)}") from None


def _tree(sql: str, dialect: str) -> exp.Query:
    try:
        trees = [tree for tree in sqlglot.parse(sql, dialect=dialect) if tree]
    except (SqlglotError, RecursionError) as error:
        raise ValueError(f"its SQL can't be read as {dialect}: {_reason(error)}") from None
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        raise ValueError("its SQL is no single SELECT")
    return trees[0]


def _reason(error: Exception) -> str:
    found = getattr(error, "errors", None) or [{}]
    line, what = found[0].get("line"), found[0].get("description")
    first = str(what or error).splitlines()[0].rstrip(".")
    return f"line {line}: {first}" if line else first


def _renamed(
    tree: exp.Query, node: Node, relations: Relations, names: Mapping[str, str], pipeline: str
) -> tuple[str, ...]:
    """Give every stored table its name in the pipeline; return the nodes that they are."""
    shared = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    reads: dict[str, None] = {}
    for table in list(tree.find_all(exp.Table)):
        if not isinstance(table.this, exp.Identifier):
            raise ValueError(f"it reads {table.sql()!r}, which is no table")
        if not table.db and table.name.lower() in shared:
            continue
        target = relations.node(table)
        if not target:
            raise ValueError(
                f"it reads {table.sql()!r}, which dbt doesn't know as a model or source"
            )
        if target == node.id:
            raise ValueError(READS_ITSELF)
        reads[target] = None
        _name(table, names[target], pipeline if names[target] in shared else "")
    for column in tree.find_all(exp.Column):
        column.set("db", None)
        column.set("catalog", None)
    return tuple(reads)


def _name(table: exp.Table, name: str, pipeline: str) -> None:
    """Rename the table; columns that name it by its old name find it by an alias."""
    if not table.alias and table.name.lower() != name:
        table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name)))
    table.set("this", exp.to_identifier(name))
    table.set("db", exp.to_identifier(pipeline) if pipeline else None)
    table.set("catalog", None)


def _when_compiled(node: Node) -> Iterator[str]:
    """Yield a caution about a part that dbt leaves out of a full refresh, if it can't be seen."""
    if "is_incremental" in node.raw and not THIS.search(node.raw):
        yield "it asks is_incremental(): the manifest must be of `dbt compile --full-refresh`"


def _divisions(tree: exp.Query) -> Iterator[str]:
    """Yield divisions that drop the fraction in the warehouse if both sides are whole."""
    typed = annotate_types(tree.copy())
    for division in typed.find_all(exp.Div):
        sides = (division.this, division.expression)
        if division.args.get("typed") and not any(_is_fraction(side) for side in sides):
            shown = division.sql()
            yield f"{shown}: Spark keeps the fraction of whole numbers; write DIV if both are whole"


def _is_fraction(side: exp.Expr) -> bool:
    return side.is_type(*exp.DataType.REAL_TYPES) or (side.is_number and not side.is_int)


def _spark(tree: exp.Expr, dialect: str) -> str:
    if dialect not in SPARKS:
        tree = annotate_types(tree, dialect=dialect)
        _cut_texts(tree, dialect)
        if dialect not in COUNT_WHOLE_UNITS:
            _count_bounds(tree)
        _use_types_of_spark(tree, dialect)
    _write_distinct(tree)
    try:
        return tree.sql(dialect="spark", pretty=True, unsupported_level=ErrorLevel.RAISE)
    except SqlglotError as error:
        raise ValueError(f"Spark has nothing like a part of it: {_reason(error)}") from None


def _innermost(tree: exp.Expr, *types: type[exp.Expr]) -> Iterator[Any]:
    """Yield the parts of these types, each before the one around it, so that it may be replaced."""
    yield from reversed(list(tree.find_all(*types)))


def _cut_texts(tree: exp.Expr, dialect: str) -> None:
    """Cut texts where PostgreSQL's casts do: Spark's keep all of a text."""
    for cast in _innermost(tree, exp.Cast) if dialect == "postgres" else ():
        if length := sized(cast.to):
            cast.replace(exp.Left(this=exp.cast(cast.this, "text"), expression=length.copy()))


def _count_bounds(tree: exp.Expr) -> None:
    """Count the bounds of days or months between two times; Spark counts whole ones that passed."""
    for part in _innermost(tree, *DIFFERENCES):
        unit = str(part.text("unit") or "DAY").upper().rstrip("S")
        if unit not in BOUNDS:
            raise ValueError(f"{part.sql()!r}: {OTHER_BOUNDS}")
        later, earlier = part.this, part.expression
        formula = sqlglot.parse_one(BOUNDS[unit]).transform(_filled, later, earlier)
        part.replace(exp.paren(formula))


def _filled(part: exp.Expr, later: exp.Expr, earlier: exp.Expr) -> exp.Expr:
    """Return the time that a column of a formula stands for."""
    times = {"later": later, "earlier": earlier}
    return times[part.name].copy() if isinstance(part, exp.Column) else part


def _write_distinct(tree: exp.Expr) -> None:
    """Write IS DISTINCT FROM by the operator that expressions have."""
    for part in _innermost(tree, exp.NullSafeNEQ):
        same = exp.NullSafeEQ(this=part.this, expression=part.expression)
        part.replace(exp.not_(exp.paren(same)))


def _use_types_of_spark(tree: exp.Expr, dialect: str) -> None:
    for type_ in _innermost(tree, exp.DataType):
        type_.replace(spark_type(type_, dialect))
