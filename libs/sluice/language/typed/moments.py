"""Texts such as 'now' or 'today UTC', for which Spark reads the clock when cast to a time.

The same rows must always give the same result, so such a text is refused there. Elsewhere it is an
ordinary text.
"""

from collections.abc import Callable, Iterator, Sequence

from sqlglot import exp

from sluice.language import syntax
from sluice.language.typed.coercion import UNKNOWN
from sluice.language.typed.families import MOMENTS, family
from sluice.language.typed.inference import branches, compared
from sluice.language.typed.signatures import COMPARING, ONE_TYPE, SIGNATURES
from sluice.language.typed.types import inner_types

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


def reads_clock(node: syntax.Tree, of: TypeOf) -> bool:
    """Return whether a text that the node takes as a time changes with the clock."""
    groups = [parts for parts in _alike(node) if any(_is_moment(part, of) for part in parts)]
    return any(_is_moment(part, of) for part in _times(node, of)) or any(
        _is_time(part, of) for parts in groups for part in parts
    )


def _times(node: syntax.Tree, of: TypeOf) -> Sequence[syntax.Tree]:
    """Return the parts of a node that become times, regardless of the other parts."""
    match node:
        case exp.Cast():
            return [node.this] if family(of(node)) in MOMENTS else []
        case exp.Extract():
            return [node.expression]
        case exp.Anonymous():
            return _arguments(node.name.lower(), node.expressions)
    return []


def _arguments(name: str, given: Sequence[syntax.Tree]) -> Sequence[syntax.Tree]:
    if name in OF_TEXTS:
        return given[:1]
    if name in OF_PARTS:
        return given[1:]
    kinds = SIGNATURES.get((name, len(given)), ())
    return [part for kind, part in zip(kinds, given, strict=False) if kind in TIMES]


def _alike(node: syntax.Tree) -> Iterator[Sequence[syntax.Tree]]:
    """Yield parts of a node that take one common type: times, if one of them is."""
    yield compared(node)
    match node:
        case exp.Sub():
            yield [node.this, node.expression]
        case exp.Anonymous() if node.name.lower() in ALIKE:
            yield node.expressions
        case exp.Case():
            yield branches(node)
        case exp.If() if not isinstance(node.parent, exp.Case):
            yield branches(node)


def _is_time(part: syntax.Tree, of: TypeOf) -> bool:
    """Return whether the part is or may be a time: a column in it is, or its lambda's argument."""
    type_ = of(part)
    if type_ != UNKNOWN:
        return _is_of_times(type_)
    if any(_is_of_times(of(column)) for column in part.find_all(exp.Column)):
        return True
    within = part.find_ancestor(exp.Lambda)
    through = within.parent.iter_expressions() if within and within.parent else ()
    return any(_is_time(given, of) for given in through if given is not within)


def _is_of_times(type_: str) -> bool:
    return family(type_) in MOMENTS or any(map(_is_of_times, inner_types(type_)))


def _is_moment(part: syntax.Tree, of: TypeOf) -> bool:
    """Return whether the part is such a text, or may be one.

    An expression of constants may be one, because only its value would show.
    """
    type_, part = of(part), part.unnest()
    if isinstance(part, exp.Literal):
        return bool(part.is_string and syntax.MOMENT.match(part.name))
    if type_ not in ("STRING", UNKNOWN) or part.find(exp.Column):
        return False
    texts = [text for text in part.find_all(exp.Literal) if text.is_string]
    return any(type_ == "STRING" or syntax.MOMENT.match(text.name) for text in texts)
