"""The full look at a whole table, with Spark for what is large: a part of its upkeep."""

from collections.abc import Sequence

from sluice.quality.gate import Gate
from sluice.quality.results import Outcome
from sluice.reporting.sweep import sweep as sweep_table
from sluice.runtime.session import Spark
from sluice.specs.project import Project
from sluice.specs.quality import Expectation
from sluice.specs.table import Table
from sluice.storage.table import snapshot


def sweep(spark: Spark, project: Project, table: Table, run: str = "") -> tuple[str, ...]:
    """What of the whole table is not as expected, in words. Safe to repeat.

    Spark is started only if something is expected that takes it.
    """

    def judge(uri: str, version: int, expected: Sequence[Expectation]) -> Sequence[Outcome]:
        rows = snapshot(spark.tune(small=False), uri, version)
        gate = Gate(table.id, tuple(expected))
        return gate.check(gate.split(rows.select(*table.columns))).outcomes

    return sweep_table(project, table, judge=judge, run=run)
