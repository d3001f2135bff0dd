"""Sweep: expectations over whole tables (`over: table`), checked on the tables as they are.

Row counts come from the log. Small and simple tables are read by Arrow. Large ones are answered
from statistics, or from the previous result and the changes since. The rest is for a judge with
Spark; without one it is left for a sweep that has one. Nothing is ever stopped, because the data
are already there. Results are kept and reported as warnings.
"""

import datetime as dt
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from sluice.declare.expectation import Expectation
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.position import head
from sluice.delta.notes.note_tables import append_rows, read_rows
from sluice.delta.places.lake_layout import layout
from sluice.gate.counting import arrow_pass
from sluice.gate.outcomes import history, table_comparison
from sluice.gate.outcomes.results import (
    WHOLE,
    ExpectationOutcome,
    Json,
    measure_outcome,
    uniqueness_outcome,
)
from sluice.gate.outcomes.standing import is_whole
from sluice.gate.outcomes.verdict import Verdict
from sluice.gate.rules import freshness
from sluice.gate.rules.measures import Measure
from sluice.gate.rules.suite import COMPILERS
from sluice.gate.rules.uniqueness import Repeats, UniquenessRule
from sluice.report import incremental
from sluice.report.incremental import MEAN, OTHER, STATE, SUM, Earlier, state
from sluice.report.stored import Stored

SUMS = (SUM, MEAN)
# Outcomes that some expectations over batches have for a table at a URI, as of a version.
Judge = Callable[[str, int, Sequence[Expectation]], Sequence[ExpectationOutcome]]


def whole_table(table: Table) -> tuple[Expectation, ...]:
    """Return the expectations over the whole table."""
    return tuple(e for e in table.expect if e.over == "table")


def sweep(
    project: Project,
    table: Table,
    *,
    judge: Judge | None = None,
    run: str = "",
    now: dt.datetime | None = None,
) -> tuple[str, ...]:
    """Return what of the whole table is not as expected, in words. Results are kept.

    Safe to repeat. `judge` answers what is large or not simple; without it, that part is not
    answered.
    """
    expected, now = whole_table(table), now or dt.datetime.now(dt.UTC)
    at = head(layout(project).uri(table.id)) if expected else None
    if at is None:
        return ()
    checks = _Checks(
        project,
        table,
        Stored(table.name, at, project.limits),
        now,
        _kept(project, table),
        bool(judge),
    )
    outcomes = [checks.by_arrow(e) for e in expected]
    if judge and (left := [e for e, o in zip(expected, outcomes, strict=True) if o is None]):
        outcomes += checks.by_judge(left, judge)
    found = tuple(replace(o, says=o.says + WHOLE) for o in outcomes if o)
    rows = checks.stored.snapshot.count()
    verdict = Verdict(table.id, rows, rows, found)
    batch = at.position.batch if at.position else 0
    kept = history.rows(verdict, run=run, batch=batch, checked_at=now)
    append_rows(f"{layout(project).root}/{history.TABLE}", kept)
    return verdict.warnings


def _kept(project: Project, table: Table) -> dict[str, Json]:
    """Return the last result of each expectation over the whole table, by its label."""
    mine = [("pipeline", "=", table.pipeline), ("table", "=", table.name)]
    rows = read_rows(f"{layout(project).root}/{history.TABLE}", mine)
    whole = sorted(filter(is_whole, rows), key=lambda row: row["checked_at"])
    return {row["expectation"]: json.loads(row["result"]) for row in whole}


@dataclass(frozen=True)
class _Checks:
    """One check of one table; `is_full`: large tables are read as well."""

    project: Project
    table: Table
    stored: Stored
    now: dt.datetime
    kept: Mapping[str, Json] = field(default_factory=dict)
    is_full: bool = False

    def by_arrow(self, expectation: Expectation) -> ExpectationOutcome | None:
        """Return the outcome, or None if it needs Spark."""
        if expectation.type in table_comparison.COMPILED:
            return self._compared(expectation)
        fixed = freshness.at(expectation, self.now)
        compiler = COMPILERS.get(fixed.type)
        rule = compiler(fixed) if compiler else None
        outcome = self._answer(rule) if isinstance(rule, Measure | UniquenessRule) else None
        return _as_written(outcome, expectation) if outcome else None

    def by_judge(self, expected: Sequence[Expectation], judge: Judge) -> list[ExpectationOutcome]:
        """Return the outcomes that Arrow has no answer to: the table is judged like a batch."""
        asked = [e for e in expected if e.type not in table_comparison.COMPILED]
        batch = [freshness.at(e, self.now).model_copy(update={"over": "batch"}) for e in asked]
        found = judge(self.stored.at.uri, self.stored.at.version, batch) if batch else ()
        answers = (_as_written(o, e) for e, o in zip(asked, found, strict=True))
        return [_noted(o, {STATE: state(self.stored, None)}) for o in answers]

    def _answer(self, rule: Measure | UniquenessRule) -> ExpectationOutcome | None:
        stored, expectation = self.stored, rule.expectation
        if expectation.type in arrow_pass.ROW_COUNTS and "row_condition" not in expectation.kwargs:
            assert isinstance(rule, Measure)
            return measure_outcome(rule, stored.snapshot.count())
        if not arrow_pass.is_simple(expectation, stored.types):
            return None
        return self._measured(rule) if isinstance(rule, Measure) else self._grouped(rule)

    def _measured(self, rule: Measure) -> ExpectationOutcome | None:
        type_, column = rule.expectation.type, str(rule.expectation.kwargs.get("column"))
        if type_ not in arrow_pass.NUMBERS:
            return None
        if self.stored.is_small:
            observed = arrow_pass.number(rule, self.stored.rows([column]))
            return measure_outcome(rule, observed)
        summed = self._total(self.stored, column, rule.expectation) if type_ in SUMS else None
        observed = incremental.number(type_, column, self.stored, summed)
        if observed is None:
            return None
        return _noted(measure_outcome(rule, observed), {STATE: state(self.stored, summed)})

    def _grouped(self, rule: UniquenessRule) -> ExpectationOutcome | None:
        stored = self.stored
        if not arrow_pass.is_a_simple_key(rule, stored.types):
            return None
        if stored.is_small:
            found = arrow_pass.repeats(rule, stored.rows(rule.columns))
        elif self.is_full or not (since := self._since(rule, stored)):
            return None
        else:
            found = since
        return _noted(uniqueness_outcome(rule, found), {STATE: state(stored, None)})

    def _since(self, rule: UniquenessRule, stored: Stored) -> Repeats | None:
        earlier = Earlier.of(self.kept.get(rule.expectation.label))
        return incremental.repeats(rule, stored, earlier) if rule.is_about_rows else None

    def _total(
        self, of: Stored, column: str, expectation: Expectation, which: str = STATE
    ) -> Decimal | None:
        """Return a sum: computed in a small table or full check, else from the previous sum."""
        if of.is_small or self.is_full:
            return Decimal(of.sum(column) or 0)
        return incremental.total(of, column, Earlier.of(self.kept.get(expectation.label), which))

    def _compared(self, expectation: Expectation) -> ExpectationOutcome | None:
        """Compare with the other table, at the version that this one reflects."""
        other = self._other(str(expectation.kwargs["other_table_name"]))
        if other is None:
            return None
        if expectation.type == table_comparison.ROW_COUNT:
            counts = (stored.snapshot.count() for stored in (self.stored, other))
            return table_comparison.compared(expectation, *counts)
        columns = str(expectation.kwargs["column"]), table_comparison.other_column(expectation)
        mine = self._total(self.stored, columns[0], expectation)
        others = self._total(other, columns[1], expectation, OTHER)
        if mine is None or others is None:
            return None
        states = {STATE: state(self.stored, mine), OTHER: state(other, others)}
        return _noted(table_comparison.compared(expectation, mine, others), states)

    def _other(self, name: str) -> Stored | None:
        other = self.project.graph.table(self.table.reference(name))
        at = head(layout(self.project).uri(other.id))
        if at is None:
            return None
        reflected = replace(at, version=self._reflected(other.id, at.version))
        return Stored(other.name, reflected, self.project.limits)

    def _reflected(self, table_id: str, newest: int) -> int:
        position = self.stored.at.position
        if position is None:
            return newest
        read = position.inputs.get(table_id)
        return read.version if read else position.frontier.get(table_id, newest)


def _as_written(outcome: ExpectationOutcome, expectation: Expectation) -> ExpectationOutcome:
    """Return an outcome in its expectation's own words, in which `now` is no fixed time."""
    compiler = COMPILERS.get(expectation.type)
    rule = compiler(expectation) if compiler else None
    says = rule.says if isinstance(rule, Measure | UniquenessRule) else outcome.says
    return replace(outcome, expectation=expectation, says=says)


def _noted(outcome: ExpectationOutcome, states: Json) -> ExpectationOutcome:
    """Return the outcome with the state from which the next check continues."""
    meta = {**outcome.result.get("meta", {}), **states}
    return replace(outcome, result={**outcome.result, "meta": meta})
