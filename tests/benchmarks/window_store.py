"""Reads of a window store that micro-batches have filled, beside Spark, duckdb and RocksDB.

python -m tests.benchmarks.window_store [--rows 10000000] [--days 30] [--keys 100000]
    [--batches 8] [--memory 3g] [--folder FOLDER] [--only load|rocks|read]

`load` and `rocks` fill what is missing below the folder, `read` measures it. The answers of all
four are compared before anything is timed.
"""

import argparse
import datetime as dt
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from tests.benchmarks.contenders import Ask, Duck, Ours, Question, Rocks, SparkSql
from tests.benchmarks.traces import START, Traces

from sluice.read.lake import Lake
from sluice.spark.session import Spark

HOT, COLD = 0, 99_000  # ranks
STEPS = ("load", "rocks", "read")
COUNT, SPARK_COUNT, COLD_COUNT = 30, 3, 5


def questions(traces: Traces) -> list[Question]:
    """What is asked."""
    closed = START + dt.timedelta(days=traces.days - 6, hours=15)
    return [
        Question("hot key, last 10", 10, key=traces.key(HOT)),
        Question("cold key, last 10", 10, key=traces.key(COLD * traces.keys // 100_000)),
        Question("all, last 100", 100),
        Question("all, last 100 before a closed day's hour", 100, time_to=closed),
        Question("all, last 100 of a rare status", 100, status="error"),
    ]


def timed(ask: Ask, question: Question, count: int, forget: Any = None) -> dict[str, float]:
    """Median and 95th percentile, in milliseconds."""
    took = []
    for _ in range(count):
        if forget:
            forget()
        began = time.perf_counter()
        ask(question)
        took.append((time.perf_counter() - began) * 1e3)
    p95 = sorted(took)[min(len(took) - 1, round(0.95 * len(took)))]
    return {"p50": round(statistics.median(took), 2), "p95": round(p95, 2)}


def read(traces: Traces) -> Iterator[dict[str, Any]]:
    """Each question, asked of all four in turn."""
    ours, duck, rocks = Ours(traces), Duck(traces), Rocks(traces.home / "rocks")
    spark = Spark(traces.project.spark)
    sql = SparkSql(traces, spark.tune(small=False))
    for question in questions(traces):
        answers = {len(asks.ask(question)) for asks in (ours, duck, rocks, sql)}
        assert len(answers) == 1, f"{question.name}: {answers} rows"
        yield {
            "question": question.name,
            "rows": answers.pop(),
            "ours": timed(ours.ask, question, COUNT),
            "touched": asdict(ours.touched),
            "ours_cold": timed(ours.ask, question, COLD_COUNT, ours.forget),
            "duckdb": timed(duck.ask, question, COUNT),
            "duckdb_cold": timed(duck.ask, question, COLD_COUNT, duck.forget),
            "rocksdb": timed(rocks.ask, question, COUNT),
            "spark": timed(sql.ask, question, SPARK_COUNT),
        }
    spark.stop()


def show(found: list[dict[str, Any]]) -> None:
    """A table of medians, 95th percentiles in brackets."""
    names = ("ours", "ours_cold", "duckdb", "duckdb_cold", "rocksdb", "spark")
    table = Table("ms: p50 (p95)", *(n.replace("_", ", ") for n in names), "files / groups / kB")
    for one in found:
        touched = one["touched"]
        told = f"{touched['files']} / {touched['row_groups']} / {touched['bytes'] // 1000}"
        table.add_row(one["question"], *(f"{one[n]['p50']} ({one[n]['p95']})" for n in names), told)
    Console(width=140).print(table)


def main(argv: list[str]) -> None:
    """Prints a table, and everything as a line of JSON."""
    parser = argparse.ArgumentParser()
    for name, default in (("rows", 10_000_000), ("days", 30), ("keys", 100_000), ("batches", 8)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--memory", default="3g")
    parser.add_argument("--folder", type=Path, default=Path(".cache/benchmarks"))
    parser.add_argument("--only", choices=STEPS)
    given = parser.parse_args(argv)
    shape = (given.rows, given.days, given.keys, given.batches, given.memory)
    traces = Traces(given.folder.resolve(), *shape)
    told: dict[str, Any] = {"rows": given.rows, "load_average": round(os.getloadavg()[0], 1)}
    wanted = [given.only] if given.only else STEPS
    if "load" in wanted:
        spark = Spark(traces.project.spark)
        told["load_seconds"] = round(traces.load(spark))
        spark.stop()
    if "rocks" in wanted and not (traces.home / "rocks").exists():
        Rocks(traces.home / "rocks").fill(Lake(traces.project).window("traces"))
    if "read" in wanted:
        told["reads"] = list(read(traces))
        show(told["reads"])
    print(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1:])
