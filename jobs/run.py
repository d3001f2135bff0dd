"""Does a whole run of a pipeline in one application: `run.py PIPELINE [--start T --end T]`.

Sources first, where a time is given; then dimensions; then every view.
"""

import sys
from collections.abc import Iterator

from sluice.cli.job import Job, run_job
from sluice.runtime.batch import Run, advance
from sluice.runtime.ingest import ingest
from sluice.runtime.load import load
from sluice.runtime.report import BatchReport


def work(job: Job) -> Iterator[BatchReport]:
    """Every table of the pipeline, in the order of the graph."""
    pipeline = job.names[0]
    tables = job.project.graph.pipeline(pipeline)
    for interval in job.intervals(pipeline):
        for table in (t for t in tables if t.kind == "source"):
            yield from ingest(job.spark, job.project, table, interval, job.run)
    pins = dict(job.run.pins)
    for table in (t for t in tables if t.kind == "dimension"):
        reports = load(job.spark, job.project, table, job.run)
        pins[table.id] = reports[-1].version or 0
        yield from reports
    for table in (t for t in tables if t.is_view):
        yield from advance(job.spark, job.project, table, Run(job.run.id, pins))


if __name__ == "__main__":
    sys.exit(run_job(work))
