"""Show what a run would do, and commit nothing: `preview.py TABLE... --start T --end T`.

The tables are taken in that order, each by the step that a run takes.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from sluice.cli.job import Job, Report, command_of
from sluice.cli.jobs import advance, ingest
from sluice.declare.table import Table
from sluice.engine.batch_report import BatchReport
from sluice.operate.preview import Previewed, previewing
from sluice.spark.session import Spark
from sluice.terminal.program import run

SAMPLE = 3


def preview(job: Job) -> Iterator[Previewed]:
    """Run the steps in a lake beside the real one. A failing step is shown, and then raised."""
    tables = [job.project.graph.table(name) for name in job.names]
    with previewing(job.project, tables) as beside:
        there, done = replace(job, beside=beside.project), list[Report]()
        try:
            done.extend(there.reports(_step))
        finally:
            there.spark.stop()
            reports = (report for report in done if isinstance(report, BatchReport))
            yield from beside.results(reports, SAMPLE)


def _step(job: Job, spark: Spark, table: Table) -> Iterable[BatchReport]:
    step = advance.step if table.is_view else ingest.step
    return step(job, spark, table)


main = command_of(preview, preview.__doc__, keeps_failures=False)

if __name__ == "__main__":
    run(main)
