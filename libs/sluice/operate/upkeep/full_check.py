"""Full check of a whole table, with Spark for large ones: a part of its upkeep."""

from collections.abc import Sequence
from dataclasses import dataclass

from sluice.declare.expectation import Expectation
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.reading.spark_reads import snapshot
from sluice.gate.gate import Gate
from sluice.gate.outcomes.results import ExpectationOutcome
from sluice.report.sweep import sweep as sweep_table
from sluice.report.sweep import whole_table
from sluice.spark.session import Spark


@dataclass(frozen=True)
class Swept:
    """Result of sweeping one table: its expectations of the whole table, and the unmet ones."""

    table: str
    expectations: int
    unmet: tuple[str, ...]


def sweep(spark: Spark, project: Project, table: Table, run: str = "") -> Swept:
    """Check everything that is expected of the whole table. Safe to repeat.

    Spark is started only if an expectation needs it.
    """

    def judge(
        uri: str, version: int, expected: Sequence[Expectation]
    ) -> Sequence[ExpectationOutcome]:
        rows = snapshot(spark.tune(small=False), uri, version, project.limits)
        gate = Gate(table.id, tuple(expected))
        return gate.check(gate.split(rows.select(*table.columns))).outcomes

    unmet = sweep_table(project, table, judge=judge, run=run)
    return Swept(table.id, len(whole_table(table)), unmet)
