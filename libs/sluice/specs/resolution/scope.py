"""The columns that an expression may read, and where a mistake in it is noted."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sluice.specs.document import Document, Where
from sluice.specs.expression import Expression
from sluice.specs.inference import infer
from sluice.specs.mistakes import Mistakes
from sluice.specs.names import unknown
from sluice.specs.types import EVENT_TIMES, head

Columns = Mapping[str, str]


@dataclass(frozen=True)
class Report:
    """Notes mistakes of one table, by their place in its declaration."""

    mistakes: Mistakes
    document: Document
    where: Where

    def add(self, where: Where, message: str) -> None:
        """Note one."""
        self.mistakes.add(self.document, (*self.where, *where), message)


@dataclass(frozen=True)
class Scope:
    """An input's columns, and those of joined dimensions by `dimension.column`."""

    columns: Columns
    joined: Mapping[str, Columns] = field(default_factory=dict)

    def problem(self, column: str) -> str:
        """What is wrong with that column; '' if nothing is."""
        first, *rest = column.split(".")
        if rest and first in self.joined:
            dimension = self.joined[first]
            return "" if rest[0] in dimension else unknown(f"column of {first}", rest[0], dimension, "its columns")
        if first in self.columns:
            return self._field_problem(column)
        owner = next((name for name, columns in self.joined.items() if first in columns), None)
        if owner:
            return f"column {first!r} belongs to {owner}; write {owner}.{first}"
        if rest:
            return unknown("table or struct", first, [*self.joined, *self.columns], "known ones")
        return unknown("column", first, self.columns)

    def _field_problem(self, column: str) -> str:
        first, *rest = column.split(".")
        type_ = head(self.columns[first])
        if rest and type_ not in ("", "STRUCT", "MAP", "ARRAY", "VARIANT"):
            return f"{column!r}: {first} is {self.columns[first]}, it has no fields"
        return ""

    def check(self, expression: Expression | None, report: Report, *where: str | int) -> None:
        """Note every column of the expression that isn't there."""
        for column in sorted(expression.columns) if expression else ():
            problem = self.problem(column)
            if problem:
                report.add(where, problem)

    def check_names(self, names: Iterable[str], report: Report, *where: str | int) -> None:
        """Note every name that is no column."""
        for name in names:
            if name not in self.columns:
                report.add(where, unknown("column", name, self.columns))

    def check_time(self, column: str, report: Report, *where: str | int) -> None:
        """Note a time column that isn't there, or isn't a time."""
        if column not in self.columns:
            report.add(where, unknown("column", column, self.columns))
        elif self.columns[column] and head(self.columns[column]) not in EVENT_TIMES:
            report.add(where, f"{column} is {self.columns[column]}; an event time is a TIMESTAMP or a DATE")

    def type_of(self, expression: Expression | None) -> str:
        """The expression's type, '' where it isn't known."""
        return infer(expression.sql, self.columns, self.joined) if expression else ""


def plain_columns(select: Mapping[str, Expression]) -> set[str]:
    """The selected columns that are the input's, under the same name."""
    return {name for name, expression in select.items() if expression.plain_column == name}


def check_expectations(columns: Columns, spec: object, report: Report) -> None:
    """Note expectations on columns that the table does not have."""
    for i, expectation in enumerate(getattr(spec, "expect", ())):
        for column in expectation.columns:
            if column not in columns:
                report.add(("expect", i), unknown("column", column, columns))
