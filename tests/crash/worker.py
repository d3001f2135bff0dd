"""A process with a Spark of its own that runs what it is told, until it is killed.

Started ahead of its test, because a JVM takes seconds. One JSON object a line in, one answer a line
out, behind a mark that nothing else prints.
"""

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from sluice.runtime.batch import Run
from sluice.runtime.ingest import ingest
from sluice.runtime.maintain import maintain
from sluice.runtime.report import BatchReport
from sluice.runtime.run import run
from sluice.runtime.session import Spark
from sluice.runtime.verify import verify
from sluice.specs import load
from sluice.specs.interval import Interval
from sluice.specs.settings import SparkSettings
from sluice.storage import failpoint
from sluice.storage.failpoint import VARIABLE

MARK = "@sluice@ "


def answer(**what: Any) -> None:
    print(MARK + json.dumps(what), flush=True)


def perform(spark: Spark, told: dict[str, Any]) -> list[str]:
    """Outcomes of the batches, as `table outcome`."""
    project = load(Path(told["config"]))
    spark.settings = project.spark
    tables = project.graph.tables.values()
    intervals = [Interval.parse(*bounds) for bounds in told["intervals"]]
    reports: list[BatchReport] = []
    match told["what"]:
        case "ingest":
            sales = project.graph.table("sales")
            reports += ingest(spark, project, sales, intervals[0], Run("worker"))
        case "maintain":
            return [f"{u.table} {u.done}" for u in maintain(spark, project, tables)]
        case "verify":
            built = (t for t in tables if t.is_stored)
            verdicts = [v for table in built for v in verify(spark, project, table)]
            return [f"{v.table} differs: {v.differences[:3]}" for v in verdicts if not v.is_equal]
        case _:
            run(spark, project, project.pipelines["shop"], intervals, on_step=reports.append)
    return [f"{report.table} {report.outcome}" for report in reports]


def main(folder: str) -> None:
    conf = {
        "spark.driver.memory": "512m",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.local.dir": f"{folder}/local",
    }
    spark = Spark(SparkSettings(master="local[2]", conf=conf))
    spark.tune(small=True).range(1).count()
    answer(ready=True)
    for line in sys.stdin:
        told = json.loads(line)
        os.environ[VARIABLE] = told.get("failpoint", "")
        failpoint._passed.clear()
        try:
            answer(outcomes=perform(spark, told))
        except Exception as error:  # noqa: BLE001
            traceback.print_exc()
            answer(error=type(error).__name__, message=str(error))


if __name__ == "__main__":
    main(sys.argv[1])
