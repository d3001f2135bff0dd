"""Joins to dimensions."""

from collections.abc import Iterable, Mapping

from sluice.declare.resolution.scope import TableMistakes
from sluice.declare.table import Table
from sluice.declare.text.document import Where
from sluice.language.typed.families import widen_exactly


def joined(names: Iterable[str], inputs: Mapping[Where, Table]) -> dict[str, Table]:
    """Return the dimensions that a list of joins names."""
    return {name: inputs["join", i, "dimension"] for i, name in enumerate(names)}


def check_covers_key(
    dimension: Table, columns: Iterable[str], mistakes: TableMistakes, at: Where
) -> None:
    """Note a join that omits a part of the dimension's key, because rows would multiply."""
    unique = dimension.current_key
    lacking = [column for column in unique if column not in set(columns)]
    if lacking:
        mistakes.add(
            at,
            f"{dimension.name} is unique by {', '.join(unique)}: "
            f"join on {', '.join(lacking)} as well, or rows multiply",
        )


def check_alike(
    text: str, left: str, column: str, right: str, mistakes: TableMistakes, at: Where
) -> None:
    """Note an equality that would round, shift or convert what it compares."""
    if not widen_exactly(left, right):
        mistakes.add(
            at,
            f"{text!r} is {left} and {column} is {right}, which are not the same values; "
            f"write cast({text} as {right})",
        )
