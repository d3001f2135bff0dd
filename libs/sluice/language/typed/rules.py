"""Check of the types in an expression, by the rules of Spark in ANSI mode.

A part that Spark would refuse is reported with the types found and those accepted. Unknown types
are never reported, so nothing that Spark accepts is refused.
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise

from sqlglot import exp

from sluice.language import syntax
from sluice.language.expression import Aggregate, Expression
from sluice.language.typed.coercion import NOTHING, UNKNOWN
from sluice.language.typed.families import (
    KINDS,
    are_comparable,
    family,
    fits,
    have_common_type,
    is_orderable,
)
from sluice.language.typed.inference import ColumnTypes, TreeTypes, branches, compared, whole_type
from sluice.language.typed.moments import reads_clock
from sluice.language.typed.operands import (
    AGGREGATES,
    CASTS,
    OPERANDS,
    OPERATORS,
    ORDERED_AGGREGATES,
)
from sluice.language.typed.signatures import COMPARING, ONE_TYPE, SIGNATURES


class RefusedBySpark(str):
    """A problem that Spark has as well, so it can't compute the whole query either."""

    __slots__ = ()


def problems(
    expression: Expression, columns: ColumnTypes, joined: Mapping[str, ColumnTypes]
) -> Iterator[str]:
    """Yield each problem of a checked expression over these columns once."""
    tree = syntax.parse(expression.sql)
    for problem in dict.fromkeys(_Rules(TreeTypes(tree, columns, joined)).of(tree)):
        yield problem if problem.endswith(syntax.CLOCK) else RefusedBySpark(problem)


def aggregate_problem(aggregate: Aggregate, columns: ColumnTypes) -> str:
    """Return why an aggregate can't take its argument; '' if it can."""
    if aggregate.argument is None:
        return ""
    type_ = whole_type(aggregate.argument, columns, {})
    accepted, words = AGGREGATES.get(aggregate.function, (frozenset[str](), ""))
    if aggregate.function in ORDERED_AGGREGATES:
        accepted, words = KINDS["ordered"]
        is_fit = is_orderable(type_)
    else:
        is_fit = not accepted or family(type_) in ("", *accepted)
    if is_fit:
        return ""
    return _refusal(aggregate.text, aggregate.function, words, type_)


def _refusal(text: str, what: str, accepted: str, *found: str) -> str:
    return f"{syntax.shorten(text)!r}: {what} takes {accepted}, not {' and '.join(found)}"


class _Rules:
    def __init__(self, types: TreeTypes) -> None:
        self.types = types

    def of(self, tree: syntax.Tree) -> Iterator[str]:
        for node in tree.walk():
            yield from self._node(node)

    def _node(self, node: syntax.Tree) -> Iterator[str]:
        if reads_clock(node, self.types.of):
            yield f"{syntax.shorten(syntax.render(node))!r}: {syntax.CLOCK}"
        if type(node) in OPERATORS:
            yield from self._operator(node)
        elif type(node) in OPERANDS:
            name, kind, what = OPERANDS[type(node)]
            yield from self._argument(node, node.args[name], kind, what)
        elif isinstance(node, exp.And | exp.Or):
            for side in (node.this, node.expression):
                yield from self._argument(node, side, "boolean", type(node).__name__.upper())
        elif isinstance(node, exp.Anonymous):
            yield from self._call(node)
        else:
            yield from self._comparison(node)

    def _operator(self, node: syntax.Tree) -> Iterator[str]:
        sign, accepted, pairs = OPERATORS[type(node)]
        left, right = self.types.of(node.this), self.types.of(node.expression)
        a, b = family(left), family(right)
        if a and b and not any(a in lefts and b in rights for lefts, rights in pairs):
            yield _refusal(syntax.render(node), sign, accepted, left, right)

    def _argument(
        self, node: syntax.Tree, argument: syntax.Tree, kind: str, what: str
    ) -> Iterator[str]:
        type_ = self.types.of(argument)
        if not fits(type_, kind):
            several = len(list(node.iter_expressions())) > 1
            where = f" ({syntax.render(argument)})" if several else ""
            yield _refusal(syntax.render(node), what, KINDS[kind][1], type_ + where)

    def _call(self, node: exp.Anonymous) -> Iterator[str]:
        name, arguments = node.name.lower(), node.expressions
        for kind, argument in zip(
            SIGNATURES.get((name, len(arguments)), ()), arguments, strict=False
        ):
            yield from self._argument(node, argument, kind, name)
        if name in ONE_TYPE:
            yield from self._one_type(node, arguments)
        elif name in COMPARING:
            yield from self._compared(node, *arguments)
        elif name == "concat":
            yield from self._joined(node, arguments)

    def _comparison(self, node: syntax.Tree) -> Iterator[str]:
        if parts := compared(node):
            yield from self._compared(node, *parts)
        match node:
            case exp.Is() if isinstance(node.expression, exp.Boolean):
                yield from self._argument(node, node.this, "boolean", "IS")
            case exp.Like() | exp.ILike() | exp.RegexpLike():
                for side in (node.this, node.expression):
                    yield from self._argument(node, side, "text", "a pattern")
            case exp.DPipe():
                yield from self._joined(node, [node.this, node.expression])
            case exp.Case():
                yield from self._case(node)
            case exp.If() if not isinstance(node.parent, exp.Case):
                yield from self._argument(node, node.this, "condition", "IF")
                yield from self._one_type(node, branches(node))
            case exp.Cast():
                yield from self._cast(node)

    def _compared(
        self, node: syntax.Tree, first: syntax.Tree, *others: syntax.Tree
    ) -> Iterator[str]:
        left = self.types.of(first)
        for other in others:
            right = self.types.of(other)
            if not are_comparable(left, right):
                text = syntax.shorten(syntax.render(node))
                why = "can't be compared with" if is_orderable(left) else "has no order, unlike"
                yield f"{text!r}: {left} {why} {right}"

    def _one_type(self, node: syntax.Tree, parts: list[syntax.Tree]) -> Iterator[str]:
        found = [type_ for type_ in map(self.types.of, parts) if type_ not in (UNKNOWN, NOTHING)]
        for left, right in pairwise(dict.fromkeys(found)):
            if not have_common_type(left, right):
                text = syntax.shorten(syntax.render(node))
                yield f"{text!r}: its results must be of one type, not {left} and {right}"

    def _joined(self, node: syntax.Tree, parts: list[syntax.Tree]) -> Iterator[str]:
        types = [type_ for type_ in map(self.types.of, parts) if family(type_)]
        families = {family(type_) for type_ in types}
        is_mixed = "array" in families and len(families) > 1
        if is_mixed or families & {"map", "struct"}:
            yield _refusal(
                syntax.render(node), "joining", "texts, or arrays", *dict.fromkeys(types)
            )

    def _case(self, node: exp.Case) -> Iterator[str]:
        for branch in [] if node.this else node.args["ifs"]:
            yield from self._argument(node, branch.this, "condition", "WHEN")
        yield from self._one_type(node, branches(node))

    def _cast(self, node: exp.Cast) -> Iterator[str]:
        found, wanted = self.types.of(node.this), syntax.render(node.args["to"])
        accepted = CASTS.get(family(wanted))
        if accepted and family(found) not in ("", *accepted):
            yield f"{syntax.shorten(syntax.render(node))!r}: {found} can't be cast to {wanted}"
