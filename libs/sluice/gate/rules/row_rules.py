"""Row rules: expectations about single rows, each a test and the rows that it is about.

A rule never looks beyond its row. So the same text can move rows to quarantine, count them, and be
printed by a plan. The rules listed in `COMPILED` are those that `quarantine` accepts.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sluice.declare.expectation import Expectation
from sluice.gate.rules.column_relations import RELATIONS
from sluice.gate.rules.row_tests import SINGLE, Kwargs, RowTest
from sluice.language.expression import Expression

EVERY_ROW = "true"
COMPILED: Mapping[str, Callable[[Kwargs], RowTest]] = {**SINGLE, **RELATIONS}


@dataclass(frozen=True)
class RowRule:
    """An expectation with its conditions as SQL text."""

    expectation: Expectation
    test: RowTest
    domain: str

    @property
    def considered(self) -> str:
        ignored = self.test.ignored
        return self.domain if ignored is None else f"({self.domain}) AND NOT ({ignored})"

    @property
    def violated(self) -> str:
        """SQL that is true for an unexpected row, false for any other; never null."""
        return f"coalesce({self.considered} AND NOT ({self.test.holds}), false)"


def compile_row_rule(expectation: Expectation) -> RowRule:
    """Return the rule of an expectation whose type is in `COMPILED`."""
    kwargs = expectation.kwargs
    return RowRule(expectation, COMPILED[expectation.type](kwargs), domain(kwargs))


def domain(kwargs: Kwargs) -> str:
    """Return the condition on rows that an expectation is about."""
    condition = kwargs.get("row_condition")
    return f"({Expression.parse(str(condition)).sql})" if condition else EVERY_ROW
