"""Texts that Spark reads the clock for, as 'now' or 'today UTC', where they become a time.

The same rows must always give the same result, so such a text is refused there; elsewhere it is a
text like any other.
"""

from collections.abc import Callable, Sequence

from sqlglot import exp

from sluice.specs import syntax
from sluice.specs.coercion import UNKNOWN, element
from sluice.specs.families import MOMENTS, family
from sluice.specs.inference import branches
from sluice.specs.signatures import COMPARING, ONE_TYPE, SIGNATURES

TypeOf = Callable[[syntax.Tree], str]
TIMES = frozenset({"time", "part", "date", "timestamp"})  # kinds of arguments
OF_TEXTS = frozenset(
    {
        *("date", "timestamp", "to_date", "to_timestamp", "to_timestamp_ltz", "to_timestamp_ntz"),
        *("try_to_date", "try_to_timestamp"),
    }
)
OF_PARTS = frozenset({"date_part", "datepart"})
ALIKE = ONE_TYPE | COMPARING | {"if", "nvl2", "sequence"}
COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.Sub)


def reads_clock(node: syntax.Tree, of: TypeOf) -> bool:
    """Whether a text that the node takes for a time is one that changes with the clock."""
    return any(_is_moment(part, of(part)) for part in _times(node, of))


def _times(node: syntax.Tree, of: TypeOf) -> Sequence[syntax.Tree]:  # noqa: PLR0911 - one per kind
    """The parts of a node that become times."""
    match node:
        case exp.Cast():
            return [node.this] if family(of(node)) in MOMENTS else []
        case exp.Extract():
            return [node.expression]
        case exp.Anonymous():
            return _arguments(node, of)
        case exp.In():
            return _alike([node.this, *node.expressions], of)
        case exp.Between():
            return _alike([node.this, node.args["low"], node.args["high"]], of)
        case exp.Case():
            values = [branch.this for branch in node.args["ifs"]] if node.this else []
            compared = _alike([node.this, *values], of) if node.this else []
            return [*compared, *_alike(branches(node), of)]
        case exp.If() if not isinstance(node.parent, exp.Case):
            return _alike(branches(node), of)
    return _alike([node.this, node.expression], of) if isinstance(node, COMPARISONS) else []


def _arguments(node: exp.Anonymous, of: TypeOf) -> Sequence[syntax.Tree]:
    name, given = node.name.lower(), node.expressions
    if name in OF_TEXTS:
        return given[:1]
    if name in OF_PARTS:
        return given[1:]
    if name in ALIKE:
        return _alike(given, of)
    kinds = SIGNATURES.get((name, len(given)), ())
    return [part for kind, part in zip(kinds, given, strict=False) if kind in TIMES]


def _alike(parts: Sequence[syntax.Tree], of: TypeOf) -> Sequence[syntax.Tree]:
    """All of them, if one is a time, or may be one: they become of one type."""
    return parts if any(_is_time(part, of) for part in parts) else []


def _is_time(part: syntax.Tree, of: TypeOf) -> bool:
    type_ = of(part)
    if family(element(type_) or type_) in MOMENTS:
        return True
    return type_ == UNKNOWN and any(
        _is_time(c, of) for c in part.find_all(exp.Column) if c is not part
    )


def _is_moment(part: syntax.Tree, type_: str) -> bool:
    """Of what is put together from constants, only the value would tell."""
    part = part.unnest()
    if isinstance(part, exp.Literal):
        return bool(part.is_string and syntax.MOMENT.match(part.name))
    if type_ not in ("STRING", UNKNOWN) or part.find(exp.Column):
        return False
    texts = [text for text in part.find_all(exp.Literal) if text.is_string]
    return any(type_ == "STRING" or syntax.MOMENT.match(text.name) for text in texts)
