"""Expressions of Spark Connect's protocol as expressions of a query."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import isfinite
from typing import Any

from pyspark.sql.connect import proto
from pyspark.sql.connect.types import proto_schema_to_pyspark_data_type
from sqlglot import exp

from sluice.interpreter.expressions import split_name
from sluice.interpreter.expressions.from_protocol import read_decimal
from sluice.language.syntax import AGGREGATES, Tree, Verbatim, parse_as, render

Find = Callable[[Sequence[str], int | None], Tree]  # a column by its name's parts, and its plan
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class NotTranslated(ValueError):
    """A part of a plan that no query says."""


BINARY: dict[str, tuple[type[exp.Binary], int]] = {
    "or": (exp.Or, 1),
    "and": (exp.And, 2),
    "==": (exp.EQ, 4),
    "=": (exp.EQ, 4),
    "!=": (exp.NEQ, 4),
    "<=>": (exp.NullSafeEQ, 4),
    "<": (exp.LT, 4),
    "<=": (exp.LTE, 4),
    ">": (exp.GT, 4),
    ">=": (exp.GTE, 4),
    "like": (exp.Like, 4),
    "ilike": (exp.ILike, 4),
    "rlike": (exp.RegexpLike, 4),
    "|": (exp.BitwiseOr, 5),
    "^": (exp.BitwiseXor, 6),
    "&": (exp.BitwiseAnd, 7),
    "+": (exp.Add, 8),
    "-": (exp.Sub, 8),
    "*": (exp.Mul, 9),
    "/": (exp.Div, 9),
    "%": (exp.Mod, 9),
}
STRENGTH: dict[type[Tree], int] = dict(BINARY.values())
NOT, TEST, SIGN, ATOM = 3, 4, 10, 11
_TESTS: tuple[type[Tree], ...] = (exp.Is, exp.In, exp.Between, exp.RegexpLike)


def _strength(tree: Tree) -> int:
    if isinstance(tree, exp.Not):
        return NOT
    if isinstance(tree, _TESTS):
        return TEST
    if isinstance(tree, exp.Neg):
        return SIGN
    return STRENGTH.get(type(tree), ATOM)


def within(tree: Tree, least: int) -> Tree:
    """Return the tree in parentheses if it binds less than that."""
    return exp.Paren(this=tree) if _strength(tree) < least else tree


def is_aggregated(tree: Tree) -> bool:
    """True if an expression aggregates rows, outside of window functions."""
    found = (n for n in tree.find_all(exp.Anonymous) if n.name.lower() in AGGREGATES)
    return any(not n.find_ancestor(exp.Window) for n in found)


def call(name: str, *arguments: Tree) -> Tree:
    """Return a call of a function."""
    return exp.Anonymous(this=name, expressions=[*arguments])


@dataclass(frozen=True)
class Expressions:
    """Translator of expressions over the columns that `find` finds."""

    find: Find
    bound: dict[str, str] = field(default_factory=dict)  # variables of lambdas: PySpark's -> ours

    def tree(self, expression: Any) -> Tree:
        """Return an expression's tree. Raises NotTranslated."""
        if isinstance(expression, exp.Expr):
            return self._found_in(expression.copy())
        kind = expression.WhichOneof("expr_type")
        reader = _READERS.get(kind)
        if reader is None:
            raise NotTranslated(_REFUSED.get(kind, f"an expression of kind {kind}"))
        return reader(self, getattr(expression, kind))

    def trees(self, expressions: Iterable[Any]) -> list[Tree]:
        return [self.tree(one) for one in expressions]

    def _found_in(self, tree: Tree) -> Tree:
        """Return a parsed expression with its columns found."""
        if tree.find(exp.Query):
            raise NotTranslated("a query inside an expression: join the table, or use spark.sql")
        for column in [*tree.find_all(exp.Column)]:  # variables of lambdas are none
            if isinstance(column.this, exp.Star):
                continue
            parts = [part.name for part in column.parts]
            found = self.find(parts, None)
            if column is tree:
                return found
            of = column.parent
            is_field = isinstance(of, exp.Anonymous) and of.name.lower() == "struct"
            column.replace(exp.alias_(found, parts[-1]) if is_field else found)
        return tree

    def text(self, found: Any) -> Tree:
        return self._found_in(parse_as(found.expression, None))

    def attribute(self, found: Any) -> Tree:
        plan = found.plan_id if found.HasField("plan_id") else None
        return self.find(split_name(found.unparsed_identifier), plan)

    def function(self, found: Any) -> Tree:
        if found.is_user_defined_function:
            raise NotTranslated(f"the user-defined function {found.function_name}")
        name, arguments = found.function_name.lower(), self.trees(found.arguments)
        if name == "struct":
            pairs = zip(arguments, found.arguments, strict=True)
            arguments = [_field(tree, argument) for tree, argument in pairs]
        if found.is_distinct:
            return call(name, exp.Distinct(expressions=arguments))
        return _call(name, arguments)

    def cast(self, found: Any) -> Tree:
        if found.WhichOneof("cast_to_type") == "type_str":
            type_ = found.type_str
        else:
            type_ = proto_schema_to_pyspark_data_type(found.type).simpleString()
        to, tree = exp.DataType.build(type_, dialect=Verbatim), self.tree(found.expr)
        if found.eval_mode == proto.Expression.Cast.EVAL_MODE_TRY:
            return exp.TryCast(this=tree, to=to, safe=True, requires_string=False)
        return exp.Cast(this=tree, to=to)

    def sort_order(self, found: Any) -> exp.Ordered:
        order = proto.Expression.SortOrder
        return exp.Ordered(
            this=self.tree(found.child),
            desc=found.direction == order.SORT_DIRECTION_DESCENDING,
            nulls_first=found.null_ordering == order.SORT_NULLS_FIRST,
        )

    def window(self, found: Any) -> Tree:
        spec = None
        if found.HasField("frame_spec"):
            by_rows = found.frame_spec.frame_type == 1
            start, start_side = self._bound(found.frame_spec.lower, "PRECEDING")
            end, end_side = self._bound(found.frame_spec.upper, "FOLLOWING")
            spec = exp.WindowSpec(
                kind="ROWS" if by_rows else "RANGE",
                start=start,
                start_side=start_side,
                end=end,
                end_side=end_side,
            )
        order = [self.sort_order(one) for one in found.order_spec]
        return exp.Window(
            this=self.tree(found.window_function),
            partition_by=self.trees(found.partition_spec),
            order=exp.Order(expressions=order) if order else None,
            spec=spec,
        )

    def _bound(self, bound: Any, side: str) -> tuple[Any, str | None]:
        match bound.WhichOneof("boundary"):
            case "current_row":
                return "CURRENT ROW", None
            case "unbounded":
                return "UNBOUNDED", side
        value = self.tree(bound.value)
        if isinstance(value, exp.Cast):
            value = value.this
        if isinstance(value, exp.Neg):
            return value.this, "PRECEDING"
        return value, "FOLLOWING"

    def lambda_function(self, found: Any) -> Tree:
        names = [exp.to_identifier(self.variable(a.name_parts[0])) for a in found.arguments]
        return exp.Lambda(this=self.tree(found.function), expressions=names)

    def variable(self, name: str) -> str:
        """Return a lambda's variable; PySpark numbers them through a process, in any order."""
        return self.bound.setdefault(name, f"{name.rpartition('_')[0]}_{len(self.bound) + 1}")

    def extract(self, found: Any) -> Tree:
        child, of = self.tree(found.child), self.tree(found.extraction)
        if of.is_string:
            return exp.Dot(this=child, expression=exp.to_identifier(of.name))
        return exp.Bracket(this=child, expressions=[of])


def _field(tree: Tree, argument: Any) -> Tree:
    """Return an argument of `struct` with its field's name; one without a name is col1, col2."""
    kind = argument.WhichOneof("expr_type")
    if isinstance(tree, exp.Star):
        raise NotTranslated("struct of all columns: name them")
    if kind in ("alias", "unresolved_attribute", "unresolved_extract_value"):
        return exp.alias_(tree, name_of(argument))
    if kind == "expression_string" and isinstance(tree, exp.Column):
        return exp.alias_(tree, name_of(argument))
    return tree


def _call(name: str, arguments: list[Tree]) -> Tree:  # noqa: PLR0911 - one per kind
    """Return a call, or the operator that it stands for."""
    if name in BINARY and len(arguments) == 2:
        type_, strength = BINARY[name]
        left, right = arguments
        is_chain, is_test = name in ("and", "or"), strength == TEST
        right = within(right, strength if is_chain else strength + 1)
        return type_(this=within(left, strength + is_test), expression=right)
    match name, arguments:
        case "not", [one]:
            return exp.Not(this=within(one, NOT + 1))
        case "negative", [one]:
            return exp.Neg(this=within(one, ATOM))
        case "isnull", [one]:
            return exp.Is(this=within(one, TEST + 1), expression=exp.null())
        case "isnotnull", [one]:
            return exp.Not(this=exp.Is(this=within(one, TEST + 1), expression=exp.null()))
        case "in", [one, *values]:
            return exp.In(this=within(one, TEST + 1), expressions=values) if values else exp.false()
        case "when", _:
            pairs = zip(arguments[0::2], arguments[1::2], strict=False)
            ifs = [exp.If(this=when, true=then) for when, then in pairs]
            default = arguments[-1] if len(arguments) % 2 else None
            return exp.Case(ifs=ifs, default=default)
        case "window" | "session_window" | "window_time", _:
            raise NotTranslated(f"{name}, a struct of times: use date_trunc of the time")
        case "count", [exp.Literal()]:
            return call("count", exp.Star())
    return call(name, *arguments)


def literal(found: Any) -> Tree:  # noqa: PLR0911 - one per kind
    """Return a literal with its type."""
    kind = found.WhichOneof("literal_type")
    value = getattr(found, kind)
    if kind in _NUMBERS:
        number = _number(value)
        return exp.cast(number, _NUMBERS[kind]) if _NUMBERS[kind] else number
    match kind:
        case "null":
            type_ = proto_schema_to_pyspark_data_type(value).simpleString()
            return exp.null() if type_ == "void" else exp.cast(exp.null(), type_, dialect=Verbatim)
        case "boolean":
            return exp.true() if value else exp.false()
        case "string":
            return exp.Literal.string(value)
        case "decimal":
            digits, of = read_decimal(value)
            return exp.cast(exp.Literal.string(digits), of.simpleString(), dialect=Verbatim)
        case "date":
            day = date(1970, 1, 1) + timedelta(days=value)
            return exp.cast(exp.Literal.string(day.isoformat()), "date")
        case "timestamp" | "timestamp_ntz":
            moment = (EPOCH + timedelta(microseconds=value)).replace(tzinfo=None)
            type_ = "timestamp_ntz" if kind == "timestamp_ntz" else "timestamp"
            written = exp.Literal.string(moment.isoformat(" "))
            return exp.cast(written, type_, dialect=Verbatim)
        case "array":
            return call("array", *(literal(one) for one in value.elements))
    raise NotTranslated(f"a literal of kind {kind}")


def constant(value: Any) -> Tree:
    """Return a Python value as a literal; a column's cast gives it its type."""
    if value is None:
        return exp.null()
    if isinstance(value, bool):
        return exp.true() if value else exp.false()
    if isinstance(value, int | float):
        return _number(value)
    if isinstance(value, str | date | Decimal):
        return exp.Literal.string(str(value))
    raise NotTranslated(f"a value of its own like {value!r}")


_NUMBERS = {
    "integer": "",
    "long": "bigint",
    "short": "smallint",
    "byte": "tinyint",
    "double": "double",
    "float": "float",
}


def _number(value: float) -> Tree:
    if not isfinite(value):
        return exp.Literal.string(str(value))
    text = repr(abs(value))
    number = exp.Literal.number(text)
    return exp.Neg(this=number) if value < 0 else number


def name_of(expression: Any) -> str:  # noqa: PLR0911 - one per kind
    """Return the name of a column that an expression without an alias gets."""
    if isinstance(expression, exp.Expr):
        return str(expression.alias_or_name) or render(expression)
    kind = expression.WhichOneof("expr_type")
    found = getattr(expression, kind)
    match kind:
        case "alias":
            return str(found.name[0])
        case "unresolved_attribute":
            return split_name(found.unparsed_identifier)[-1]
        case "cast":
            return name_of(found.expr)
        case "unresolved_function" | "call_function":
            inner = ", ".join(map(name_of, found.arguments))
            return f"{found.function_name}({inner})"
        case "expression_string":
            tree = parse_as(found.expression, None)
            return str(tree.alias_or_name) or render(tree)
        case "unresolved_extract_value":
            return name_of(found.extraction)
        case "literal":
            return render(literal(found))
        case "window":
            return name_of(found.window_function)
    return str(kind)


_REFUSED = {
    "common_inline_user_defined_function": "a Python function (UDF), which may be anything",
    "subquery_expression": "a DataFrame inside an expression",
}
_READERS: dict[str, Callable[[Expressions, Any], Tree]] = {
    "literal": lambda _, found: literal(found),
    "unresolved_attribute": Expressions.attribute,
    "unresolved_star": lambda _, found: exp.Star(),  # noqa: ARG005 - count(*)
    "expression_string": Expressions.text,
    "unresolved_function": Expressions.function,
    "call_function": lambda e, found: _call(found.function_name.lower(), e.trees(found.arguments)),
    "alias": lambda e, found: e.tree(found.expr),
    "cast": Expressions.cast,
    "sort_order": Expressions.sort_order,
    "lambda_function": Expressions.lambda_function,
    "unresolved_named_lambda_variable": lambda e, found: exp.column(
        e.variable(found.name_parts[0])
    ),
    "unresolved_extract_value": Expressions.extract,
    "window": Expressions.window,
}
