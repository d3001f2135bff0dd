"""Compare tables with a recompute at the versions that they reflect: `verify.py VIEW...`."""

from collections.abc import Iterator

from sluice.cli.job import Job, command
from sluice.declare.table import Table
from sluice.errors import Differs
from sluice.operate.verify import Verification, verify
from sluice.spark.session import Spark
from sluice.terminal.program import run


def step(job: Job, spark: Spark, table: Table) -> Iterator[Verification]:
    """Verify a view and its internal tables. Raises Differs at the first faulty one."""
    for verdict in verify(spark, job.project, table):
        if not verdict.is_equal:
            raise Differs(
                f"{verdict.table} differs from its query at version {verdict.version}: "
                f"{verdict.missing} rows missing, {verdict.extra} extra, {verdict.different} wrong",
                hint=f"`sluice verify {table.id}` shows them; keep that, then `sluice rebuild "
                f"{table.id}`",
            )
        if verdict.faults:
            raise Differs(
                f"{verdict.table} at version {verdict.version}: {verdict.faults[0]}",
                hint=f"`sluice verify {table.id}` shows all; keep that, then `sluice rebuild "
                f"{table.id}`",
            )
        yield verdict


main = command(step, keeps_failures=False)

if __name__ == "__main__":
    run(main)
