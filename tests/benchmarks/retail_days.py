"""Days of the retail pipeline in one process, each with all tables: the mean seconds of a day.

python -m tests.benchmarks.retail_days FIRST_DAY DAYS [--source NAME]

The first day, which also starts whatever is needed, is not counted. With `--source`, only that
source's intervals are delivered.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial

from sluice.declare.project import Project, load
from sluice.engine.advance import Run
from sluice.language.interval import Interval, parse_time
from sluice.operate import run as runs
from sluice.operate.run import deliver, run
from sluice.operate.workers import Process, forked
from sluice.spark.session import Spark, with_spark

DAY = timedelta(days=1)


def main() -> None:
    """Run or deliver the days, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("first")
    parser.add_argument("days", type=int)
    parser.add_argument("--source", help="deliver only this source's intervals")
    asked = parser.parse_args()
    print(days(asked.first, asked.days, source=asked.source))


def days(
    first: str, count: int, begun: Callable[[], object] = bool, source: str | None = None
) -> float:
    """Return the mean seconds of a day. `begun`: called when the first day is done."""
    project, start = load("config"), parse_time(first, "UTC")
    starts = [start + number * DAY for number in range(count + 1)]
    every = [Interval(start, start + DAY) for start in starts]

    runs.ROUND_INTERVALS = 1
    tables = [] if source else project.graph.pipeline("retail")

    def work(spark: Spark) -> float:
        take = partial(_deliver, name=source) if source else partial(_run, processes=processes)
        take(spark, project, every[:1])
        begun()
        began = time.monotonic()
        take(spark, project, every[1:])
        return (time.monotonic() - began) / count

    with forked(project, tables) as processes:
        return with_spark(project.spark, work)


def _run(
    spark: Spark, project: Project, days: Sequence[Interval], processes: Sequence[Process]
) -> None:
    run(spark, project, project.pipelines["retail"], days, processes=processes)


def _deliver(spark: Spark, project: Project, days: Sequence[Interval], name: str) -> None:
    for day in days:
        list(deliver(spark, project, project.graph.table(name), Run("benchmark"), [day]))


if __name__ == "__main__":
    main()
