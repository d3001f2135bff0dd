"""Review of expectations: their mistakes, reported before any batch is judged.

Great Expectations checks its own names and arguments. This module checks what it leaves to run
time. It finds values that can't be compared with their column, invalid row conditions, and
expectations that can't be evaluated on a batch. Only `sluice validate` asks.
"""

import datetime as dt
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from sluice.declare.expectation import Expectation
from sluice.gate import asked
from sluice.gate.outcomes import table_comparison
from sluice.gate.rules import freshness, java_regex
from sluice.gate.rules.suite import COMPILERS, refusals
from sluice.language.expression import Expression
from sluice.language.names import unknown
from sluice.language.typed.inference import infer
from sluice.language.typed.rules import problems

# Arguments compared with the column's values, if the expectation is about one column.
COMPARED = ("min_value", "max_value", "value_set")
ABOUT_LENGTHS_OR_COUNTS = ("length", "count", "proportion", "mean", "sum", "stdev", "median")
NOW = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)  # any time: it changes no mistake
NUMBERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL")


def mistakes(expectation: Expectation, columns: Mapping[str, str]) -> list[str]:
    """Return every mistake, as text; `columns` are the table's, with Spark types ('' if unknown).

    If `columns` is empty, the table's columns are unknown.
    """
    try:
        expectation = freshness.at(expectation, NOW)
    except ValueError as error:
        return [str(error)]
    if expectation.type in table_comparison.COMPILED:
        return table_comparison.mistakes(expectation)
    values = list(_values(expectation, columns))
    if problems := asked.mistakes(expectation):
        return values or problems
    if problems := refusals(expectation):
        return problems
    return [
        *([] if expectation.type in COMPILERS else asked.not_on_spark(expectation)),
        *_order(expectation.kwargs),
        *_patterns(expectation.kwargs),
        *_condition(expectation.kwargs.get("row_condition"), columns),
        *values,
    ]


def _order(kwargs: Mapping[str, Any]) -> Iterator[str]:
    low, high = kwargs.get("min_value"), kwargs.get("max_value")
    if type(low) is type(high) and low is not None and low > high:
        yield f"min_value {low!r} is greater than max_value {high!r}"


def _patterns(kwargs: Mapping[str, Any]) -> Iterator[str]:
    """Yield regular expressions that Spark would reject."""
    for argument in ("regex", "regex_list"):
        given = kwargs.get(argument)
        for pattern in given if isinstance(given, list | tuple) else [given]:
            if isinstance(pattern, str) and (why := java_regex.problem(pattern)):
                yield f"{argument}: {why}"


def _condition(condition: Any, columns: Mapping[str, str]) -> Iterator[str]:
    """Yield columns of a row condition that the table lacks, and types that don't fit."""
    if condition is None or not columns:
        return
    expression = Expression.parse(str(condition))
    for column in sorted(expression.reads(columns) - set(columns)):
        yield f"row_condition: {unknown('column', column, columns)}"
    for problem in problems(expression, columns, {}):
        yield f"row_condition: {problem}"
    type_ = infer(expression, columns, {})
    if type_ not in ("", "BOOLEAN"):
        yield f"row_condition: {condition!r} is {type_}; a condition is true or false"


def _values(expectation: Expectation, columns: Mapping[str, str]) -> Iterator[str]:
    """Yield values that Spark could not compare with the column's."""
    column = expectation.kwargs.get("column", "")
    kind = columns.get(column, "").upper()
    if not kind or any(word in expectation.type for word in ABOUT_LENGTHS_OR_COUNTS):
        return
    for argument in COMPARED:
        given = expectation.kwargs.get(argument)
        for value in given if isinstance(given, list | tuple) else [given]:
            if value is not None and not _is_comparable(value, kind):
                yield f"{argument}: {value!r} can't be compared with {column}, which is {kind}"


def _is_comparable(value: Any, kind: str) -> bool:
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    if kind.startswith(NUMBERS):
        return is_number or (isinstance(value, str) and _reads_as_number(value))
    if kind == "STRING":
        return isinstance(value, str)
    if kind.startswith(("TIMESTAMP", "DATE")):
        return not is_number
    return True


def _reads_as_number(value: str) -> bool:
    try:
        Decimal(value)
    except InvalidOperation:
        return False
    return True
