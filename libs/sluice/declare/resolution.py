"""Checks of delivered rows: their key, order and change, and their columns' names in files."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sluice.declare.declared import Declared
from sluice.declare.document import Document, Where
from sluice.declare.mistakes import Mistakes
from sluice.declare.table import Table
from sluice.declare.table_spec import Expectation
from sluice.language.expression import Aggregate, Expression, SortKey
from sluice.language.inference import ColumnTypes, infer, is_interval
from sluice.language.names import RESERVED_PREFIX, UnknownName, unknown
from sluice.language.type_rules import aggregate_problem, problems
from sluice.language.types import (
    EVENT_TIMES,
    UNORDERED,
    base_name,
    inner_types,
    is_orderable,
    struct_fields,
    widen_exactly,
)

SelectedColumns = Mapping[str, Expression]
Review = Callable[[Expectation, ColumnTypes], Iterable[str]]  # a further check of expectations


@dataclass(frozen=True)
class TableMistakes:
    """Report of one table's mistakes, by their place in its declaration.

    `broken`: places of earlier ones, whose followers are not noted. `is_certain`: all columns of
    its inputs are known; otherwise an unknown one is no mistake.
    """

    mistakes: Mistakes
    document: Document
    where: Where
    broken: tuple[Where, ...] = ()
    is_certain: bool = True

    def add(self, where: Where, message: str) -> None:
        """Note a mistake, unless it may follow from another."""
        if any(where[: len(at)] == at[: len(where)] for at in self.broken):
            return
        if not self.is_certain and isinstance(message, UnknownName):
            return
        self.mistakes.add(self.document, (*self.where, *where), message)

    def with_place(self, where: Where, message: str) -> str:
        """Return a message that begins with its file and line, if that is not the document's."""
        file, line, said = self.document.locate((*self.where, *where), message)
        return message if file == self.document.path else f"{file}:{line}: {said}"


@dataclass(frozen=True)
class Scope:
    """Columns of an input, and those of joined dimensions by `dimension.column`."""

    columns: ColumnTypes
    joined: Mapping[str, ColumnTypes] = field(default_factory=dict)

    def problem(self, column: str) -> str:
        """Return the mistake in that column; '' if there is none."""
        first, *rest = column.split(".")
        if rest and first in self.joined:
            known, (name, *fields) = self.joined[first], rest
            if name not in known:
                return unknown_of(first, name, known)
            return _field_problem(f"{first}.{name}", known[name], fields)
        if first in self.columns:
            return _field_problem(first, self.columns[first], rest)
        owners = [name for name, columns in self.joined.items() if first in columns]
        if owners:
            what = "belongs to" if len(owners) == 1 else "is in both"
            written = " or ".join(f"{owner}.{first}" for owner in owners)
            return f"column {first!r} {what} {' and '.join(owners)}; write {written}"
        if rest:
            return unknown("table or struct", first, [*self.joined, *self.columns], "known ones")
        return unknown("column", first, self.columns)

    def check(
        self, expression: Expression | None, mistakes: TableMistakes, *where: str | int
    ) -> None:
        """Note missing columns of the expression, and types that don't fit."""
        if expression:
            self.check_columns(expression.columns, mistakes, *where)
            for problem in problems(expression, self.columns, self.joined):
                mistakes.add(where, problem)

    def check_aggregate(
        self, aggregate: Aggregate, mistakes: TableMistakes, *where: str | int
    ) -> None:
        """Report mistakes in an aggregate's argument, order and filter."""
        self.check(aggregate.argument, mistakes, *where)
        problem = aggregate_problem(aggregate, self.columns)
        if problem:
            mistakes.add(where, problem)
        self.check_order(aggregate.order_by, mistakes, *where)
        self.check_condition(aggregate.filter, mistakes, *where)

    def check_columns(
        self, columns: Iterable[str], mistakes: TableMistakes, *where: str | int
    ) -> None:
        """Note each of these columns (`a`, `products.a`) that is missing."""
        for column in sorted(columns):
            problem = self.problem(column)
            if problem:
                mistakes.add(where, problem)

    def check_names(self, names: Iterable[str], mistakes: TableMistakes, *where: str | int) -> None:
        """Report every name that is not a column."""
        for name in names:
            if name not in self.columns:
                mistakes.add(where, unknown("column", name, self.columns))

    def check_key(self, names: Sequence[str], mistakes: TableMistakes, *where: str | int) -> None:
        """Note names that can't be key columns."""
        self.check_names(names, mistakes, *where)
        for name in sorted({name for name in names if names.count(name) > 1}):
            mistakes.add(where, f"{name!r} is named twice")
        for name in names:
            self._check_comparable(name, self.columns.get(name, ""), mistakes, where)

    def check_order(
        self, keys: Iterable[SortKey], mistakes: TableMistakes, *where: str | int
    ) -> None:
        """Note keys that can't be sorted by."""
        for i, key in enumerate(keys):
            self.check(key.expression, mistakes, *where, i)
            text = key.expression.text
            self._check_comparable(text, self.type_of(key.expression), mistakes, (*where, i))

    def check_groups(
        self, groups: Iterable[Expression], mistakes: TableMistakes, *where: str | int
    ) -> None:
        """Note expressions that can't be grouped by."""
        for i, expression in enumerate(groups):
            self.check(expression, mistakes, *where, i)
            self.check_storable(expression, mistakes, *where, i)
            type_ = self.type_of(expression)
            self._check_comparable(expression.text, type_, mistakes, (*where, i))

    def check_condition(
        self, condition: Expression | None, mistakes: TableMistakes, *where: str | int
    ) -> None:
        """Note a condition that is neither true nor false."""
        self.check(condition, mistakes, *where)
        type_ = self.type_of(condition)
        if condition and type_ not in ("", "BOOLEAN"):
            mistakes.add(where, f"{condition.text!r} is {type_}; a condition is true or false")

    def check_time(self, column: str, mistakes: TableMistakes, *where: str | int) -> None:
        """Note a time column that is missing or isn't a time."""
        self.check_names([column], mistakes, *where)
        type_ = self.columns.get(column, "")
        if type_ and base_name(type_) not in EVENT_TIMES:
            mistakes.add(where, f"{column} is {type_}; an event time is a TIMESTAMP or a DATE")

    def check_select(self, select: SelectedColumns | None, mistakes: TableMistakes) -> None:
        """Report mistakes in the selected expressions."""
        for name, expression in (select or {}).items():
            self.check(expression, mistakes, "select", name)
            self.check_storable(expression, mistakes, "select", name)

    def check_storable(
        self, expression: Expression, mistakes: TableMistakes, *where: str | int
    ) -> None:
        """Note an expression that no table can hold."""
        if is_interval(expression, self.columns, self.joined):
            mistakes.add(
                where,
                f"{expression.text!r} is an interval, which no table can hold; "
                "write it as a number, e.g. by timestampdiff(second, a, b)",
            )
        elif "VARIANT" in (type_ := self.type_of(expression)):
            mistakes.add(
                where,
                f"{expression.text!r} is {type_}, which can be neither compared nor read without "
                "Spark; write it by to_json(…), or a part of it by variant_get(…, '$.a', 'int')",
            )

    def type_of(self, expression: Expression | None) -> str:
        """Return the expression's type; '' if it isn't known."""
        return infer(expression, self.columns, self.joined) if expression else ""

    def types_of(self, select: SelectedColumns) -> dict[str, str]:
        """Return the selected columns' types."""
        return {name: self.type_of(expression) for name, expression in select.items()}

    def _check_comparable(
        self, text: str, type_: str, mistakes: TableMistakes, where: Where
    ) -> None:
        if not is_orderable(type_):
            what = f"a {base_name(type_)}" if base_name(type_) in UNORDERED else type_
            mistakes.add(where, f"{text} is {what}, which has no order and can't be a key")


def _field_problem(column: str, type_: str, fields: Sequence[str]) -> str:
    """Return the mistake in `column.field.field`; '' if its type is unknown."""
    for i, name in enumerate(fields):
        if base_name(type_) == "ARRAY":
            (type_,) = inner_types(type_)
        if base_name(type_) in ("", "MAP", "VARIANT"):
            return ""
        outer = ".".join([column, *fields[:i]])
        if base_name(type_) != "STRUCT":
            return f"'{outer}.{'.'.join(fields[i:])}': {outer} is {type_}, it has no fields"
        known = dict(struct_fields(type_))
        if name.lower() not in known:
            return UnknownName(unknown("field", name, known).replace(";", f" of {outer};", 1))
        type_ = known[name.lower()]
    return ""


def unknown_of(table: str, column: str, known: Iterable[str]) -> str:
    """Return `unknown column 'salse' of sales; ...`."""
    return UnknownName(unknown("column", column, known).replace(";", f" of {table};", 1))


def plain_columns(select: SelectedColumns) -> set[str]:
    """Return the selected columns that are the input's, under the same name."""
    return {name for name, expression in select.items() if expression.plain_column == name}


def check_expectations(
    columns: ColumnTypes,
    expect: Iterable[Expectation],
    mistakes: TableMistakes,
    review: Review | None,
) -> None:
    """Report mistakes in expectations; `columns` is empty if they aren't known."""
    for i, expectation in enumerate(expect):
        for column in expectation.columns if columns else ():
            if column not in columns:
                mistakes.add(("expect", i), unknown("column", column, columns))
        problems = list(review(expectation, columns)) if review else []
        for problem in problems or filter(None, [expectation.quarantine_problem]):
            mistakes.add(("expect", i), problem)


def joined_dimensions(names: Iterable[str], inputs: Mapping[Where, Table]) -> dict[str, Table]:
    """Return the dimensions that a list of joins names."""
    return {name: inputs["join", i, "dimension"] for i, name in enumerate(names)}


def check_covers_key(
    dimension: Table, columns: Iterable[str], mistakes: TableMistakes, at: Where
) -> None:
    """Note a join that omits a part of the dimension's key, because rows would multiply."""
    unique = dimension.current_key
    lacking = [column for column in unique if column not in set(columns)]
    if lacking:
        mistakes.add(
            at,
            f"{dimension.name} is unique by {', '.join(unique)}: "
            f"join on {', '.join(lacking)} as well, or rows multiply",
        )


def check_alike(
    text: str, left: str, column: str, right: str, mistakes: TableMistakes, at: Where
) -> None:
    """Note an equality that would round, shift or convert what it compares."""
    if not widen_exactly(left, right):
        mistakes.add(
            at,
            f"{text!r} is {left} and {column} is {right}, which are not the same values; "
            f"write cast({text} as {right})",
        )


def check_columns(spec: Declared, mistakes: TableMistakes) -> None:
    """Note columns that can't serve as key, sequence or change, or can't be found in files."""
    scope = Scope(spec.types)
    scope.check_key(spec.key, mistakes, "key")
    scope.check_key(spec.sequence, mistakes, "sequence")
    if spec.change:
        scope.check_names([spec.change.column], mistakes, "change", "column")
        _check_change_column(spec.change.column, spec, mistakes)
    _check_names(spec, mistakes)


def _check_change_column(column: str, spec: Declared, mistakes: TableMistakes) -> None:
    if column in (*spec.key, *spec.sequence):
        mistakes.add(
            ("change", "column"), f"{column} holds the row's operation, so it can't be a key"
        )
    if base_name(spec.types.get(column, "STRING")) not in ("STRING", "CHAR", "VARCHAR"):
        type_ = spec.types[column]
        mistakes.add(
            ("change", "column"), f"{column} is {type_}; the column of `change` must be a STRING"
        )


def _check_names(spec: Declared, mistakes: TableMistakes) -> None:
    """Note names of no declared column, of no column in a file, and of one that has two names."""
    seen = {name: name for name in spec.types if name not in spec.names}
    for column, theirs in spec.names.items():
        if column not in spec.types:
            mistakes.add(("names", column), unknown("column", column, spec.types))
            continue
        if not theirs or theirs.lower().startswith(RESERVED_PREFIX):
            mistakes.add(("names", column), f"{theirs!r} can't be the name of a file's column")
        other = seen.setdefault(theirs.lower(), column)  # Spark does not distinguish capitals
        if other != column:
            mistakes.add(("names", column), f"column {other} is read from {theirs!r} already")
    has_header = spec.options.get("header", "true").lower() == "true"
    if spec.names and spec.format == "csv" and not has_header:
        mistakes.add(
            ("names",), "a file without a header has no names: its columns are read in order"
        )
