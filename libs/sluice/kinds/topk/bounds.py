"""Ranks that a condition in a top-k's SQL keeps, and refusal of other SQL."""

from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from sluice.language import syntax

FORM = (
    "write SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY p ORDER BY s DESC) AS rank "
    "FROM input) WHERE rank <= 10"
)


@dataclass(frozen=True)
class RankRange:
    """Ranks to keep: first to last, or up to a column of the row."""

    first: int
    last: int | str

    @property
    def limit(self) -> int | str:
        if isinstance(self.last, str) and self.first > 1:
            raise refused("a first rank together with a limit from a column")
        return self.last if isinstance(self.last, str) else self.last - self.first + 1


def refused(part: str) -> ValueError:
    """Return the error for a part of SQL that no top-k supports."""
    return ValueError(f"{part} is not supported in a top-k's sql; {FORM}")


def bounds_of(condition: syntax.Tree, rank: str | None) -> RankRange:
    """Return the ranks that a condition keeps."""
    parts = list(condition.flatten()) if isinstance(condition, exp.And) else [condition]
    bounds = [_bound(part.unnest(), rank) for part in parts]
    first = max(1, *(low for low, _ in bounds))
    uppers = [high for _, high in bounds if high is not None]
    if len(uppers) != 1:
        raise refused("a ranking without exactly one upper bound")
    if isinstance(uppers[0], int) and uppers[0] < first:
        raise refused("a range of ranks that is empty")
    return RankRange(first, uppers[0])


def _bound(  # noqa: PLR0911 - one per comparison
    part: syntax.Tree, rank: str | None
) -> tuple[int, int | str | None]:
    text = f"the condition {syntax.render(part)}"
    if not is_rank(part.this, rank):
        raise refused(text)
    match part:
        case exp.Between():
            return _number(part.args["low"], text), _number(part.args["high"], text)
        case exp.EQ():
            return (_number(part.expression, text),) * 2
        case exp.LTE() if isinstance(part.expression, exp.Column):
            return 1, part.expression.name
        case exp.LTE():
            return 1, _number(part.expression, text)
        case exp.LT():
            return 1, _number(part.expression, text) - 1
        case exp.GTE():
            return _number(part.expression, text), None
        case exp.GT():
            return _number(part.expression, text) + 1, None
    raise refused(text)


def is_rank(tree: Any, rank: str | None) -> bool:
    """Return whether the tree is the rank: its column, or the ranking function itself."""
    if isinstance(tree, exp.Window):
        return True
    return isinstance(tree, exp.Column) and tree.name == rank and not tree.table


def _number(tree: syntax.Tree, text: str) -> int:
    if not isinstance(tree, exp.Literal) or not tree.is_int:
        raise refused(text)
    return int(tree.name)
