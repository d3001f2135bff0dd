"""What Spark's tasks did in a time, read from the event log of an application."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

ENDED = "SparkListenerTaskEnd"
LONG = 1_000  # milliseconds; in shorter stages nobody waits for a slow task


@dataclass(frozen=True)
class Tasks:
    """Sums of all tasks that ended in a time; `results`: what they sent to the driver.

    `largest_result`: of one stage. `skew`: the longest task by the median one, in the worst of the
    stages that last. `failed`: tasks that ended otherwise, as those of a lost worker do.
    """

    tasks: int
    failed: int
    cpu_s: float
    results_mb: float
    largest_result_mb: float
    shuffled_mb: float
    spilled_mb: float
    skew: float


def conf(folder: Path) -> dict[str, str]:
    """Return the settings by which Spark keeps a log there, as one readable file."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = {
        "enabled": "true",
        "dir": folder.as_uri(),
        "compress": "false",
        "rolling.enabled": "false",
    }
    return {f"spark.eventLog.{name}": value for name, value in parts.items()}


def between(folder: Path, began: float, ended: float) -> Tasks:
    """Return what tasks did that ended between these seconds since 1970."""
    stages = defaultdict[int, list[Mapping[str, Any]]](list)
    failed = 0
    for event in _events(folder):
        if event["Event"] != ENDED:
            continue
        if not began <= event["Task Info"]["Finish Time"] / 1000 <= ended:
            continue
        failed += event["Task End Reason"]["Reason"] != "Success"
        if metrics := event.get("Task Metrics"):
            stages[event["Stage ID"]].append(metrics)
    every = [metrics for of_stage in stages.values() for metrics in of_stage]
    results = [_sum(of_stage, "Result Size") for of_stage in stages.values()]
    written = (metrics["Shuffle Write Metrics"] for metrics in every)
    return Tasks(
        len(every),
        failed,
        round(_sum(every, "Executor CPU Time") / 1e9, 1),
        _megabytes(sum(results)),
        _megabytes(max(results, default=0)),
        _megabytes(sum(one["Shuffle Bytes Written"] for one in written)),
        _megabytes(_sum(every, "Disk Bytes Spilled")),
        max(map(_skew, stages.values()), default=1.0),
    )


def _events(folder: Path) -> Iterator[dict[str, Any]]:
    for file in folder.iterdir():
        with file.open(encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def _sum(tasks: list[Mapping[str, Any]], name: str) -> int:
    return sum(metrics[name] for metrics in tasks)


def _skew(tasks: list[Mapping[str, Any]]) -> float:
    times = [metrics["Executor Run Time"] for metrics in tasks]
    return round(max(times) / median(times), 1) if median(times) >= LONG else 1.0


def _megabytes(count: int) -> float:
    return round(count / 1e6, 1)
