"""dbt's data tests as expectations, and `relationships` as a view of the rows that break it."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sluice.dbt.artifacts import DataTest
from sluice.dbt.queries import translated_condition
from sluice.declare.building import query_view

ExpectationFields = dict[str, Any]
UNKNOWN_MACRO = "Sluice has no expectation like it; a view in SQL can show the rows that break it"
THRESHOLDS = "it counts failures (`warn_if`, `error_if` or `limit`), which no expectation does"


def key_of(checks: Iterable[DataTest]) -> str:
    """Return the column of one node that is tested to be unique and never null; '' if none."""
    tested: dict[str, set[str]] = defaultdict(set)
    for check in checks:
        if not check.where and not check.has_thresholds:
            tested[check.column].add(check.macro)
    return next((c for c, macros in tested.items() if {"unique", "not_null"} <= macros), "")


def expectation(check: DataTest, types: Mapping[str, str], dialect: str) -> ExpectationFields:
    """Return the expectation that corresponds to a test. Raises ValueError, with the reason, if
    there is none.

    `types`: the table's known columns.
    """
    _check_usual(check)
    if check.macro not in LIKE:
        raise ValueError(UNKNOWN_MACRO)
    fields = LIKE[check.macro](check, types.get(check.column.lower(), ""))
    if check.where:
        fields["row_condition"] = translated_condition(check.where, dialect)
    return fields


def orphans(check: DataTest, child: str, parent: str, dialect: str) -> ExpectationFields:
    """Return the view of rows without a matching row in the parent, with its expectation."""
    _check_usual(check)
    column, other = _quoted(check.column), _quoted(str(check.arguments.get("field", "")))
    conditions = [f"{column} IS NOT NULL"]
    if check.where:
        conditions.append(f"({translated_condition(check.where, dialect)})")
    rows = f"SELECT * FROM {child} WHERE {' AND '.join(conditions)}"
    sql = f"SELECT c.*\nFROM ({rows}) AS c\nLEFT ANTI JOIN {parent} AS p ON c.{column} = p.{other}"
    none = {"type": "expect_table_row_count_to_be_between", "max_value": 0}
    failing = {"on_failure": "stop"} if check.is_error else {"over": "table"}
    about = f"Rows of {child} whose {check.column} is no {other} of {parent}"
    return {"description": about, **query_view(sql), "expect": [{**none, **failing}]}


def _check_usual(check: DataTest) -> None:
    if check.has_thresholds:
        raise ValueError(THRESHOLDS)


def _quoted(name: str) -> str:
    return name.lower() if name.isidentifier() else f"`{name.lower()}`"


def _on_failure(check: DataTest) -> str:
    return "stop" if check.is_error else "warn"


def _not_null(check: DataTest, _type: str) -> ExpectationFields:
    return {
        "type": "expect_column_values_to_not_be_null",
        "column": check.column.lower(),
        "on_failure": _on_failure(check),
    }


def _unique(check: DataTest, _type: str) -> ExpectationFields:
    """Return a rule over the whole table, which only warns: a batch can't know other rows."""
    return {
        "type": "expect_column_values_to_be_unique",
        "column": check.column.lower(),
        "over": "table",
    }


def _accepted_values(check: DataTest, type_: str) -> ExpectationFields:
    values = list(check.arguments.get("values") or ())
    return {
        "type": "expect_column_values_to_be_in_set",
        "column": check.column.lower(),
        "value_set": [str(value) for value in values] if type_ == "STRING" else values,
        "on_failure": _on_failure(check),
    }


LIKE: Mapping[str, Callable[[DataTest, str], ExpectationFields]] = {
    "not_null": _not_null,
    "unique": _unique,
    "accepted_values": _accepted_values,
}
