"""Joins and window functions of changing tables against the usual ways: seconds, jobs, megabytes.

python -m tests.benchmarks.join [--rows 1000000 10000000] [--changes 10000] [--spread near random]
    [--repeat 2] [--memory 4g] [--json FILE]

There are `rows` order lines and a tenth as many orders. Two views follow them: `joined` pairs each
line with its order, `stepped` adds the previous line's amount of the same order, over as many
partitions as there are orders. Half of the changes are to lines, half to orders: three fifths
updates, a fifth deletes, a fifth inserts. `near` changes are of orders that follow each other,
`random` ones of any. After each change every way follows, in a warm session:

- `view` is this project's batch;
- `merge` computes the query over both tables and merges what differs into a table with a feed;
- `overwrite` computes it and writes the table again;
- `duckdb` reads the files of both tables and writes the result as Parquet, without a feed.

In the end all of them hold the same rows. `--rows 200000` takes about two minutes.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table as Printed
from tests.benchmarks.join_lake import JoinLake, Measured
from tests.benchmarks.repeated import measure


def run(rows: int, given: argparse.Namespace) -> Iterator[Measured]:
    """Yield all that is measured of tables of that size."""
    with tempfile.TemporaryDirectory() as folder:
        bench = JoinLake(Path(folder), rows, given)
        try:
            bench.land()
            yield from bench.measure(0, "")
            for spread in given.spread:
                for count in given.changes * given.repeat:
                    bench.change(count, spread)
                    yield from bench.measure(count, spread)
            bench.check()
        finally:
            bench.spark.stop()


def show(found: list[Measured]) -> None:
    """Print a table; ratios say how many times the view's seconds a way takes."""
    views = {(m.rows, m.view, m.spread, m.changes): m.seconds for m in found if m.way == "view"}
    printed = Printed("rows", "view", "changes", "way", "s", "times", "jobs", "MB", "changed")
    for one in found:
        changes = f"{one.changes:,} {one.spread}" if one.changes else "build"
        times = one.seconds / max(views[one.rows, one.view, one.spread, one.changes], 0.01)
        changed = "" if one.changed is None else f"{one.changed:,}"
        printed.add_row(
            *(f"{one.rows:,}", one.view, changes, one.way, f"{one.seconds:.2f}", f"{times:.1f}"),
            *(str(one.jobs), f"{one.megabytes}", changed),
        )
    console = Console(width=130)
    console.print(printed)
    for plan in dict.fromkeys(one.plan for one in found if one.plan):
        console.print(plan)


def main(argv: list[str]) -> None:
    """Print a table, and all measurements as a line of JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000_000, 10_000_000])
    parser.add_argument("--changes", type=int, nargs="*", default=[10_000])
    parser.add_argument("--spread", nargs="*", default=["near", "random"])
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--memory", default="4g")
    parser.add_argument("--json", type=Path)
    measure(
        run, parser.parse_args(argv), show, lambda m: (m.rows, m.view, m.spread, m.changes, m.way)
    )


if __name__ == "__main__":
    main(sys.argv[1:])
