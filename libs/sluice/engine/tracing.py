"""Explanation of a row or its absence: the input rows behind it, or the conditions that it fails.

A row comes from the prepared rows of its group, unless its kind says which of them. Input rows are
numbered by NTH, which `prepare` passes on.

Each condition can be left out of a declaration. So the table can be computed with only some of
them, and the first condition that a row fails is the reason for its absence. `where` and `having`
are found at any place in a declaration; a column of such a name is none. A kind may name further
conditions, and rows without a match.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

from pyspark.sql import DataFrame

from sluice.declare.table_spec import TableSpec
from sluice.engine.operator import InputRows, Operator
from sluice.language import Model
from sluice.language.expression import Expression

NTH = "_sluice_walked"  # tables may have their own `_sluice_nth`


@dataclass(frozen=True)
class Groups:
    """Output `rows`, the prepared input rows of their groups, and all rows of the references."""

    rows: DataFrame
    prepared: InputRows
    references: InputRows


@runtime_checkable
class Lineage(Protocol):
    """Kind whose rows come from some of their groups' rows."""

    def trace_rows(self, operator: Operator, groups: Groups) -> InputRows:
        """Return, by table, the rows with NTH that the output rows come from."""


Path = tuple[Any, ...]
FIELDS = ("where", "having")  # in the order of evaluation


@dataclass(frozen=True)
class Condition:
    """One condition; `without` leaves it out. `ranks`: rows that pass keep others out.

    These are shown in the order of the column `rank`, if the table has one.
    """

    text: str
    without: Callable[[Any], TableSpec]
    ranks: bool = False
    rank: str | None = None


@dataclass(frozen=True)
class Unmatched:
    """Rows that `table` would need for a match, by their columns there. `on`: the condition.

    With `is_excluded`, these rows exist, and exclude their matches.
    """

    table: str
    on: str
    rows: DataFrame
    is_excluded: bool = False


@runtime_checkable
class Absence(Protocol):
    """Kind whose rows may lack more than `where` and `having`."""

    def list_conditions(self, spec: Any, found: Sequence[Condition]) -> Sequence[Condition]:
        """Return all conditions in their order, given those that are `where` and `having`."""

    def find_unmatched(
        self, operator: Operator, wanted: InputRows, prepared: InputRows, references: InputRows
    ) -> Iterator[Unmatched]:
        """Yield what `wanted` rows lack; `prepared` are all rows of the inputs."""


def conditions(spec: TableSpec) -> list[Condition]:
    """Return every `where`, then every `having`."""
    found = sorted(_within(spec, ()), key=lambda one: FIELDS.index(one[0][-1]))
    return [
        Condition(f"{_show_place(spec, path)}: {expression.text}", partial(_without, path=path))
        for path, expression in found
    ]


def _within(value: Any, path: Path) -> Iterator[tuple[Path, Expression]]:
    """Yield the place and the text of each condition in a declaration."""
    if isinstance(value, Model):
        for name in type(value).model_fields:
            field = getattr(value, name)
            if name in FIELDS and isinstance(field, Expression):
                yield (*path, name), field
            yield from _within(field, (*path, name))
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _within(inner, (*path, name))
    elif isinstance(value, tuple):
        for nth, inner in enumerate(value):
            yield from _within(inner, (*path, nth))


def _without(value: Any, path: Path) -> Any:
    """Return a declaration without the part at that place."""
    if not path:
        return None
    first, rest = path[0], path[1:]
    if isinstance(value, Model):
        return value.model_copy(update={first: _without(getattr(value, first), rest)})
    if isinstance(value, dict):
        return {**value, first: _without(value[first], rest)}
    return (*value[:first], _without(value[first], rest), *value[first + 1 :])


def _show_place(value: Any, path: Path) -> str:
    """Return a place as in YAML."""
    keys = []
    for step in path:
        keys.append(type(value).key_of(step) if isinstance(value, Model) else str(step))
        value = getattr(value, step) if isinstance(value, Model) else value[step]
    return ".".join(keys)
