"""Compiled SQL as Spark SQL over the pipeline's tables.

sqlglot translates, and `meanings` corrects it: a wrong result is worse than none.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import sqlglot
from sqlglot import ErrorLevel, exp
from sqlglot.errors import SqlglotError

from sluice.dbt.artifacts import DbtNode
from sluice.dbt.meanings import in_spark, unsure
from sluice.dbt.table_names import Relations
from sluice.declare.text.document import VARIABLE
from sluice.language.syntax import without_tokens

THIS = re.compile(r"\bthis\b")
PLACES_OF_COLUMNS = {
    (exp.Column, "this"),
    (exp.Alias, "alias"),
    (exp.TableAlias, "columns"),
    (exp.Join, "using"),
}
READS_ITSELF = (
    "it reads its own table, because dbt compiled it for an incremental run; "
    "`dbt compile --full-refresh`, then import again"
)


@dataclass(frozen=True)
class TranslatedQuery:
    """Spark SQL, the nodes that it reads, and cautions where Spark may differ."""

    text: str
    reads: tuple[str, ...]
    cautions: tuple[str, ...] = ()


def translated(
    node: DbtNode,
    dialect: str,
    relations: Relations,
    names: Mapping[str, str],
    pipeline: str,
    columns: Mapping[str, str],
) -> TranslatedQuery:
    """Return a model's query. Raises ValueError, in words, if it can't be read or translated.

    `names`: those of nodes in the pipeline; `columns`: those of columns that can't keep theirs.
    """
    tree = _tree(node.sql, dialect)
    _rename_columns(tree, columns)
    reads = _renamed(tree, node, relations, names, pipeline)
    cautions = (*_when_compiled(node), *unsure(tree, dialect))
    text = _spark(tree, dialect)
    if found := VARIABLE.search(text):
        raise ValueError(f"{found[0]!r} in its SQL would be read from the environment")
    return TranslatedQuery(text, reads, cautions)


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
        raise ValueError("its SQL is not a single SELECT")
    return trees[0]


def _reason(error: Exception) -> str:
    found = getattr(error, "errors", None) or [{}]
    line, what = found[0].get("line"), found[0].get("description")
    first = without_tokens(str(what or error).splitlines()[0]).rstrip(".")
    return f"line {line}: {first}" if line else first


def _renamed(
    tree: exp.Query, node: DbtNode, relations: Relations, names: Mapping[str, str], pipeline: str
) -> tuple[str, ...]:
    """Rename every stored table as in the pipeline; return their nodes."""
    shared = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    reads: dict[str, None] = {}
    columns = [(column, _qualifiers(tree, column)) for column in tree.find_all(exp.Column)]
    for table in list(tree.find_all(exp.Table)):
        if not isinstance(table.this, exp.Identifier):
            raise ValueError(f"it reads {table.sql()!r}, which is not a table")
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
    for column, names_in_full in columns:
        for name in names_in_full:
            column.set(name, None)
    return tuple(reads)


def _qualifiers(tree: exp.Query, column: exp.Column) -> list[str]:
    """Return the parts of `catalog.schema.table.column` before the table; a struct has none."""
    given = [name for name in ("catalog", "db", "table") if column.args.get(name)]
    parts = [column.args[name].name.lower() for name in given]
    for table in tree.find_all(exp.Table):
        own = [part.name.lower() for part in table.parts]
        for size in range(2, len(own) + 1):
            if parts[:size] == own[-size:]:
                return given[: size - 1]
    return []


def _rename_columns(tree: exp.Query, names: Mapping[str, str]) -> None:
    """Rename columns, and what the query itself calls so."""
    for name in list(tree.find_all(exp.Identifier)):
        is_column = (type(name.parent), name.arg_key) in PLACES_OF_COLUMNS
        if is_column and (new := names.get(name.name.lower())):
            name.replace(exp.to_identifier(new))


def _name(table: exp.Table, name: str, pipeline: str) -> None:
    """Rename the table; columns that name it by its old name find it by an alias."""
    if not table.alias and table.name.lower() != name:
        table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name)))
    table.set("this", exp.to_identifier(name))
    table.set("db", exp.to_identifier(pipeline) if pipeline else None)
    table.set("catalog", None)


def _when_compiled(node: DbtNode) -> Iterator[str]:
    """Yield a caution about a part that dbt leaves out of a full refresh, if it can't be seen."""
    if "is_incremental" in node.raw and not THIS.search(node.raw):
        yield "it calls is_incremental(): create the manifest with `dbt compile --full-refresh`"


def _spark(tree: exp.Expr, dialect: str) -> str:
    try:
        return in_spark(tree, dialect).sql(
            dialect="spark", pretty=True, unsupported_level=ErrorLevel.RAISE
        )
    except SqlglotError as error:
        raise ValueError(f"a part of it has no equivalent in Spark: {_reason(error)}") from None
