"""The gate that every batch passes before it is committed.

    gate = Gate("retail.transactions", source.expect)
    batch = gate.split(parsed).cache()      # adds `_sluice_reasons`; empty: the row is accepted
    verdict = gate.check(batch)             # one Spark job (one more if uniqueness is expected)
    verdict.enforce()                       # QualityStop if an expectation marked `stop` failed
    accepted(batch)                         # the rows to commit
    quarantine.rows(batch, ...)             # the rows that go aside

The batch is a DataFrame of parsed rows. If the reader marks rows that it could not use, it does so
in the columns of `specs.delivered_row`. No row is lost: read = accepted + quarantined, which
`check` asserts.
"""

from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sluice.quality import engine
from sluice.quality.conflicts import CONFLICT
from sluice.quality.counts import Tally
from sluice.quality.grouping import find_repeats
from sluice.quality.results import Outcome, measure_outcome, row_outcome, uniqueness_outcome
from sluice.quality.row_rules import EVERY_ROW, RowRule
from sluice.quality.sql import text
from sluice.quality.suite import Suite, build_suite
from sluice.quality.tally import ACCEPTED, REASONS, tally, visible
from sluice.quality.verdict import Verdict
from sluice.specs.delivered_row import FILE, RAW, REASON
from sluice.specs.quality import Expectation

OWN = (REASON, REASONS, RAW, FILE, CONFLICT)
REASON_TYPE = "ARRAY<STRUCT<expectation: STRING, reason: STRING>>"


@dataclass(frozen=True)
class Gate:
    """A table's expectations, ready to be held against batches.

    With a `key` (empty where there is none) the batch's facts are counted too, in the same pass.
    """

    table: str
    expectations: tuple[Expectation, ...] = ()
    key: tuple[str, ...] | None = None

    @cached_property
    def suite(self) -> Suite:
        return build_suite(self.table, self.expectations)

    @property
    def needs_great_expectations(self) -> bool:
        """Whether `check` imports it: `engine.preload()` hides that behind a session's start."""
        return bool(self.suite.others)

    @property
    def fits(self) -> str:
        """SQL: whether a row breaks none of the rules by which rows go aside. Never null."""
        good = [f"NOT {rule.violated}" for rule in self.suite.quarantine]
        return " AND ".join(good) or EVERY_ROW

    def split(self, parsed: DataFrame) -> DataFrame:
        """`parsed` with `_sluice_reasons`, an array of (expectation, reason); lazy, no job."""
        broken = ", ".join(_reason(rule) for rule in self.suite.quarantine)
        by_rules = f"CAST(array_compact(array({broken})) AS {REASON_TYPE})"
        by_reader = f"array(named_struct('expectation', NULL, 'reason', {REASON}))"
        marked = with_reason(parsed)
        usable = f"CASE WHEN {REASON} IS NULL THEN {by_rules} ELSE {by_reader} END"
        return marked.withColumn(REASONS, F.expr(f"CAST({usable} AS {REASON_TYPE})"))

    def check(self, split: DataFrame) -> Verdict:
        """The verdict on a split batch, which should be cached: several jobs may read it."""
        counts = tally(split, self.suite, self.key)
        found = [*self._compiled(counts), *self._grouped(split)]
        found += self._others(split)
        order = {id(e): nth for nth, e in enumerate(self.expectations)}
        outcomes = tuple(sorted(found, key=lambda o: order[id(o.expectation)]))
        return Verdict(
            self.table,
            counts.read,
            counts.accepted,
            outcomes,
            counts.facts,
            bytes_aside=counts.bytes_aside,
            conflicts=counts.conflicts,
        )

    def _others(self, split: DataFrame) -> tuple[Outcome, ...]:
        rows = split.filter(ACCEPTED).select(*(f"`{c}`" for c in visible(split)))
        return engine.validate(rows, self.suite.others)

    def _compiled(self, counts: Tally) -> list[Outcome]:
        rows = [row_outcome(*pair) for pair in zip(self.suite.rows, counts.rows, strict=True)]
        measured = zip(self.suite.measures, counts.observed, strict=True)
        return [*rows, *(measure_outcome(*pair) for pair in measured)]

    def _grouped(self, split: DataFrame) -> list[Outcome]:
        rules = self.suite.uniqueness
        found = find_repeats(accepted(split), rules) if rules else ()
        return [uniqueness_outcome(*pair) for pair in zip(rules, found, strict=True)]


def accepted(split: DataFrame) -> DataFrame:
    """The accepted rows of a split batch, without the columns that reader and gate add."""
    return split.filter(ACCEPTED).drop(*OWN)


def set_aside(split: DataFrame) -> DataFrame:
    """The other rows of a split batch, with everything known of them."""
    return split.filter(f"NOT ({ACCEPTED})")


def with_reason(parsed: DataFrame) -> DataFrame:
    """`parsed` with the column in which a reader says why it could not use a row."""
    if REASON in parsed.columns:
        return parsed
    return parsed.withColumn(REASON, F.lit(None).cast("string"))


def _reason(rule: RowRule) -> str:
    label, says = text(rule.expectation.label), text(f"expected that {rule.test.says}")
    return (
        f"CASE WHEN {rule.violated} THEN named_struct('expectation', {label}, 'reason', {says}) END"
    )
