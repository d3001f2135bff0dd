"""Top-k, batch by batch, against computing everything again: seconds, Spark jobs, rows written.

python -m tests.benchmarks.topk [--rows 1000000 ...] [--groups 1000 ...] [--changes 1000 100000 ...]
    [--kinds append mixed] [--lake FOLDER] [--json FILE]

Each batch changes a keyed input as a delivery does; then, in one warm session, this project's view
follows by either committer (`auto`, `spark`), and so do two that rank everything: `merge` MERGEs
the difference, `overwrite` overwrites the table. Ratios are against `merge`, which does the same
service: a table with a minimal change feed; `end to end` is with the input's MERGE on both sides.
`append` adds rows, `mixed` draws other values and deletes 5 %, half of them leaders.
A kept lake (`--lake`) is used again as it is. What was measured is in FILE after each batch.
"""

import argparse
import json
import os
import resource
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as Printed
from tests.benchmarks.topk_lake import RIVALS, VIEWS, Bench, Measured

WAYS = ("input", *VIEWS, *RIVALS)
COLUMNS = ("rows", "groups", "kind", "changes", *WAYS, "auto x", "spark x", "end to end x", "how")


def measured(given: argparse.Namespace, folder: Path) -> Iterator[Measured]:
    """Yield every point of the grid."""
    grid = [(r, g) for r in given.rows for g in given.groups]
    for rows, groups in grid:
        bench = Bench(folder / f"{rows}-{groups}", rows, groups, given.memory)
        try:
            bench.prepare()
            list(bench.measure("mixed", 1_000))  # warms up
            for kind in given.kinds:
                for changes in given.changes:
                    yield from bench.measure(kind, changes)
        finally:
            bench.spark.stop()


def points(found: Iterable[Measured]) -> dict[tuple[str, ...], dict[str, Measured]]:
    """What was measured by rows, groups, kind and changes, then by way."""
    by: dict[tuple[str, ...], dict[str, Measured]] = {}
    for one in found:
        at = (f"{one.rows:,}", f"{one.groups:,}", one.kind, f"{one.changes:,}")
        by.setdefault(at, {})[one.way] = one
    return by


def show(found: list[Measured]) -> None:
    """A table: seconds / Spark jobs of each way, and how many times faster than `merge`."""
    printed = Printed(*COLUMNS)
    for at, by_way in points(found).items():
        cells = [_cell(by_way.get(way)) for way in WAYS]
        printed.add_row(*at, *cells, *_ratios(by_way), _how(by_way))
    Console(width=180).print(printed)


def _cell(one: Measured | None) -> str:
    return f"{one.seconds:.2f} / {one.jobs}" if one else ""


def _ratios(by_way: dict[str, Measured]) -> tuple[str, ...]:
    if "merge" not in by_way:
        return "", "", ""
    seconds = {way: one.seconds for way, one in by_way.items()}
    faster = (f"{seconds['merge'] / seconds[view]:.1f}" for view in VIEWS)
    whole = (seconds["input"] + seconds["merge"]) / (seconds["input"] + seconds["auto"])
    return *faster, f"{whole:.1f}"


def _how(by_way: dict[str, Measured]) -> str:
    one = by_way["auto"]
    return f"{one.strategy}, {one.refills} refills" if one.strategy else ""


def told(found: list[Measured]) -> str:
    """As JSON, with the load of the machine and the most memory that this process took."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    facts: dict[str, Any] = {"load_average": os.getloadavg()[0], "python_mb": most}
    return json.dumps({**facts, "measured": [asdict(one) for one in found]})


def main(argv: list[str]) -> None:
    """Prints a table, and the same as a line of JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--groups", type=int, nargs="+", default=[1_000])
    parser.add_argument("--changes", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    parser.add_argument("--kinds", nargs="+", default=["append", "mixed"])
    parser.add_argument("--memory", default="4g")
    parser.add_argument("--lake", type=Path)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(argv)
    found: list[Measured] = []
    with tempfile.TemporaryDirectory() as folder:
        for one in measured(given, given.lake or Path(folder)):
            found.append(one)
            print(one, file=sys.stderr)
            if given.json:
                given.json.write_text(told(found))
    show(found)
    print(told(found))


if __name__ == "__main__":
    main(sys.argv[1:])
