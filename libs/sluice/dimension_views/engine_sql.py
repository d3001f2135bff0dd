"""Expressions and key bounds as SQL of delta-rs' query engine.

Only expressions with the same meaning there as in Spark are translated. The rest is refused by
name.
"""

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import sqlglot
from sqlglot import exp

from sluice.errors import UsageError
from sluice.language.expression import Expression
from sluice.read.conditions.key_order import KeyRange

SAME = (
    *(exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Neg),
    *(exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is),
    *(exp.In, exp.Between, exp.Case, exp.If, exp.Coalesce, exp.Upper, exp.Lower, exp.DPipe),
    *(exp.Add, exp.Sub, exp.Mul, exp.Nullif),
)


def translated(expression: Expression, view: str) -> str:
    """Return the expression in the query engine's SQL."""
    tree = sqlglot.parse_one(expression.sql, dialect="spark")
    for node in tree.walk():
        if not isinstance(node, SAME):
            raise UsageError(
                f"dimension view {view!r} can't be read without Spark: {expression.text!r}",
                hint="select plain columns here, and compute in the lookup that joins it",
            )
    return tree.sql(dialect="postgres", identify=True)


def where_sql(ranges: tuple[KeyRange, ...]) -> str:
    """Return the ranges' first columns as SQL for pruning; exact filtering comes later."""
    tests = []
    for key_range in ranges:
        for sign, bound in ((">=", key_range.low), ("<=", key_range.high)):
            literal = _literal(bound[0][-1]) if bound and len(bound[0]) == 2 else None
            or_null = f' OR "{key_range.columns[0]}" IS NULL' if sign == "<=" else ""
            if literal:
                tests.append(f'("{key_range.columns[0]}" {sign} {literal}{or_null})')
    return f"WHERE {' AND '.join(tests)}" if tests else ""


def _literal(value: Any) -> str | None:
    """Return a value as SQL; None for values left to the filter after the join."""
    match value:
        case bool() | datetime():
            return None
        case int() | Decimal():
            return str(value)
        case str():
            return "'" + value.replace("'", "''") + "'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case _:
            return None
