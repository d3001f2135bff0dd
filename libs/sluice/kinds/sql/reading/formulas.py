"""Aggregates that are formulas of those of a cogroup: `corr`, `regr_slope`, `listagg`, `bit_or`.

Those of pairs take the rows that have both values. A covariance is the difference of two variances,
which are kept exactly. With a single value of x or y there is no line, and its slope is null.
"""

from collections.abc import Mapping

from sqlglot import exp

from sluice.kinds.sql.reading.trees import Refused, sql, substituted
from sluice.language import syntax
from sluice.language.functions import AGGREGATES
from sluice.language.syntax import Tree

_COVARIANCE = "(var_pop(a + b) - var_pop(a - b)) / 4"
_SLOPE = f"CASE WHEN min(xs) < max(xs) THEN {_COVARIANCE} / var_pop(xs) END"
_IS_LINE = "min(xs) < max(xs) AND min(ys) < max(ys)"
_CORRELATION = f"{_COVARIANCE} / (stddev_pop(xs) * stddev_pop(ys))"
# a, b: the two arguments; xs, ys: b and a of the rows that have both
_OF_PAIRS: Mapping[str, str] = {
    "covar_pop": _COVARIANCE,
    "covar_samp": "(var_samp(a + b) - var_samp(a - b)) / 4",
    "corr": f"CASE WHEN {_IS_LINE} THEN {_CORRELATION} END",
    "regr_count": "count(a + b)",
    "regr_avgx": "avg(xs)",
    "regr_avgy": "avg(ys)",
    "regr_sxx": "var_pop(xs) * count(xs)",
    "regr_syy": "var_pop(ys) * count(ys)",
    "regr_sxy": f"{_COVARIANCE} * count(xs)",
    "regr_slope": _SLOPE,
    "regr_intercept": f"avg(ys) - ({_SLOPE}) * avg(xs)",
    "regr_r2": f"CASE WHEN {_IS_LINE} THEN ({_CORRELATION}) * ({_CORRELATION}) "
    "WHEN min(xs) < max(xs) THEN 1.0D END",
}
_OF_BITS: Mapping[str, str] = {
    "bit_and": "aggregate(collect_set(x), get(collect_set(x), 0), (t, e) -> t & e)",
    "bit_or": "aggregate(collect_set(x), get(collect_set(x), 0), (t, e) -> t | e)",
}
_TEXTS = ("listagg", "string_agg")
_LISTED = "CASE WHEN count(x) > 0 THEN array_join(collect_list(s ORDER BY o), d) END"
_LISTED_ONCE = "CASE WHEN count(x) > 0 THEN array_join(sort_array(collect_set(x), up), d) END"
_IN_GROUP = ("percentile_cont", "mode")


def with_formulas(query: Tree) -> None:
    """Put formulas in the place of aggregates; a window function of the same name stays."""
    for call in list(query.find_all(exp.Anonymous)):
        order = call.parent if isinstance(call.parent, exp.WithinGroup) else None
        formula = _formula(call, call.name.lower(), order)
        place = order or call
        where = place.parent if isinstance(place.parent, exp.Filter) else None
        if formula is not None and not isinstance((where or place).parent, exp.Window):
            found = _filtered(formula, where.expression if where else None)
            (where or place).replace(exp.Paren(this=found))


def _formula(call: exp.Anonymous, name: str, order: exp.WithinGroup | None) -> Tree | None:
    if name in _OF_PAIRS and len(call.expressions) == 2:
        return _of_pair(_OF_PAIRS[name], *call.expressions)
    if name in _OF_BITS and len(call.expressions) == 1:
        return _made(_OF_BITS[name], {"x": call.expressions[0]})
    if name in _TEXTS:
        return _listed(call, order)
    if name in _IN_GROUP and order:
        (key,) = order.expression.expressions
        if not key.args.get("desc"):
            plain = "percentile" if name == "percentile_cont" else name
            return exp.Anonymous(this=plain, expressions=[key.this, *call.expressions])
    if order:
        raise Refused(
            call, f"{sql(order)!r} is not supported: percentile_cont and mode sort ascending"
        )
    return None


def _of_pair(text: str, one: Tree, other: Tree) -> Tree:
    a, b = exp.cast(one.copy(), "double"), exp.cast(other.copy(), "double")
    known = [exp.Not(this=exp.Is(this=side.copy(), expression=exp.Null())) for side in (one, other)]
    xs, ys = (
        exp.Case(ifs=[exp.If(this=known[0], true=b)]),
        exp.Case(ifs=[exp.If(this=known[1], true=a)]),
    )
    return _made(text, {"a": a, "b": b, "xs": xs, "ys": ys})


def _listed(call: exp.Anonymous, order: exp.WithinGroup | None) -> Tree:
    first, *rest = call.expressions
    is_distinct = isinstance(first, exp.Distinct)
    if is_distinct:
        first, *rest = first.expressions
    if order is None:
        raise Refused(call, f"{sql(call)!r} depends on the order: add WITHIN GROUP (ORDER BY ...)")
    keys = order.expression.expressions
    text, separator = exp.cast(first.copy(), "string"), rest[0] if rest else exp.Literal.string("")
    if not is_distinct:
        found = _made(_LISTED, {"x": first, "s": text, "d": separator})
        (ordered,) = found.find_all(exp.Order)
        ordered.set("expressions", [key.copy() for key in keys])
        return found
    if len(keys) != 1 or sql(keys[0].this) != sql(first):
        raise Refused(call, f"{sql(call)!r}: distinct strings can only be ordered by themselves")
    up = exp.Boolean(this=not keys[0].args.get("desc"))
    return _made(_LISTED_ONCE, {"x": text, "up": up, "d": separator})


def _made(formula: str, parts: Mapping[str, Tree]) -> Tree:
    return substituted(syntax.parse_as(formula, None), parts)


def _filtered(formula: Tree, where: Tree | None) -> Tree:
    """Return a formula whose aggregates use only the rows that meet a condition."""
    if where is None:
        return formula

    def step(node: Tree) -> Tree:
        if isinstance(node, exp.Anonymous) and node.name.lower() in AGGREGATES:
            return exp.Filter(this=node.copy(), expression=where.copy())
        return node

    return formula.transform(step)
