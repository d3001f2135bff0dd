"""Compiled SQL as Spark SQL over the pipeline's tables.

sqlglot translates. Parts whose meaning would differ in Spark are replaced by ones with the
warehouse's result, or refused with ValueError: a wrong result is worse than none. Types come last,
because a cast's meaning depends on the warehouse's type.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import sqlglot
from sqlglot import ErrorLevel, exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types

from sluice.dbt import TEXTS, DbtNode, Relations, spark_type
from sluice.declare.document import VARIABLE
from sluice.language.syntax import without_tokens

SqlTree = exp.Expr
Translation = Callable[[Any, str], SqlTree]
SPARKS = frozenset({"spark", "spark2", "databricks", "hive"})
COUNT_WHOLE_UNITS = frozenset({"presto", "trino", "athena"})
SUNDAY_IS_0 = frozenset({"duckdb", "postgres", "redshift", "snowflake"})
REPLACE_ONE = frozenset({"duckdb", "postgres"})
DAYS_OF_WEEK = ("DOW", "DAYOFWEEK", "DAY_OF_WEEK", "WEEKDAY")
ISO_DAYS = ("ISODOW", "DAYOFWEEKISO", "DAYOFWEEK_ISO", "WEEKDAY_ISO")
CUT = "unix_seconds(date_trunc('{0}', later)) - unix_seconds(date_trunc('{0}', earlier))"
BOUNDS = {  # between two times, as warehouses count them
    "SECOND": CUT.format("SECOND"),
    "MINUTE": f"({CUT.format('MINUTE')}) DIV 60",
    "HOUR": f"({CUT.format('HOUR')}) DIV 3600",
    "DAY": "datediff(later, earlier)",
    "MONTH": "(year(later) - year(earlier)) * 12 + month(later) - month(earlier)",
    "QUARTER": "(year(later) - year(earlier)) * 4 + quarter(later) - quarter(earlier)",
    "YEAR": "year(later) - year(earlier)",
}
BACK = (exp.DateSub, exp.TimestampSub, exp.DatetimeSub)
UNITS = {*BOUNDS, "WEEK"}


def in_spark(tree: SqlTree, dialect: str) -> SqlTree:
    """Return the tree, changed so that Spark's result equals the warehouse's."""
    if dialect not in SPARKS:
        tree = annotate_types(tree, dialect=dialect)
        tree = _replace_parts(tree, MEANINGS, dialect)
        tree = _replace_parts(tree, {exp.DataType: spark_type}, dialect)

    def negate(part: exp.NullSafeNEQ, _dialect: str) -> SqlTree:  # expressions have only <=>
        return exp.not_(exp.paren(exp.NullSafeEQ(this=part.this, expression=part.expression)))

    return _replace_parts(tree, {exp.NullSafeNEQ: negate}, dialect)


def unsure(tree: SqlTree, dialect: str) -> Iterator[str]:
    """Yield parts that may differ in Spark, because types or functions aren't known."""
    typed = annotate_types(tree.copy())
    for division in typed.find_all(exp.Div):
        keeps_fraction = any(
            side.is_type(*exp.DataType.REAL_TYPES) or (side.is_number and not side.is_int)
            for side in (division.this, division.expression)
        )
        if division.args.get("typed") and not keeps_fraction:
            shown = division.sql()
            yield f"{shown}: Spark's / keeps the fraction; write DIV if both values are integers"
    for call in tree.find_all(exp.Anonymous) if dialect not in SPARKS else ():
        if call.name.lower() != "date_part":
            yield f"{call.name}() is taken for Spark's function of that name"


def _replace_parts(
    tree: SqlTree, meanings: Mapping[type[SqlTree], Translation], dialect: str
) -> SqlTree:
    """Replace each part of these types, those inside another one first."""
    for part in reversed(list(tree.find_all(*meanings))):
        meant = meanings[type(part)](part, dialect) if type(part) in meanings else part
        if meant is not part and part is tree:
            tree = meant
        elif meant is not part:
            part.replace(meant)
    return tree


def _cut(cast: exp.Cast, dialect: str) -> SqlTree:
    """Cut a text where PostgreSQL's cast does: Spark's keeps all of it."""
    if dialect != "postgres" or cast.to.this not in TEXTS or not cast.to.expressions:
        return cast
    length = cast.to.expressions[0].this
    return exp.Left(this=exp.cast(cast.this, "text"), expression=length.copy())


def _difference(part: SqlTree, dialect: str) -> SqlTree:
    """Count the bounds of units between two times; Spark counts whole units that have passed."""
    if dialect in COUNT_WHOLE_UNITS:
        return part
    unit = _unit(part)
    if unit not in BOUNDS:
        raise ValueError(
            f"{part.sql()!r}: weeks start on a different day in Spark; use days instead"
        )
    times = {"later": part.this, "earlier": part.expression}
    formula = sqlglot.parse_one(BOUNDS[unit], dialect="spark")
    for column in [*formula.find_all(exp.Column)]:
        column.replace(times[column.name].copy())
    return exp.paren(formula)


def _add_interval(part: SqlTree, _dialect: str) -> SqlTree:
    """Add an interval, which keeps the time of day: Spark's functions for dates drop it."""
    amount, unit = part.expression, _unit(part)
    amount = amount.this if isinstance(amount, exp.Interval) else amount
    if unit not in UNITS or not (amount.is_int or (amount.is_string and amount.name.isdigit())):
        raise ValueError(
            f"{part.sql()!r}: Spark adds only a constant number of units to a timestamp"
        )
    number = int(amount.name if amount.is_string else amount.to_py())
    is_back = isinstance(part, BACK) != (number < 0)
    interval = exp.Interval(this=exp.Literal.string(abs(number)), unit=exp.var(unit))
    moved = exp.Sub if is_back else exp.Add
    return exp.paren(moved(this=part.this, expression=interval))


def _unit(part: SqlTree) -> str:
    unit = part.args.get("unit") or part.expression.args.get("unit") or exp.var("DAY")
    return str(unit.name).upper().rstrip("S")


def _day_of_week(part: exp.DayOfWeek, dialect: str) -> SqlTree:
    """Number the days of a week as the warehouse does: Spark's Sunday is 1."""
    if dialect not in SUNDAY_IS_0:
        return part
    return exp.paren(exp.Sub(this=part.copy(), expression=exp.Literal.number(1)))


def _iso_day(part: exp.DayOfWeekIso, _dialect: str) -> SqlTree:
    day = exp.Anonymous(this="WEEKDAY", expressions=[part.this])
    return exp.paren(exp.Add(this=day, expression=exp.Literal.number(1)))


def _extract(part: exp.Extract, dialect: str) -> SqlTree:
    name = part.this.name.upper()
    if name in ISO_DAYS:
        return _iso_day(exp.DayOfWeekIso(this=part.expression), dialect)
    if name in DAYS_OF_WEEK:
        return _day_of_week(exp.DayOfWeek(this=part.expression), dialect)
    if name.startswith("WEEK") and dialect == "bigquery":
        raise ValueError(f"{part.sql()!r}: weeks start on a different day in Spark")
    return part


def _call(part: exp.Anonymous, dialect: str) -> SqlTree:
    """Return `date_part('dow', x)` as the EXTRACT that it stands for; other functions as is."""
    if part.name.lower() != "date_part" or len(part.expressions) != 2:
        return part
    what, of = part.expressions
    return _extract(exp.Extract(this=exp.var(what.name.upper()), expression=of), dialect)


def _percentile(part: exp.WithinGroup, _dialect: str) -> SqlTree:
    """Interpolate a percentile; sqlglot would write an approximate one."""
    share, order = part.this, part.expression
    if isinstance(share, exp.PercentileDisc):
        raise ValueError(f"{part.sql()!r}: Spark's exact percentile interpolates; percentile_cont")
    if not isinstance(share, exp.PercentileCont):
        return part
    key = order.expressions[0]
    rest = exp.Sub(this=exp.Literal.number(1), expression=share.this)
    at = rest if key.args.get("desc") else share.this
    return exp.Anonymous(this="PERCENTILE", expressions=[key.this, at])


def _logarithm(part: exp.Log, _dialect: str) -> SqlTree:
    """Replace the logarithm of one number by one to base 10; Spark's is the natural one."""
    if part.expression:
        return part
    return exp.Anonymous(this="LOG10", expressions=[part.this])


def _replace_pattern(part: exp.RegexpReplace, dialect: str) -> SqlTree:
    """Replace all that matches a pattern, as Spark does; some warehouses replace the first."""
    modifiers = part.args.get("modifiers")
    if dialect in REPLACE_ONE and (modifiers is None or modifiers.name != "g"):
        raise ValueError(f"{part.sql()!r}: Spark replaces every match, not only the first; add 'g'")
    part.set("modifiers", None)
    return part


MEANINGS: Mapping[type[SqlTree], Translation] = {
    exp.Cast: _cut,
    **dict.fromkeys((exp.DateDiff, exp.DatetimeDiff, exp.TsOrDsDiff), _difference),
    **dict.fromkeys((exp.DateAdd, exp.TimestampAdd, exp.DatetimeAdd, exp.TsOrDsAdd), _add_interval),
    **dict.fromkeys(BACK, _add_interval),
    exp.DayOfWeek: _day_of_week,
    exp.DayOfWeekIso: _iso_day,
    exp.Extract: _extract,
    exp.Anonymous: _call,
    exp.WithinGroup: _percentile,
    exp.Log: _logarithm,
    exp.RegexpReplace: _replace_pattern,
}

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


def translate(
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
    reads = _rename_tables(tree, node, relations, names, pipeline)
    cautions = [*unsure(tree, dialect)]
    if "is_incremental" in node.raw and not THIS.search(node.raw):  # else it reads its own table
        cautions.insert(
            0, "it calls is_incremental(): create the manifest with `dbt compile --full-refresh`"
        )
    text = _spark(tree, dialect)
    if found := VARIABLE.search(text):
        raise ValueError(f"{found[0]!r} in its SQL would be read from the environment")
    return TranslatedQuery(text, reads, tuple(cautions))


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


def _rename_tables(
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


def _spark(tree: exp.Expr, dialect: str) -> str:
    try:
        return in_spark(tree, dialect).sql(
            dialect="spark", pretty=True, unsupported_level=ErrorLevel.RAISE
        )
    except SqlglotError as error:
        raise ValueError(f"a part of it has no equivalent in Spark: {_reason(error)}") from None
