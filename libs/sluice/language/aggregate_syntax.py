"""Reader of aggregates: splits a text into function, argument, order, filter and parameters.

`collect_list(item ORDER BY at)` and `first(x ORDER BY at)` are Sluice's spelling. If an aggregate's
result depends on the order of the rows, the aggregate or its stream names that order.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from sluice.language import syntax
from sluice.language.names import unknown

SMALLEST_DEVIATION = 0.0008  # limit of the largest HyperLogLog sketch
MOST_ACCURATE = 20_000  # limit of the largest KLL sketch


def parameter_problem(function: str, parameters: Sequence[Any]) -> str:
    """Return why an aggregate can't take these parameters; '' if it can."""
    match function:
        case "approx_count_distinct":
            found = _of_distinct(*parameters)
        case "approx_percentile" | "percentile":
            found = _of_percentile(*parameters)
        case "approx_top_k":
            found = _of_top_k(*parameters)
        case _:
            return ""
    return next((f"{function}: {why}" for why in found), "")


def _of_distinct(deviation: Any = 0.05) -> Iterator[str]:
    if not (_is_number(deviation) and SMALLEST_DEVIATION <= deviation < 1):
        yield (
            f"{deviation!r} is not a relative standard deviation; it is a number from "
            f"{SMALLEST_DEVIATION} up to 1, such as 0.05"
        )


def _of_percentile(ranks: Any, accuracy: Any = 1000) -> Iterator[str]:
    each = ranks if isinstance(ranks, tuple) else (ranks,)
    if not each:
        yield "the array is empty; a rank is a number from 0 to 1"
    for rank in each:
        if not (_is_number(rank) and 0 <= rank <= 1):
            yield f"{rank!r} is not a rank; a rank is a number from 0 to 1, such as 0.5"
    if not (_is_count(accuracy) and accuracy <= MOST_ACCURATE):
        yield f"{accuracy!r} is not an accuracy; it is a whole number from 1 to {MOST_ACCURATE}"


def _of_top_k(most: Any = 5, tracked: Any = 10_000) -> Iterator[str]:
    if not _is_count(most):
        yield f"{most!r} is not a number of values; it is a whole number from 1 on"
    elif not (_is_count(tracked) and tracked >= most):
        yield f"{tracked!r} values can't be tracked; it is a whole number from {most} on"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


SYNONYMS = {
    "mean": "avg",
    "first_value": "first",
    "last_value": "last",
    "array_agg": "collect_list",
    "any": "bool_or",
    "some": "bool_or",
    "every": "bool_and",
    "percentile_approx": "approx_percentile",
    "stddev": "stddev_samp",
    "variance": "var_samp",
}
BY = {"max_by": "last", "min_by": "first"}  # the value of the first or last row by another value

ORDERED = frozenset({"first", "last", "collect_list"})
KEEPING = ORDERED | {"min", "max", "collect_set", "count_distinct", "mode"}  # the values themselves
_PLAIN = (
    "count sum min max avg approx_sum approx_avg collect_set count_distinct bool_or bool_and "
    "first last collect_list mode median var_pop var_samp stddev_pop stddev_samp "
    "skewness kurtosis"
)
PARAMETERS: dict[str, tuple[int, int]] = {
    **dict.fromkeys(_PLAIN.split(), (0, 0)),
    "approx_count_distinct": (0, 1),
    "approx_percentile": (1, 2),
    "percentile": (1, 1),
    "approx_top_k": (0, 2),
}
INSTEAD = {"count_if": "count(*) FILTER (WHERE x > 1)", "percentile_cont": "percentile(x, 0.5)"}
ACCEPTED = sorted({*PARAMETERS, *SYNONYMS, *BY})
_OWN = "python"  # placeholder for a user's aggregator class while its call is parsed
PYTHON = re.compile(r"\s*([A-Za-z_][\w.]*:[A-Za-z_]\w*)\s*(?:\((.*)\))?\s*", re.DOTALL)


@dataclass(frozen=True)
class AggregateParts:
    """Checked trees of an aggregate."""

    function: str
    argument: syntax.Tree | None = None
    order_by: tuple[syntax.Tree, ...] = ()
    filter: syntax.Tree | None = None
    parameters: tuple[Any, ...] = ()


def read_aggregate(text: str) -> AggregateParts:
    """Parse the parts of an aggregate's text; ValueError names the mistake."""
    python = PYTHON.fullmatch(text)
    if python:
        parts = _read_call(f"{_OWN}({python[2] or ''})")
        if parts.order_by:
            raise ValueError(f"{python[1]} gets its values in any order; drop its ORDER BY")
        return replace(parts, function=python[1])
    parts = _read_call(text)
    _check_parts(parts, text)
    return parts


def _read_call(text: str) -> AggregateParts:
    tree = syntax.parse_as(text, None)
    where = None
    if isinstance(tree, exp.Filter):
        where = tree.expression.this
        syntax.check(where)
        tree = tree.this
    if isinstance(tree, exp.IgnoreNulls):
        tree, where = tree.this, _both(where, _has_value(tree.this, text))
    name, arguments = _call(tree, text)
    parts = _read_arguments(name, arguments)
    return replace(parts, filter=_both(parts.filter, where))


def _has_value(call: syntax.Tree, text: str) -> syntax.Tree:
    """Return the condition of `first(x) IGNORE NULLS`: x is not null."""
    name, arguments = _call(call, text)
    if name not in ("first", "last") or not arguments:
        raise ValueError(f"{name} has no IGNORE NULLS; first and last have")
    value = syntax.render(_unwrap(arguments[0], name)[0])
    return syntax.parse_as(f"({value}) IS NOT NULL", None)


def _call(tree: syntax.Tree, text: str) -> tuple[str, list[syntax.Tree]]:
    if isinstance(tree, exp.Any):
        return "bool_or", [tree.this.unnest()]
    if isinstance(tree, exp.Anonymous):
        return SYNONYMS.get(tree.name.lower(), tree.name.lower()), tree.expressions
    if isinstance(tree, exp.Window):
        raise ValueError(syntax.WHY_NOT[exp.Window])
    _refuse_by_another_name(text.partition("(")[0].strip().lower())
    raise ValueError(
        f"{syntax.shorten(text)!r} is not an aggregate; write e.g. sum(x); "
        f"aggregates are: {', '.join(ACCEPTED)}"
    )


def _refuse_by_another_name(name: str) -> None:
    if instead := INSTEAD.get(name):
        raise ValueError(f"{name} is not an aggregate here; write e.g. {instead}")


def _both(one: syntax.Tree | None, other: syntax.Tree | None) -> syntax.Tree | None:
    if one is None or other is None:
        return one or other
    return syntax.parse_as(f"({syntax.render(one)}) AND ({syntax.render(other)})", None)


def _read_by(name: str, arguments: list[syntax.Tree]) -> AggregateParts:
    """Read the value of the last (or first) row by the second argument, ignoring its nulls."""
    if len(arguments) != 2:
        raise ValueError(f"{name} takes two arguments: a value, and what decides: {name}(a, b)")
    for argument in arguments:
        syntax.check(argument)
    value, by = map(syntax.render, arguments)
    in_order = syntax.parse_as(f"{BY[name]}({value} ORDER BY {by})", None)
    has_one = syntax.parse_as(f"({by}) IS NOT NULL", None)
    return replace(_read_arguments(*_call(in_order, value)), filter=has_one)


def _read_arguments(name: str, arguments: list[syntax.Tree]) -> AggregateParts:
    if name in BY:
        return _read_by(name, arguments)
    if name == "count" and len(arguments) == 1 and isinstance(arguments[0], exp.Star):
        return AggregateParts(name)
    if not arguments:
        return AggregateParts(name)
    argument, order_by, name = _unwrap(arguments[0], name)
    syntax.check(argument)
    return AggregateParts(name, argument, order_by, parameters=tuple(map(_constant, arguments[1:])))


def _unwrap(argument: syntax.Tree, name: str) -> tuple[syntax.Tree, tuple[syntax.Tree, ...], str]:
    order_by: tuple[syntax.Tree, ...] = ()
    if isinstance(argument, exp.Order):
        order_by, argument = tuple(argument.expressions), argument.this
    if not isinstance(argument, exp.Distinct):
        return argument, order_by, name
    if len(argument.expressions) != 1:
        raise ValueError("DISTINCT takes one expression; combine several by struct(a, b)")
    same = {"count": "count_distinct", "collect_list": "collect_set", "min": "min", "max": "max"}
    if name == _OWN:
        raise ValueError("DISTINCT does not go with an aggregator of your own: drop it")
    if name not in same:
        raise ValueError(
            f"{name}(DISTINCT ...) is not supported; DISTINCT goes with count and collect_list"
        )
    return argument.expressions[0], order_by, same[name]


def _constant(node: syntax.Tree) -> Any:
    if isinstance(node, exp.Anonymous) and node.name.lower() == "array":
        return tuple(map(_constant, node.expressions))
    if isinstance(node, exp.Neg):
        return -_constant(node.this)
    if isinstance(node, exp.Boolean):
        return node.this
    if not isinstance(node, exp.Literal):
        raise ValueError(f"{syntax.render(node)!r}: an aggregate's parameters are constants")
    if node.is_string:
        return node.name
    return int(node.name) if node.name.isdigit() else float(node.name)


def _check_parts(parts: AggregateParts, text: str) -> None:
    if parts.function not in PARAMETERS:
        _refuse_by_another_name(parts.function)
        raise ValueError(unknown("aggregate", parts.function, ACCEPTED))
    if parts.argument is None and (parts.function != "count" or "*" not in text):
        raise ValueError(f"{parts.function} needs an argument")
    if parts.order_by and parts.function not in ORDERED:
        raise ValueError(f"{parts.function} does not depend on an order; drop its ORDER BY")
    least, most = PARAMETERS[parts.function]
    if not least <= len(parts.parameters) <= most:
        wanted = f"{least}" if least == most else f"{least} to {most}"
        noun = "parameter" if wanted == "1" else "parameters"
        raise ValueError(f"{parts.function} takes {wanted} {noun} after its argument")
    if problem := parameter_problem(parts.function, parts.parameters):
        raise ValueError(problem)
