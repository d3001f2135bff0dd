"""Batches of a cogroup whose changed keys come from everywhere.

python -m tests.benchmarks.random_keys [--keys 1000000] [--batches 30] [--changes 10000]
    [--built FOLDER] [--merged] [--json FILE]

Three streams with one row for each key. A batch adds a row to 80 % of the changed keys, brings 15 %
new keys, and takes all rows of 5 % away; new keys lie between old ones. The tables are built by
Spark, which then stops: batches, reads and merging of files run in this process. Printed for each
batch that is shown: its seconds and those of its processors, megabytes written by state and view,
and their share of both tables. Then the reads before the batches and after them: milliseconds until
a key's row is there in a table opened again, and processor seconds of a scan. At last, as many
random rows of one input are updated, as a delivery to a source with a key does, and both tables of
the view are filed again, in pieces, as upkeep does with worn ones. `--built` keeps the built tables
for another run. `--merged`: no table is large enough for vectors.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, write_deltalake
from rich.console import Console
from rich.table import Table as Printed
from tests.benchmarks.bench_lake import BenchLake, declared, position, timed, written_bytes

from sluice.changes import CHANGE
from sluice.delta.log.files import table_size
from sluice.delta.writing.commit import PROPERTIES, commit_arrow
from sluice.delta.writing.own_commits import writer_properties
from sluice.engine.upkeep import refile
from sluice.limits import Limits
from sluice.operate.maintain import kept_in
from sluice.read.lake import Lake

STREAMS, FILE_ROWS, STEP = ("s0", "s1", "s2"), 1_000_000, 7_368_787  # a prime
SOURCE = """
  {name}: {{path: "{name}/{{interval_start:%Y-%m-%d}}/", key: [id],
    schema: "id BIGINT, k BIGINT, v DECIMAL(12,2)"}}"""
STREAM = "{0}: {{from: {0}, aggregates: {{n_{0}: count(*), v_{0}: sum(v), mean_{0}: avg(v)}}}}"
UPDATED, NEW = 0.8, 0.15
SHOWN = (1, 2, 10, 20, 30)
TABLES = ("view__state", "view")


@dataclass(frozen=True)
class Measured:
    """One batch; `share`: of the bytes of its tables."""

    keys: int
    batch: int | str
    seconds: float
    cpu: float
    megabytes: float
    share: float
    engine: str


@dataclass(frozen=True)
class Reads:
    """Reads of the view after some batch, or after upkeep."""

    batch: int | str
    get_ms: float
    scan_cpu: float
    files: int


class Bench(BenchLake):
    """Three inputs and a cogroup of them."""

    def __init__(self, folder: Path, keys: int, changes: int, limits: Limits):
        tables = "sources:" + "".join(SOURCE.format(name=name) for name in STREAMS)
        streams = ", ".join(map(STREAM.format, STREAMS))
        tables += f"\nviews:\n  view: {{kind: cogroup, key: [k], streams: {{{streams}}}}}"
        super().__init__(declared(folder, tables, "3g").model_copy(update={"limits": limits}))
        self.keys, self.changes, self.drawn = keys, changes, np.random.default_rng(7)

    def build(self) -> None:
        """Fill the inputs and build the view, by Spark."""
        for name in STREAMS:
            for start in range(0, self.keys, FILE_ROWS):
                ids = np.arange(start, min(start + FILE_ROWS, self.keys))
                append(self.uri(name), rows_of(ids, self.key_of(ids)))
        self.advance()
        self.spark.stop()

    def key_of(self, ids: np.ndarray) -> np.ndarray:
        """Even keys, each once, in no order."""
        return 2 * (ids * STEP % self.keys)

    def change(self, batch: int) -> None:
        """Commit one batch of changes to the inputs."""
        updated, new = int(self.changes * UPDATED), int(self.changes * NEW)
        gone = self.changes - updated - new
        known = self.drawn.choice(np.arange(30 * gone, self.keys), updated, replace=False)
        fresh = 2 * self.drawn.choice(self.keys, new, replace=False) + 1
        first = self.keys * (batch + 1)
        came = np.concatenate([self.key_of(known), fresh])
        went = np.arange((batch - 1) * gone, batch * gone)
        for i, name in enumerate(STREAMS):
            before, part = self.head(name), came[i :: len(STREAMS)]
            rows = rows_of(first + np.arange(len(part)), part), rows_of(went, self.key_of(went))
            signed = [
                table.append_column(CHANGE, pa.array([change] * table.num_rows))
                for table, change in zip(rows, ("insert", "delete"), strict=True)
            ]
            now = position(before.next_batch)
            commit_arrow(before, pa.concat_tables(signed), ("id",), now)

    def advance(self) -> str:
        """Bring the view up to its inputs and return the engine that did."""
        return "/".join(report.engine or "-" for report in self.follow("view"))

    def batch(self, number: int) -> Measured:
        """Measure one batch."""
        self.change(number)
        return self._measured(number, TABLES, self.advance)

    def source(self) -> Measured:
        """Measure an update of random rows of one input."""
        before, gone = self.head("s0"), self.changes - int(self.changes * (UPDATED + NEW))
        ids = self.drawn.choice(np.arange(30 * gone, self.keys), self.changes, replace=False)
        rows = rows_of(ids, self.key_of(ids)).set_column(2, "v", rows_of(ids + 1, ids)["v"])
        rows = rows.append_column(CHANGE, pa.array(["update"] * len(ids)))

        def commit() -> str:
            now = position(before.next_batch)
            commit_arrow(before, rows, ("id",), now, self.project.limits)
            return "process"

        return self._measured("a source", ("s0",), commit)

    def upkeep(self) -> Measured:
        """Measure how both tables are filed again."""
        kept = list(kept_in(self.project.graph.table("view"), self.project))

        def file() -> str:
            for one in kept:
                if filing := one.filing:
                    refile(filing, self.spark, filing.slices, "compact")
            return "process"

        return self._measured("upkeep", TABLES, file)

    def _measured(
        self, what: int | str, tables: Sequence[str], work: Callable[[], str]
    ) -> Measured:
        before = {name: self.head(name) for name in tables}
        size = sum(table_size(h.uri, h.version).bytes for h in before.values()) / 1e6
        began = time.perf_counter()
        cpu, engine = timed(work)
        seconds = round(time.perf_counter() - began, 2)
        written = sum(
            written_bytes(self.uri(name), version) / 1e6
            for name in tables
            for version in range(before[name].version + 1, self.head(name).version + 1)
        )
        share = 100 * written / size
        return Measured(self.keys, what, seconds, cpu, round(written, 2), round(share, 1), engine)

    def reads(self, batch: int | str) -> Reads:
        """Measure reads as things stand."""
        scans = [timed(lambda: self._scan()[0])[0] for _ in range(3)]
        found = []
        for key in 2 * np.random.default_rng(1).choice(self.keys, 40, replace=False):
            began = time.perf_counter()
            Lake(self.project).table("view").get(int(key))
            found.append((time.perf_counter() - began) * 1000)
        files = table_size(self.uri("view"), self.head("view").version).files
        return Reads(batch, round(median(found), 2), min(scans), files)

    def _scan(self) -> tuple[int, ...]:
        table = Lake(self.project).table("view").read().to_arrow()
        streams = [pc.sum(table[f"n_{name}"]).as_py() for name in STREAMS]
        return (table.num_rows, *streams)

    def check(self) -> None:
        """Compare the view's counts with those of the inputs."""
        rows, *counted = self._scan()
        inputs = [Lake(self.project).table(name).read(columns=["k"]).to_arrow() for name in STREAMS]
        keys = pc.count_distinct(pa.concat_tables(inputs)["k"]).as_py()
        assert (rows, *counted) == (keys, *(table.num_rows for table in inputs))


def append(uri: str, rows: pa.Table) -> None:
    """Write rows as one file; the first make the table."""
    write_deltalake(
        uri,
        rows,
        mode="append",
        configuration=PROPERTIES,
        writer_properties=writer_properties(rows.schema),
        commit_properties=CommitProperties(custom_metadata={"userMetadata": position(1).to_json()}),
    )


def rows_of(ids: np.ndarray, keys: np.ndarray) -> pa.Table:
    """Rows of an input."""
    values = pa.array(ids * 31 % 100_000).cast(pa.decimal128(21, 2))
    return pa.table({"id": ids, "k": keys, "v": values.cast(pa.decimal128(12, 2))})


def run(folder: Path, given: argparse.Namespace) -> Iterator[Measured | Reads]:
    """Build the tables unless they are there, and measure on a copy."""
    limits = replace(Limits(), merged_bytes=sys.maxsize) if given.merged else Limits()
    built = (given.built or folder) / f"built-{given.keys}"
    if not built.exists():
        Bench(built, given.keys, given.changes, limits).build()
    copy = folder / "copy"
    shutil.copytree(built, copy, copy_function=os.link)
    bench = Bench(copy, given.keys, given.changes, limits)
    yield bench.reads(0)
    for number in range(1, given.batches + 1):
        yield bench.batch(number)
    yield bench.reads(given.batches)
    yield bench.source()
    yield bench.upkeep()
    yield bench.reads("upkeep")
    bench.check()
    bench.spark.stop()


def main(argv: list[str]) -> None:
    """Prints tables, and the same as a line of JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--changes", type=int, default=10_000)
    parser.add_argument("--batches", type=int, default=30)
    parser.add_argument("--built", type=Path)
    parser.add_argument("--merged", action="store_true")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        found = list(run(Path(folder), given))
    batches = [one for one in found if isinstance(one, Measured)]
    chosen = (*SHOWN, given.batches)
    show(
        ("rows", "batch", "s", "CPU s", "MB", "% of tables", "engine"),
        [asdict(b).values() for b in batches if isinstance(b.batch, str) or b.batch in chosen],
    )
    reads = [asdict(one).values() for one in found if isinstance(one, Reads)]
    show(("after batches", "get ms", "scan CPU s", "files"), reads)
    text = json.dumps([asdict(one) for one in found])
    print(text)
    if given.json:
        given.json.write_text(text)


def show(columns: Sequence[str], rows: Iterable[Iterable[Any]]) -> None:
    """Print a table."""
    printed = Printed(*columns)
    for row in rows:
        printed.add_row(*map(str, row))
    Console(width=120).print(printed)


if __name__ == "__main__":
    main(sys.argv[1:])
