"""The gate that every batch passes before it is committed.

    gate = Gate("retail.transactions", source.expect)
    batch = gate.split(parsed).cache()      # adds `_sluice_reasons`; empty: the row is accepted
    verdict = gate.check(batch)             # one Spark job (one more if uniqueness is expected)
    verdict.enforce()                       # QualityStop if an expectation marked `stop` failed
    accepted_rows(batch)                    # the rows to commit

The batch is a DataFrame of parsed rows. A reader marks rows that it could not use in the columns
that `declare.declared` names, such as REASON. No row is lost: `check` asserts that read = accepted
+ quarantined.
"""

from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sluice.declare.declared import CUT, FILE, KEPT, RAW, REASON, UNDATED
from sluice.declare.table_spec import Expectation
from sluice.gate import engine
from sluice.gate.counting.counts import CONFLICT, Tally
from sluice.gate.counting.tally import ACCEPTED, REASONS, find_repeats, is_judged, tally, visible
from sluice.gate.outcomes.results import (
    ExpectationOutcome,
    Verdict,
    measure_outcome,
    row_outcome,
    uniqueness_outcome,
)
from sluice.gate.rules.row_rules import EVERY_ROW, RowRule
from sluice.gate.rules.sql import text
from sluice.gate.rules.suite import Suite, build_suite
from sluice.interpreter.refusals import leave_to_spark

OWN = (REASON, REASONS, RAW, KEPT, FILE, CUT, UNDATED, CONFLICT)
REASON_TYPE = "ARRAY<STRUCT<expectation: STRING, reason: STRING>>"
NO_REASONS = f"CAST(array() AS {REASON_TYPE})"


@dataclass(frozen=True)
class Gate:
    """Expectations of a table, ready to judge batches.

    With a `key` (empty if there is none) the batch's rows are counted in the same pass.
    """

    table: str
    expectations: tuple[Expectation, ...] = ()
    key: tuple[str, ...] | None = None

    @cached_property
    def suite(self) -> Suite:
        return build_suite(self.table, self.expectations)

    @property
    def fits(self) -> str:
        """SQL that is true if a row breaks none of the quarantine rules. Never null."""
        good = [f"NOT {rule.violated}" for rule in self.suite.quarantine]
        return " AND ".join(good) or EVERY_ROW

    def split(self, parsed: DataFrame) -> DataFrame:
        """Return `parsed` with `_sluice_reasons`, an array of (expectation, reason). Lazy."""
        broken = ", ".join(_reason(rule) for rule in self.suite.quarantine)
        by_rules = f"CAST(array_compact(array({broken})) AS {REASON_TYPE})"
        by_reader = f"array(named_struct('expectation', NULL, 'reason', {REASON}))"
        has_reasons = REASON in parsed.columns  # a reader says why it could not use a row
        marked = parsed if has_reasons else parsed.withColumn(REASON, F.lit(None).cast("string"))
        if judges := is_judged(parsed):
            by_rules = f"CASE WHEN {judges} THEN {by_rules} ELSE {NO_REASONS} END"
        usable = f"CASE WHEN {REASON} IS NULL THEN {by_rules} ELSE {by_reader} END"
        split = marked.withColumn(REASONS, F.expr(f"CAST({usable} AS {REASON_TYPE})"))
        if KEPT not in split.columns:
            return split
        return split.withColumn(KEPT, F.expr(f"CASE WHEN NOT {ACCEPTED} THEN {KEPT} END"))

    def check(self, split: DataFrame) -> Verdict:
        """Return the verdict on a split batch. Cache the batch: several jobs may read it."""
        tallied = tally(split, self.suite, self.key)
        found = [*self._judge_compiled(tallied), *self._judge_grouped(split)]
        found += self._others(split)
        order = {id(e): nth for nth, e in enumerate(self.expectations)}
        outcomes = tuple(sorted(found, key=lambda o: order[id(o.expectation)]))
        return Verdict(
            self.table,
            tallied.read,
            tallied.accepted,
            outcomes,
            tallied.counts,
            bytes_quarantined=tallied.bytes_quarantined,
            conflicts=tallied.conflicts,
            cut=tallied.cut,
            undated=tallied.undated,
        )

    def _others(self, split: DataFrame) -> tuple[ExpectationOutcome, ...]:
        if self.suite.others:
            leave_to_spark(split, "an expectation that only Great Expectations can evaluate")
        rows = split.filter(ACCEPTED).select(*(f"`{c}`" for c in visible(split)))
        return engine.validate(rows, self.suite.others)

    def _judge_compiled(self, counts: Tally) -> list[ExpectationOutcome]:
        rows = [row_outcome(*pair) for pair in zip(self.suite.rows, counts.rows, strict=True)]
        measured = zip(self.suite.measures, counts.observed, strict=True)
        return [*rows, *(measure_outcome(*pair) for pair in measured)]

    def _judge_grouped(self, split: DataFrame) -> list[ExpectationOutcome]:
        rules = self.suite.uniqueness
        found = find_repeats(accepted_rows(split), rules) if rules else ()
        return [uniqueness_outcome(*pair) for pair in zip(rules, found, strict=True)]


def accepted_rows(split: DataFrame) -> DataFrame:
    """Return the accepted rows of a split batch, without the columns that reader and gate add."""
    return split.filter(ACCEPTED).drop(*OWN)


def _reason(rule: RowRule) -> str:
    label, says = text(rule.expectation.label), text(f"expected that {rule.test.says}")
    return (
        f"CASE WHEN {rule.violated} THEN named_struct('expectation', {label}, 'reason', {says}) END"
    )
