"""Equalities of a join's `on`, each between an expression of one side and one of the other."""

from collections.abc import Iterator
from typing import Any

from sqlglot import exp

from sluice.language import syntax
from sluice.language.expression import Expression

JoinEquality = tuple[Expression, Expression] | str
WANTED = "`on: left.a = right.b`"


def read_equalities(data: Any) -> Any:
    """Read `a.x = b.y AND ...`, or a list of such texts and of columns that both sides have.

    Raises ValueError for a part that is not an equality.
    """
    texts = data if isinstance(data, list | tuple) else [data]
    return tuple(each for text in texts for each in _read(text))


def _read(data: Any) -> Iterator[JoinEquality]:
    if isinstance(data, tuple):
        yield data
    elif isinstance(data, str):
        yield from _equalities(data)
    else:
        raise ValueError(f"{data!r} is not an equality; write {WANTED}")


def _equalities(text: str) -> Iterator[JoinEquality]:
    for part in _conjuncts(syntax.parse(text)):
        if isinstance(part, exp.Column) and not part.table:
            yield part.name
        elif isinstance(part, exp.EQ):
            yield _expression(part.this), _expression(part.expression)
        else:
            raise ValueError(
                f"{syntax.render(part)!r} is not an equality: every row might match every other; "
                f"write {WANTED}, and further conditions in `where`"
            )


def _conjuncts(tree: syntax.Tree) -> Iterator[syntax.Tree]:
    inner = tree.unnest()
    if isinstance(inner, exp.And):
        yield from _conjuncts(inner.this)
        yield from _conjuncts(inner.expression)
    else:
        yield inner


def _expression(tree: syntax.Tree) -> Expression:
    inner = tree.unnest()
    return Expression.of(inner, syntax.render(inner))
