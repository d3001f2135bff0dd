"""Type of an expression, as far as known without Spark; '' if unknown.

A type named here equals Spark's. An unknown type is not a mistake: the caller then asks Spark.

Types accepted by operators, kinds of syntax, casts and aggregates, by families of types.

These are Spark's own rules in ANSI mode, measured; those of the aggregates are Sluice's.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import reduce

from sqlglot import exp

from sluice.language import syntax
from sluice.language.expression import Aggregate, Expression
from sluice.language.syntax import SCALAR
from sluice.language.types import (
    DAY,
    DAYS,
    INTEGERS,
    INTERVALS,
    KINDS,
    MOMENTS,
    MONTHS,
    NOTHING,
    NUMERIC,
    UNKNOWN,
    Decimal,
    base_name,
    common,
    element,
    family,
    field_of,
    inner_types,
    is_number,
    number,
    rounded_type,
    temporal,
    wider_integer,
)

_WHOLE = frozenset({"integer", "long"})
_STRING = frozenset({"string"})
FamilyPairs = tuple[tuple[frozenset[str], frozenset[str]], ...]

# Families that an operator accepts on the left and right.
_OF_NUMBERS: FamilyPairs = ((NUMERIC, NUMERIC | _STRING), (_STRING, NUMERIC))
_SAME_INTERVALS: FamilyPairs = tuple((frozenset({i}), frozenset({i})) for i in sorted(INTERVALS))
_DAYS, _DATE, _INT = frozenset({"days"}), frozenset({"date"}), frozenset({"integer"})
_NUMBERS = "two numbers"
OPERATORS: dict[type[syntax.Tree], tuple[str, str, FamilyPairs]] = {
    exp.Add: (
        "+",
        "two numbers, a time and an interval, or a DATE and a number of days",
        (
            *(*_OF_NUMBERS, *_SAME_INTERVALS, (MOMENTS, INTERVALS), (INTERVALS, MOMENTS)),
            *((_STRING, _DAYS), (_DAYS, _STRING), (_DATE, _INT), (_INT, _DATE)),
        ),
    ),
    exp.Sub: (
        "-",
        "two numbers, two times, a time and an interval, or a DATE and a number of days",
        (
            *(*_OF_NUMBERS, *_SAME_INTERVALS, (MOMENTS, MOMENTS | INTERVALS | _STRING)),
            *((_STRING, MOMENTS), (_STRING, _DAYS), (_DATE, _INT)),
        ),
    ),
    exp.Mul: (
        "*",
        "two numbers, or a number and an interval",
        (*_OF_NUMBERS, (NUMERIC, INTERVALS), (_STRING, INTERVALS), (INTERVALS, NUMERIC | _STRING)),
    ),
    exp.Div: (
        "/",
        "two numbers, or an interval and a number",
        (*_OF_NUMBERS, (INTERVALS, NUMERIC | _STRING)),
    ),
    exp.Mod: ("%", _NUMBERS, _OF_NUMBERS),
    exp.IntDiv: (
        "div",
        "two whole numbers or decimals",
        (
            *((_WHOLE | {"decimal"}, _WHOLE | {"decimal"}), (_WHOLE, _STRING), (_STRING, _WHOLE)),
            *_SAME_INTERVALS,
        ),
    ),
    **dict.fromkeys(
        (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor),
        (
            "a bitwise operator",
            "two whole numbers",
            ((_WHOLE, _WHOLE | _STRING), (_STRING, _WHOLE)),
        ),
    ),
}
# Types accepted for the one operand of a kind of syntax, and the operand's name in the tree.
OPERANDS: dict[type[syntax.Tree], tuple[str, str, str]] = {
    exp.Neg: ("this", "amount", "-"),
    exp.BitwiseNot: ("this", "whole", "~"),
    exp.Not: ("this", "boolean", "NOT"),
    exp.Extract: ("expression", "part", "EXTRACT"),
    exp.Trim: ("this", "text", "TRIM"),
    exp.Collate: ("this", "string", "COLLATE"),
    exp.Bracket: ("this", "nested", "[...]"),
    exp.Transform: ("this", "array", "transform"),
}
_CAST_TO_NUMBER = NUMERIC | INTERVALS | {"string", "boolean", "timestamp", "variant"}
_CAST_TO_TIME = MOMENTS | {"string", "variant"}
CASTS: dict[str, frozenset[str]] = {
    **dict.fromkeys(("integer", "long", "decimal"), _CAST_TO_NUMBER),
    "fraction": _CAST_TO_NUMBER - INTERVALS,
    "boolean": NUMERIC | {"string", "boolean", "variant"},
    "binary": frozenset({"string", "binary", "variant"}),
    "timestamp": _CAST_TO_TIME | NUMERIC,
    "local": _CAST_TO_TIME,
    "date": _CAST_TO_TIME,
    "array": frozenset({"array", "variant"}),
    "map": frozenset({"map", "variant"}),
    "struct": frozenset({"struct", "variant"}),
}
STATISTICS = (
    *("percentile", "median", "var_pop", "var_samp", "stddev_pop", "stddev_samp"),
    *("skewness", "kurtosis"),
)
# Types that Sluice's own aggregates accept. Spark's sums would cast texts; Sluice's don't.
AGGREGATES: dict[str, tuple[frozenset[str], str]] = {
    **dict.fromkeys(("sum", "avg", "approx_sum", "approx_avg", *STATISTICS), (NUMERIC, "a number")),
    **dict.fromkeys(("bool_or", "bool_and"), KINDS["condition"]),
    "approx_percentile": (NUMERIC | MOMENTS | _STRING, "a number or a time"),
    "approx_top_k": (NUMERIC | MOMENTS | {"string", "boolean"}, "a number, a time or a text"),
}
ORDERED_AGGREGATES = frozenset(
    {"min", "max", "collect_set", "count_distinct", "approx_count_distinct", "mode"}
)

ColumnTypes = Mapping[str, str]
ARITHMETIC: dict[type[syntax.Tree], Callable[[Decimal, Decimal], Decimal]] = {
    exp.Add: Decimal.plus,
    exp.Sub: Decimal.plus,
    exp.Mul: Decimal.times,
    exp.Div: Decimal.over,
    exp.Mod: Decimal.modulo,
}
COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ)
BOOLEAN = (
    *(*COMPARISONS, exp.And, exp.Or, exp.Not, exp.Is, exp.In, exp.Between, exp.Boolean),
    *(exp.Like, exp.ILike, exp.RegexpLike, exp.Escape),
)
STRINGS = (exp.RawString, exp.Trim, exp.Overlay)
DATE_FUNCTIONS = frozenset({"date_diff", "datediff"})


def infer(expression: Expression, columns: ColumnTypes, joined: Mapping[str, ColumnTypes]) -> str:
    """Return the type of a checked expression; '' also for a type that no column can have."""
    found = whole_type(expression, columns, joined)
    return UNKNOWN if found == NOTHING or family(found) in INTERVALS else found


def is_interval(
    expression: Expression, columns: ColumnTypes, joined: Mapping[str, ColumnTypes]
) -> bool:
    """Return whether the type is known to be an interval, which no column can have."""
    return family(whole_type(expression, columns, joined)) in INTERVALS


def whole_type(
    expression: Expression, columns: ColumnTypes, joined: Mapping[str, ColumnTypes]
) -> str:
    """Return the expression's type, even one that no column can have."""
    tree = syntax.parse(expression.sql)
    return TreeTypes(tree, columns, joined).of(tree)


def aggregate_type(aggregate: Aggregate, argument: str) -> str:  # noqa: PLR0911 - one per kind
    """Return the type of an aggregate over an argument of that type."""
    if aggregate.function in STATISTICS:
        several = any(isinstance(p, tuple) for p in aggregate.parameters)
        return "ARRAY<DOUBLE>" if several else "DOUBLE"
    match aggregate.function:
        case "count" | "count_distinct" | "approx_count_distinct":
            return "BIGINT"
        case "bool_or" | "bool_and":
            return "BOOLEAN"
        case "min" | "max" | "first" | "last" | "mode":
            return argument
        case "collect_list" | "collect_set":
            return f"ARRAY<{argument}>" if argument else UNKNOWN
        case "sum" | "avg" | "approx_sum" | "approx_avg":
            return _numeric_aggregate(aggregate.function, argument)
    return UNKNOWN


def _numeric_aggregate(function: str, argument: str) -> str:
    if function.startswith("approx_"):
        return "DOUBLE"
    decimal = Decimal.of(argument) if base_name(argument) == "DECIMAL" else None
    if decimal:
        return str(decimal.sum() if function == "sum" else decimal.average())
    if argument in INTEGERS:
        return "BIGINT" if function == "sum" else "DOUBLE"
    return "DOUBLE" if argument in ("FLOAT", "DOUBLE") else UNKNOWN


class TreeTypes:
    """Types of a tree's parts, including those that no column can have.

    Parts are typed before the whole: depth costs no recursion, and each part is typed once.
    """

    def __init__(
        self, tree: syntax.Tree, columns: ColumnTypes, joined: Mapping[str, ColumnTypes]
    ) -> None:
        self.columns = columns
        self.joined = joined
        self._told: dict[int, str] = {}
        for node in reversed(list(tree.walk())):
            self._told[id(node)] = self._tell(node)

    def of(self, node: syntax.Tree) -> str:
        """Return the type of that part of the tree; '' if it isn't known."""
        return self._told[id(node)]

    def _tell(self, node: syntax.Tree) -> str:  # noqa: PLR0911 - one per kind of node
        match node:
            case exp.Column():
                return self._column([part.name.lower() for part in node.parts])
            case exp.Paren() | exp.BitwiseNot():
                return self.of(node.this)
            case exp.Neg():
                return number(self.of(node.this))
            case exp.Cast():
                return syntax.render(node.args["to"])
            case exp.Literal():
                return literal(node)
            case exp.Interval():
                return interval(node)
            case exp.Case() | exp.If():
                return common(map(self.of, branches(node)))
            case exp.Bracket():
                return element(self.of(node.this))
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
        name, arguments = node.name.lower(), node.expressions
        if name in DATE_FUNCTIONS and len(arguments) > 2:
            return UNKNOWN
        rule, types = SCALAR[name], [self.of(argument) for argument in arguments]
        if rule in BY_RULE:
            return BY_RULE[rule](types) if types else UNKNOWN
        return UNKNOWN if rule == "?" else rule

    def _operation(self, node: syntax.Tree) -> str:  # noqa: PLR0911 - one per kind of node
        if isinstance(node, BOOLEAN):
            return "BOOLEAN"
        if isinstance(node, STRINGS):
            return "STRING"
        if isinstance(node, exp.Null):
            return NOTHING
        if isinstance(node, exp.IntDiv):
            return "BIGINT"
        if isinstance(node, exp.DPipe):
            return together([self.of(node.this), self.of(node.expression)])
        if type(node) in ARITHMETIC and isinstance(node, exp.Binary):
            return self._arithmetic(node)
        return UNKNOWN

    def _arithmetic(self, node: exp.Binary) -> str:
        left, right = self.of(node.this), self.of(node.expression)
        if family(left) in MOMENTS | INTERVALS or family(right) in MOMENTS | INTERVALS:
            return temporal(node, left, right)
        if base_name(left) == "DECIMAL" or base_name(right) == "DECIMAL":
            return _decimal(node, left, right)
        if left in INTEGERS and right in INTEGERS:
            return "DOUBLE" if isinstance(node, exp.Div) else wider_integer(left, right)
        return "DOUBLE" if "DOUBLE" in (left, right) and is_number(left, right) else UNKNOWN


def _decimal(node: exp.Binary, left: str, right: str) -> str:
    if "DOUBLE" in (left, right) and is_number(left, right):
        return "DOUBLE"
    a, b = _operand(node.this, left), _operand(node.expression, right)
    return str(ARITHMETIC[type(node)](a, b)) if a and b else UNKNOWN


def _operand(node: syntax.Tree, type_: str) -> Decimal | None:
    """Return an operand's decimal; an integer literal counts only its own digits."""
    if isinstance(node, exp.Literal) and node.is_int:
        return Decimal(len(node.name), 0)
    return Decimal.of(type_)


def together(types: Iterable[str]) -> str:
    """Return the type of concatenated values: a text, or that of equal arrays."""
    every = set(types)
    if any(base_name(type_) in (UNKNOWN, "ARRAY", "BINARY") for type_ in every):
        return every.pop() if len(every) == 1 else UNKNOWN
    return "STRING"


def _array(of: str) -> str:
    return f"ARRAY<{of}>" if of not in (UNKNOWN, NOTHING) else UNKNOWN


def _entries(types: list[str]) -> str:
    """Return the type of a map's entries."""
    key, value = _of_map(types)
    return f"ARRAY<STRUCT<key: {key}, value: {value}>>" if key else UNKNOWN


def _of_map(types: list[str]) -> tuple[str, str]:
    if base_name(types[0]) != "MAP":
        return UNKNOWN, UNKNOWN
    key, value = inner_types(types[0])
    return key, value


BY_RULE: dict[str, Callable[[list[str]], str]] = {
    "first": lambda types: types[0],
    "number": lambda types: number(types[0]),
    "element": lambda types: element(types[0]),
    "list": lambda types: _array(common(types)),
    "series": lambda types: _array(common(types[:2])),
    "keys": lambda types: _array(_of_map(types)[0]),
    "values": lambda types: _array(_of_map(types)[1]),
    "entries": _entries,
    "whole": lambda types: rounded_type(types[0]) if len(types) == 1 else UNKNOWN,
    "common": common,
    "either": lambda types: common(types[1:]),
    "places": lambda types: types[0] if types[0] in (*INTEGERS, "FLOAT", "DOUBLE") else UNKNOWN,
    "together": together,
}


def branches(node: syntax.Tree) -> list[syntax.Tree]:
    """Return the possible results of a CASE or an IF."""
    if isinstance(node, exp.If):
        return [branch for branch in (node.args["true"], node.args.get("false")) if branch]
    ends = [branch.args["true"] for branch in node.args["ifs"]]
    return [*ends, node.args["default"]] if node.args.get("default") else ends


def list_operands(node: syntax.Tree) -> list[syntax.Tree]:
    """Return what a comparison, IN, BETWEEN or CASE compares: the first with each other one."""
    match node:
        case exp.In():
            return [node.this, *node.expressions]
        case exp.Between():
            return [node.this, node.args["low"], node.args["high"]]
        case exp.Case() if node.this:
            return [node.this, *(branch.this for branch in node.args["ifs"])]
    return [node.this, node.expression] if isinstance(node, COMPARISONS) else []


def literal(node: exp.Literal) -> str:
    """Return the type of a constant."""
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


def interval(node: exp.Interval) -> str:
    """Return the type of an interval's literal, by its units."""
    unit = node.args["unit"]
    largest = unit.this if isinstance(unit, exp.IntervalSpan) else unit
    name = largest.name.lower().removesuffix("s")
    if name in ("year", "month"):
        return MONTHS
    return DAY if name in ("day", "week") and largest is unit else DAYS
