"""CPU seconds by phase of a run of retail, in this process, as JSON.

python -m tests.benchmarks.phases FIRST_DAY DAYS

DAYS is 0 for the whole process of `sluice run` of that day. Otherwise as many days are run behind
the first, which is not counted, and the seconds are those of one.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import date, timedelta
from functools import wraps
from importlib import _bootstrap, import_module
from typing import Any

PHASES = {
    "the project is loaded": "sluice.declare.project:load",
    "tables are opened": "deltalake:DeltaTable.__init__ deltalake:DeltaTable.update_incremental",
    "logs and listings are read": "sluice.delta.log.opened:commit_of "
    "sluice.delta.log.files:active_files sluice.delta.reading.landing:list_delivered",
    "batches are planned": "sluice.engine.plan:plan_batch",
    "files are read": "sluice.files.filehead:head_of sluice.files.json:lines_here "
    "sluice.files.csv:cells_here sluice.files.here:parquet_here",
    "tables and feeds are read": "sluice.delta.reading.local:local_snapshot "
    "sluice.delta.reading.local:read_feed sluice.delta.reading.local:read_if_few "
    "sluice.delta.reading.searching:SearchedVersion.find_at_most "
    "sluice.delta.note_tables:read_table",
    "the gate judges": "sluice.gate.gate:Gate.split sluice.gate.gate:Gate.check",
    "commits": "sluice.engine.committing:_local sluice.delta.writing.commit:create",
    "notes, counts and results are kept": "sluice.delta.note_tables:_write "
    "sluice.delta.intervals:record sluice.gate.anomalies:warnings",
    "files are put together": "sluice.engine.advance:tidy sluice.operate.maintain:maintain",
    "the report is written": "sluice.report.publish:publish sluice.cli.progress:summary",
    "deliveries": "sluice.sources.replacement:Replacement.commit",
    "dimensions": "sluice.dimensions.load:load",
}
seconds, running, last = Counter[str](), ["the rest"], time.process_time()


def switch(change: Callable[[], object]) -> None:
    """Give the seconds since the last switch to the phase that runs, then begin or end one."""
    global last  # noqa: PLW0603
    now = time.process_time()
    seconds[running[-1]] += now - last
    last = now
    change()


def timed(work: Callable[..., Any], name: Callable[..., str]) -> Callable[..., Any]:
    @wraps(work)
    def timing(*arguments: Any, **named: Any) -> Any:
        switch(lambda: running.append(name(*arguments)))
        try:
            return work(*arguments, **named)
        finally:
            switch(running.pop)

    return timing


def watch(place: str, name: Callable[..., str]) -> None:
    """Time a function or a method, wherever it was imported to."""
    module, _, path = place.partition(":")
    *owners, attribute = path.split(".")
    owner: Any = import_module(module)
    for part in owners:
        owner = getattr(owner, part)
    work = getattr(owner, attribute)
    timing = timed(work, name)
    setattr(owner, attribute, timing)
    for other in [*sys.modules.values()]:
        for known, value in [*getattr(other, "__dict__", {}).items()]:
            if value is work:
                setattr(other, known, timing)


def main(first: str, days: int) -> None:
    """Run, and print."""
    seconds["Python starts"] = last
    _bootstrap._find_and_load = timed(_bootstrap._find_and_load, lambda *_: "imports")
    command = import_module("sluice.cli.main").main
    import_module("sluice.cli.runs")
    import_module("sluice.operate.workers").MOST = 1
    for phase, places in PHASES.items():
        for place in places.split():
            watch(place, lambda *_, phase=phase: phase)
    watch("sluice.engine.advance:_Step._attempt", lambda step: f"{step.node.table.kind} computes")
    take = import_module("tests.benchmarks.retail_days").days if days else None
    after = date.fromisoformat(first) + timedelta(days=1)
    arguments = ["run", "retail", "--start", first, "--end", str(after), "--config", "config"]
    if take:
        take(first, days, seconds.clear)
    else:
        command.main(arguments, standalone_mode=False)
    switch(lambda: None)
    print(json.dumps({name: used / (days or 1) for name, used in seconds.items()}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
