"""A process that runs what it is asked to, until it is killed.

One JSON object a line in, one answer a line out, behind a mark that nothing else prints. One with a
Spark of its own is started ahead of its test, because a JVM takes seconds.
"""

import json
import os
import sys
import traceback
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.crash.bazaar import loaded
from tests.support.indexing import index_small_tables
from tests.support.tasks import context

from sluice.airflow.blueprint import Task, TaskKind
from sluice.cli.job import JOBS
from sluice.declare.settings import SparkSettings
from sluice.delta.places import failpoint
from sluice.delta.places.failpoint import VARIABLE
from sluice.engine import BatchReport
from sluice.engine.advance import Run
from sluice.language.interval import Interval
from sluice.operate.maintain import maintain
from sluice.operate.rebuild import rebuild
from sluice.operate.run import deliver, run
from sluice.operate.verify import verify
from sluice.spark.session import Spark
from sluice.spark.starting import lasting

if TYPE_CHECKING:
    from sluice.airflow.tasks import ScriptJob

MARK, COLD = "@sluice@ ", "SLUICE_WORKER_COLD"
VIEWS = ("shop.totals", "shop.best")


def answer(**what: Any) -> None:
    print(MARK + json.dumps(what), flush=True)


def perform(spark: Spark, told: dict[str, Any]) -> list[str]:
    """Outcomes of the batches, as `table outcome`."""
    project = loaded(Path(told["config"]))
    spark.settings = project.spark
    shop = project.pipelines["shop"]  # whose days may be empty, as one without a usable row is
    tables = project.graph.tables.values()
    intervals = [Interval.parse(*bounds) for bounds in told["intervals"]]
    reports: list[BatchReport] = []
    match told["what"]:
        case "ingest":
            sales = project.graph.table("sales")
            reports += deliver(spark, project, sales, Run("worker"), [intervals[0]])
        case "maintain":
            return [f"{u.table} {u.done}" for u in maintain(spark, project, tables)]
        case "job":
            try:
                JOBS["advance"]([*VIEWS, "--config", told["config"]])
            except SystemExit as ended:
                return [f"exit {ended.code}"]
        case "task":
            task(Path(told["config"])).execute(context(intervals[0]))
            return ["success"]
        case "redefine":
            for view in map(project.graph.table, told["views"]):
                reports += rebuild(spark, project, view, Run("worker"))
            run(spark, project, shop, intervals, reports.append, allow_empty=True)
        case "verify":
            built = (t for t in tables if t.is_stored)
            verdicts = [v for table in built for v in verify(spark, project, table)]
            return [f"{v.table} differs: {v.differences[:3]}" for v in verdicts if not v.is_equal]
        case _:
            run(spark, project, shop, intervals, reports.append, allow_empty=True)
    return [f"{report.table} {report.outcome}" for report in reports]


def task(config: Path) -> "ScriptJob":
    """Airflow's, that brings the views up to their inputs by a job in its own process."""
    from sluice.airflow.tasks import ScriptJob

    work = Task("advance.best", TaskKind.ADVANCE, "shop", VIEWS)
    return ScriptJob(task_id="advance.best", work=work, config=config)


def main(folder: str) -> None:
    conf = {
        "spark.driver.memory": "512m",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.local.dir": f"{folder}/local",
    }
    index_small_tables()
    spark = Spark(SparkSettings(master="local[2]", conf=conf, drivers=("s3",)))
    if COLD not in os.environ:  # no batch that it is asked for needs Spark
        spark.tune(small=True).range(1).count()
    answer(ready=True)
    for line in sys.stdin:
        told = json.loads(line)
        os.environ[VARIABLE] = told.get("failpoint", "")
        failpoint._passed.clear()
        try:
            with lasting():
                outcomes = perform(spark, told)
            answer(outcomes=outcomes)
        except Exception as error:  # noqa: BLE001
            traceback.print_exc()
            answer(error=type(error).__name__, message=str(error))


def serve(end: Connection, folder: str, environ: Mapping[str, str]) -> None:
    """What such a process does as a fork: its pipes are that end of a connection."""
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    log = os.open("stderr", os.O_WRONLY | os.O_CREAT)
    for to, like in enumerate((end.fileno(), end.fileno(), log)):
        os.dup2(like, to)
    sys.stdin = os.fdopen(0)
    main(folder)


if __name__ == "__main__":
    main(sys.argv[1])
