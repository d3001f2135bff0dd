"""Types accepted by operators, kinds of syntax, casts and aggregates, by families of types.

These are Spark's own rules in ANSI mode, measured; those of the aggregates are Sluice's.
"""

from sqlglot import exp

from sluice.language import syntax
from sluice.language.typed.families import INTERVALS, KINDS, MOMENTS, NUMERIC

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
