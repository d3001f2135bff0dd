"""The type of an expression, as far as it can be told without Spark; '' where it can't.

A type named here is the one that Spark gives. What is missing is no mistake: whoever needs the type
then asks Spark.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce

from sqlglot import exp

from sluice.specs import syntax
from sluice.specs.decimals import Decimal
from sluice.specs.expression import Aggregate, Expression
from sluice.specs.functions import SCALAR
from sluice.specs.types import INTEGERS, field_of, head

Columns = Mapping[str, str]
UNKNOWN = ""
NOTHING = "VOID"
ARITHMETIC: dict[type[syntax.Tree], Callable[[Decimal, Decimal], Decimal]] = {
    exp.Add: Decimal.plus,
    exp.Sub: Decimal.plus,
    exp.Mul: Decimal.times,
    exp.Div: Decimal.over,
    exp.Mod: Decimal.modulo,
}
BOOLEAN = (
    *(exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ),
    *(exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.RegexpLike, exp.Escape, exp.Boolean),
)
STRINGS = (exp.RawString, exp.Trim, exp.Overlay)


def infer(expression: Expression, columns: Columns, joined: Mapping[str, Columns]) -> str:
    """The type of a checked expression over these columns."""
    found = _Types(columns, joined).of(syntax.parse(expression.sql))
    return UNKNOWN if found == NOTHING else found


def aggregate_type(aggregate: Aggregate, argument: str) -> str:
    """The type of an aggregate over an argument of that type."""
    match aggregate.function:
        case "count" | "count_distinct" | "approx_count_distinct":
            return "BIGINT"
        case "bool_or" | "bool_and":
            return "BOOLEAN"
        case "min" | "max" | "first" | "last":
            return argument
        case "collect_list" | "collect_set":
            return f"ARRAY<{argument}>" if argument else UNKNOWN
        case "sum" | "avg":
            return _numeric_aggregate(aggregate.function, argument)
    return UNKNOWN


def _numeric_aggregate(function: str, argument: str) -> str:
    decimal = Decimal.of(argument) if head(argument) == "DECIMAL" else None
    if decimal:
        return str(decimal.sum() if function == "sum" else decimal.average())
    if argument in INTEGERS:
        return "BIGINT" if function == "sum" else "DOUBLE"
    return "DOUBLE" if argument in ("FLOAT", "DOUBLE") else UNKNOWN


@dataclass(frozen=True)
class _Types:
    columns: Columns
    joined: Mapping[str, Columns]

    def of(self, node: syntax.Tree) -> str:  # noqa: PLR0911 - one per kind of node
        match node:
            case exp.Column():
                return self._column([part.name.lower() for part in node.parts])
            case exp.Paren() | exp.Neg() | exp.BitwiseNot():
                return self.of(node.this)
            case exp.Cast():
                return syntax.render(node.args["to"])
            case exp.Literal():
                return literal(node)
            case exp.Case() | exp.If():
                return common(self.of(branch) for branch in _branches(node))
            case exp.Anonymous():
                return self._call(node)
        return self._operation(node)

    def _column(self, parts: list[str]) -> str:
        first, *rest = parts
        if rest and first in self.joined:
            first, *rest = rest
            type_ = self.joined[parts[0]].get(first, UNKNOWN)
        else:
            type_ = self.columns.get(first, UNKNOWN)
        return reduce(field_of, rest, type_)

    def _call(self, node: exp.Anonymous) -> str:
        returns = SCALAR[node.name.lower()]
        match returns:
            case "?":
                return UNKNOWN
            case "first":
                return self.of(node.expressions[0]) if node.expressions else UNKNOWN
            case "common":
                return common(map(self.of, node.expressions))
        return returns

    def _operation(self, node: syntax.Tree) -> str:
        if isinstance(node, BOOLEAN):
            return "BOOLEAN"
        if isinstance(node, STRINGS):
            return "STRING"
        if isinstance(node, exp.Null):
            return NOTHING
        if isinstance(node, exp.IntDiv):
            return "BIGINT"
        if type(node) in ARITHMETIC and isinstance(node, exp.Binary):
            return self._arithmetic(node)
        return UNKNOWN

    def _arithmetic(self, node: exp.Binary) -> str:
        left, right = self.of(node.this), self.of(node.expression)
        if head(left) == "DECIMAL" or head(right) == "DECIMAL":
            return _decimal(node, left, right)
        if left in INTEGERS and right in INTEGERS:
            return "DOUBLE" if isinstance(node, exp.Div) else wider_integer(left, right)
        return "DOUBLE" if "DOUBLE" in (left, right) and is_number(left, right) else UNKNOWN


def _decimal(node: exp.Binary, left: str, right: str) -> str:
    if "DOUBLE" in (left, right):
        return "DOUBLE"
    a, b = _operand(node.this, left), _operand(node.expression, right)
    return str(ARITHMETIC[type(node)](a, b)) if a and b else UNKNOWN


def _operand(node: syntax.Tree, type_: str) -> Decimal | None:
    """A whole number's literal counts only the digits that it has."""
    if isinstance(node, exp.Literal) and node.is_int:
        return Decimal(len(node.name), 0)
    return Decimal.of(type_)


def _branches(node: syntax.Tree) -> list[syntax.Tree]:
    if isinstance(node, exp.If):
        return [branch for branch in (node.args["true"], node.args.get("false")) if branch]
    ends = [branch.args["true"] for branch in node.args["ifs"]]
    return [*ends, node.args["default"]] if node.args.get("default") else ends


def literal(node: exp.Literal) -> str:
    """The type of a constant."""
    text = node.name.lower()
    if node.is_string:
        return "STRING"
    if "e" in text:
        return "DOUBLE"
    if "." in text:
        whole, fraction = text.split(".")
        scale = len(fraction)
        return str(Decimal(max(len(whole.lstrip("0")) + scale, scale, 1), scale))
    return next((t for t, most in (("INT", 2**31), ("BIGINT", 2**63)) if int(text) < most), UNKNOWN)


def common(types: Iterable[str]) -> str:
    """The type that holds all of these; '' where Spark's coercion is not plain."""
    found = [type_ for type_ in dict.fromkeys(types) if type_ != NOTHING]
    if len(found) <= 1:
        return found[0] if found else NOTHING
    if all(type_ in INTEGERS for type_ in found):
        return reduce(wider_integer, found)
    decimals = [Decimal.of(type_) for type_ in found]
    known = [decimal for decimal in decimals if decimal]
    return str(reduce(Decimal.wider, known)) if len(known) == len(found) else UNKNOWN


def wider_integer(left: str, right: str) -> str:
    """The larger of two integer types."""
    return max(left, right, key=INTEGERS.index)


def is_number(*types: str) -> bool:
    """Whether all are numeric types."""
    return all(t in INTEGERS or t in ("FLOAT", "DOUBLE") or head(t) == "DECIMAL" for t in types)
