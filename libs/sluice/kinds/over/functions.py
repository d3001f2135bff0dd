"""Window functions: arguments and result of each, and whether ties change its result.

All deterministic ones of Spark are supported. Approximations are not, nor is `collect_set`, because
its elements have no order.
"""

from collections.abc import Mapping

RANKS = {
    **dict.fromkeys(("row_number", "rank", "dense_rank", "ntile"), "INT"),
    **dict.fromkeys(("percent_rank", "cume_dist"), "DOUBLE"),
}
OF_TIES = frozenset({"rank", "dense_rank", "percent_rank", "cume_dist"})
OTHER_ROWS = frozenset({"lag", "lead"})
ROWS_OF_FRAME = frozenset({"first_value", "last_value", "nth_value", "first", "last", "any_value"})

# Aggregates that streams have as well; `language` knows their arguments and their types.
SHARED: Mapping[str, str] = {  # Spark's name -> its name in streams
    **{name: name for name in ("count", "sum", "avg", "min", "max", "bool_and", "bool_or")},
    **{name: name for name in ("var_pop", "var_samp", "stddev_pop", "stddev_samp", "percentile")},
    **dict.fromkeys(("mean", "try_avg"), "avg"),
    **dict.fromkeys(("stddev", "std"), "stddev_samp"),
    **dict.fromkeys(("collect_list", "array_agg"), "collect_list"),
    "try_sum": "sum",
    "every": "bool_and",
    "some": "bool_or",
    "variance": "var_samp",
    "max_by": "max_by",
    "min_by": "min_by",
}
_PAIRS = "corr covar_pop covar_samp"
_REGRESSIONS = "avgx avgy intercept r2 slope sxx sxy syy"
# Those that only windows have: the kinds of their arguments, and their type; '' for the argument's.
OTHERS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "count_if": (("condition",), "BIGINT"),
    **dict.fromkeys(("bit_and", "bit_or", "bit_xor"), (("whole",), "")),
    **dict.fromkeys(("skewness", "kurtosis"), (("number",), "DOUBLE")),
    **dict.fromkeys(_PAIRS.split(), (("number", "number"), "DOUBLE")),
    **{f"regr_{name}": (("number", "number"), "DOUBLE") for name in _REGRESSIONS.split()},
    "regr_count": (("number", "number"), "BIGINT"),
}
AGGREGATES = frozenset({*SHARED, *OTHERS})
EXACT = frozenset(
    {
        *("count", "min", "max", "bool_and", "bool_or", "every", "some", "percentile"),
        *("count_if", "bit_and", "bit_or", "bit_xor", "regr_count"),
    }
)
SUMS = frozenset({"sum", "avg", "mean", "try_sum", "try_avg"})  # exact of exact numbers

IGNORES_NULLS = OTHER_ROWS | ROWS_OF_FRAME
COUNTED = {"ntile": 0, "lag": 1, "lead": 1, "nth_value": 1}  # argument that is a number of rows
LEAST, MOST = {"lag": 0, "lead": 0}, 2**31 - 1
FUNCTIONS = (*RANKS, *sorted(OTHER_ROWS | ROWS_OF_FRAME | AGGREGATES))
_ARGUMENTS = {"lag": (1, 3), "lead": (1, 3), "ntile": (1, 1), "nth_value": (2, 2)}


def arguments_of(function: str) -> tuple[int, int]:
    """Return the least and the greatest number of its arguments."""
    if function in OTHERS:
        return (len(OTHERS[function][0]),) * 2
    return _ARGUMENTS.get(function, (0, 0) if function in RANKS else (1, 1))


def depends_on_ties(function: str, *, of_exact_numbers: bool) -> bool:
    """Return whether an aggregate's result depends on the order in which it takes its rows."""
    return not (function in EXACT or (function in SUMS and of_exact_numbers))
