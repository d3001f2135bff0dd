"""`where` of reads without Spark: comparisons, in, between, like, null tests, and/or/not.

A field of a STRUCT is named by its path, `column.field`.

A predicate means what it means in Spark SQL: of three truth values, only true keeps a row. Null on
either side of a comparison gives null, except for `<=>`. NaN equals itself and is above every
number. A literal is compared exactly with a column of any number type. Everything else is refused,
naming the part.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_FLOOR, Context, Decimal, InvalidOperation
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sluice.errors import UsageError
from sluice.language.interval import parse_time
from sluice.language.names import RESERVED_PREFIX, unknown
from sluice.language.syntax import SparkSQL, reason_of
from sluice.read.key_order import KeyRange, place
from sluice.read.values import field_at, type_name

ACCEPTED = "where takes comparisons, in, between, like, is [not] null, and, or, not"
ADJACENT = "Spark joins two texts that follow each other; write one text"
Operator = type[exp.Binary]
MIRRORED: Mapping[Operator, Operator] = {
    exp.LT: exp.GT,
    exp.GT: exp.LT,
    exp.LTE: exp.GTE,
    exp.GTE: exp.LTE,
}
SPANNING: Mapping[Operator, str] = {
    exp.EQ: "both",
    exp.GT: "low",
    exp.GTE: "low",
    exp.LT: "high",
    exp.LTE: "high",
}
COMPARISONS = (*SPANNING, exp.NEQ, exp.NullSafeEQ)
KNOWN = {"this", "expression", "expressions", "low", "high", "negate"}  # parts of a predicate
DATED = ("date", "timestamp", "timestamptz", "timestampltz", "timestampntz")


@dataclass(frozen=True)
class Predicate:
    """A filter: its expression, the columns that it reads, and ranges that hold all its rows."""

    text: str
    expression: pc.Expression
    columns: frozenset[str]
    ranges: tuple[KeyRange, ...]

    def rows(self, table: pa.Table) -> pa.Table:
        """Return the rows for which it is true."""
        return table.filter(self.expression)


def parse(text: str, schema: pa.Schema) -> Predicate:
    """Return the filter that `text` declares, over the visible columns of `schema`."""
    tree = syntax_tree(text)
    compiler = _Compiler(text, schema)
    expression = compiler.predicate(tree)
    try:  # on no rows, so that incomparable types are found before any read
        schema.empty_table().filter(expression)
    except (pa.ArrowException, TypeError) as error:
        raise UsageError(f"where {text!r}: {error}") from None
    tested = [compiler.column(node).name for node in tree.find_all(exp.Column)]
    names = frozenset(name.split(".")[0] for name in tested)
    return Predicate(text, expression, names, tuple(compiler.ranges(tree)))


def columns_in(text: str) -> set[str]:
    """Return the columns and paths of fields that a condition tests, in small letters."""
    return {column.name.lower() for column in syntax_tree(text).find_all(exp.Column)}


def syntax_tree(text: str) -> exp.Expr:
    """Return a condition's tree, in which a path such as `a.b.c` is one column of that name."""
    if not isinstance(text, str):
        raise UsageError(f"where must be a text, not {text!r}", hint=ACCEPTED)
    try:
        text.encode()
        return sqlglot.parse_one(text, dialect=SparkSQL).transform(_join_path)
    except UnicodeEncodeError:
        raise UsageError(f"where {text!r} is no text of UTF-8", hint=ACCEPTED) from None
    except (SqlglotError, RecursionError) as error:
        reason = reason_of(error)
        raise UsageError(f"where {text!r} does not parse: {reason}", hint=ACCEPTED) from None


def _join_path(node: exp.Expr) -> exp.Expr:
    parts = node.parts if isinstance(node, exp.Column | exp.Dot) else []
    if len(parts) < 2 or not all(isinstance(part, exp.Identifier) for part in parts):
        return node
    return exp.column(".".join(part.name for part in parts))


@dataclass(frozen=True)
class _Compiler:
    text: str
    schema: pa.Schema

    def predicate(self, node: exp.Expr) -> pc.Expression:
        if {name for name, value in node.args.items() if value} - KNOWN:
            raise self._refuse(node)
        if isinstance(node, exp.Binary) and type(node) in COMPARISONS:
            return self._compare(type(node), node.left, node.right)
        if type(node) not in TESTS:
            raise self._refuse(node)
        test = TESTS[type(node)](self, node)
        return ~test if node.args.get("negate") else test

    def column(self, node: exp.Expr) -> pa.Field:
        """Return the visible column that the node names."""
        is_plain = isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier)
        if not is_plain or len([value for value in node.args.values() if value]) > 1:
            raise self._refuse(node)
        visible = [n for n in self.schema.names if not n.startswith(RESERVED_PREFIX)]
        field = field_at(pa.schema([self.schema.field(n) for n in visible]), node.name)
        if field is None:
            raise UsageError(f"where {self.text!r}: {unknown('column', node.name, visible)}")
        return field

    def ranges(self, node: exp.Expr) -> list[KeyRange]:
        """Return ranges that each hold every row for which the predicate is true."""
        match node:
            case exp.Paren():
                return self.ranges(node.this)
            case exp.And():
                return self.ranges(node.left) + self.ranges(node.right)
            case exp.Between():
                low, high = node.args["low"], node.args["high"]
                return [
                    *self._range(exp.GTE, node.this, low),
                    *self._range(exp.LTE, node.this, high),
                ]
            case exp.Binary() if type(node) in COMPARISONS:
                return self._range(type(node), node.left, node.right)
        return []

    def _range(self, operator: Operator, left: exp.Expr, right: exp.Expr) -> list[KeyRange]:
        operator, left, right = _column_first(operator, left, right)
        if operator not in SPANNING or isinstance(right, exp.Column):
            return []
        column = self.column(left)
        if "." in column.name:  # files have no bounds of fields
            return []
        value = self._literal(right, column)
        if value is None or pa.types.is_floating(column.type):
            return []
        bound, side = (place(value),), SPANNING[operator]
        low = bound if side != "high" else None
        return [KeyRange((column.name,), low, bound if side != "low" else None)]

    def _compare(self, operator: Operator, left: exp.Expr, right: exp.Expr) -> pc.Expression:
        operator, left, right = _column_first(operator, left, right)
        column = self.column(left)
        if isinstance(right, exp.Column):
            other = self.column(right)
            floating = any(pa.types.is_floating(one.type) for one in (column, other))
            return _comparison(operator, _column(column), _column(other), floating)
        return _compare_literal(operator, column, self._literal(right, column))

    def flag(self, node: exp.Column) -> pc.Expression:
        column = self.column(node)
        if not pa.types.is_boolean(column.type):
            raise self._mismatch(f"{column.name!r} is {type_name(column.type)}, not a condition")
        return _reference(column)

    def between(self, node: exp.Between) -> pc.Expression:
        low = self._compare(exp.GTE, node.this, node.args["low"])
        return low & self._compare(exp.LTE, node.this, node.args["high"])

    def is_in(self, node: exp.In) -> pc.Expression:
        """Return a test that is null if none is equal and one of them, or the column, is null."""
        if not node.expressions:
            raise self._refuse(node)
        column = self.column(node.this)
        values = [self._literal(item, column) for item in node.expressions]
        tests = [_compare_literal(exp.EQ, column, value) for value in values]
        return reduce(lambda one, other: one | other, tests)

    def like(self, node: exp.Like) -> pc.Expression:
        """Return a test with `%` for any text and `_` for any character, escaped by a backslash."""
        column = self.column(node.this)
        if not isinstance(node.expression, exp.Literal) or not node.expression.is_string:
            raise self._refuse(node)
        if not pa.types.is_string(column.type):
            raise self._mismatch(f"like needs text, {column.name!r} is {type_name(column.type)}")
        return pc.match_like(_reference(column), node.expression.name)

    def null_test(self, node: exp.Is) -> pc.Expression:
        """Return the test `is null`; the negation makes it `is not null`."""
        if not isinstance(node.expression, exp.Null):
            raise self._refuse(node)
        return _reference(self.column(node.this)).is_null()

    def _literal(self, node: exp.Expr, column: pa.Field) -> Any:
        """Return the literal's value in the column's type; None for null."""
        sign, inner = _split_sign(node)
        if isinstance(inner, exp.Cast) and inner.to.is_type(*DATED):
            inner = inner.this
        if isinstance(inner, exp.Null):
            return None
        if isinstance(inner, exp.Boolean) and pa.types.is_boolean(column.type):
            return bool(inner.this)
        if not isinstance(inner, exp.Literal):
            raise self._refuse(node)
        try:
            return _reader(column.type, is_text=bool(inner.is_string))(sign + inner.name)
        except (ValueError, InvalidOperation, UsageError):
            shown = node.sql(dialect="spark")
            raise self._mismatch(
                f"{shown} does not compare with column {column.name!r} ({type_name(column.type)})"
            ) from None

    def _mismatch(self, what: str) -> UsageError:
        return UsageError(f"where {self.text!r}: {what}")

    def _refuse(self, node: exp.Expr) -> UsageError:
        part = node.sql(dialect="spark")
        hint = ADJACENT if isinstance(node, exp.Concat) else ACCEPTED
        return UsageError(f"where does not support {part!r} (in {self.text!r})", hint=hint)


TESTS: Mapping[type[exp.Expr], Callable[[_Compiler, Any], pc.Expression]] = {
    exp.Paren: lambda c, node: c.predicate(node.this),
    exp.And: lambda c, node: c.predicate(node.left) & c.predicate(node.right),
    exp.Or: lambda c, node: c.predicate(node.left) | c.predicate(node.right),
    exp.Not: lambda c, node: ~c.predicate(node.this),
    exp.Boolean: lambda _, node: pc.scalar(bool(node.this)),
    exp.Column: lambda c, node: c.flag(node),
    exp.Is: lambda c, node: c.null_test(node),
    exp.Between: lambda c, node: c.between(node),
    exp.In: lambda c, node: c.is_in(node),
    exp.Like: lambda c, node: c.like(node),
}


def _column_first(
    operator: Operator, left: exp.Expr, right: exp.Expr
) -> tuple[Operator, exp.Expr, exp.Expr]:
    if isinstance(right, exp.Column) and not isinstance(left, exp.Column):
        return MIRRORED.get(operator, operator), right, left
    return operator, left, right


def _split_sign(node: exp.Expr) -> tuple[str, exp.Expr]:
    """Return the sign before a literal, and the literal."""
    sign = ""
    while isinstance(node, exp.Neg | exp.Paren):
        if isinstance(node, exp.Neg):
            sign = "" if sign else "-"
        node = node.this
    return sign, node


def _compare_literal(operator: Operator, column: pa.Field, value: Any) -> pc.Expression:
    side, kind = _column(column), column.type
    of: pa.DataType | None = None if isinstance(value, float) else kind
    if isinstance(value, Decimal):
        exact = _decimal(kind)
        side, of = side.cast(exact), pa.decimal256(exact.precision + 2, exact.scale + 1)
    return _comparison(operator, side, pc.scalar(pa.scalar(value, of)), pa.types.is_floating(kind))


def _reader(kind: pa.DataType, *, is_text: bool) -> Callable[[str], Any]:
    """Return what reads a literal for a column of that type. Raises ValueError if nothing does."""
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return lambda text: _number(text, _decimal(kind))
    if pa.types.is_floating(kind):
        return float
    if is_text and pa.types.is_string(kind):
        return str
    if is_text and pa.types.is_timestamp(kind):
        return parse_time if kind.tz else lambda text: parse_time(text).replace(tzinfo=None)
    if is_text and pa.types.is_date(kind):
        return date.fromisoformat
    raise ValueError(f"no literal of type {kind}")


def _decimal(kind: pa.DataType) -> pa.DataType:
    """Return the DECIMAL that holds every value of a column of whole numbers or decimals."""
    return pa.decimal128(20, 0) if pa.types.is_integer(kind) else kind


def _number(text: str, kind: pa.DataType) -> Decimal:
    """Return the number, or a short one that compares as it does with every value of the type.

    A number beyond the type's values becomes the first one beyond them; one between two neighbours
    becomes the middle between them.
    """
    number = Decimal(text)
    if not number.is_finite():
        raise ValueError(text)
    beyond = Decimal(10) ** (kind.precision - kind.scale)
    number = max(-beyond, min(number, beyond))
    exact, unit = Context(prec=kind.precision + 2), Decimal(1).scaleb(-kind.scale)
    below = number.quantize(unit, ROUND_FLOOR, exact)
    return below if below == number else exact.add(below, unit / 2)


def _reference(field: pa.Field) -> pc.Expression:
    return pc.field(*field.name.split("."))


def _column(field: pa.Field) -> pc.Expression:
    column = _reference(field)
    return column.cast(pa.float64()) if pa.types.is_floating(field.type) else column


def _comparison(
    operator: Operator, a: pc.Expression, b: pc.Expression, floating: bool
) -> pc.Expression:
    equal, above, below = a == b, a > b, b > a
    if floating:
        a_is_nan, b_is_nan = (pc.is_nan(side.cast(pa.float64())) for side in (a, b))
        equal = equal | (a_is_nan & b_is_nan)
        above, below = above | (a_is_nan & ~b_is_nan), below | (b_is_nan & ~a_is_nan)
    return {
        exp.EQ: equal,
        exp.NEQ: ~equal,
        exp.GT: above,
        exp.LT: below,
        exp.GTE: ~below,
        exp.LTE: ~above,
        exp.NullSafeEQ: pc.coalesce(equal, a.is_null() & b.is_null()),
    }[operator]
