"""How a table of one row per key takes a small change, by layout and by committer.

python -m tests.benchmarks.layouts [--keys 1000000] [--changes 10000]
    [--committers delta-rs spark] [--json FILE]

The table has the columns of a cogroup's state with nine aggregates. The change updates keys drawn
from everywhere (`random`) or a stretch of neighbours (`near`), and deletes one in ten of them. Each
commit is made three times in a row, in a warm session: seconds of the fastest, megabytes written,
files after the last, and how long a key's row then takes to be read without Spark.

- `by key`: files of 100,000 rows in the order of the key; `unordered`: as many without an order;
- `buckets`: 64 partitions by a hash of the key; `one file`: all rows in one, in order;
- `vectors`: by key, with deletion vectors by Spark's MERGE, which delta-rs can't write.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from rich.console import Console
from rich.table import Table as Printed
from tests.benchmarks.bare_tables import append, existing_head, megabytes, new_uri, position

from sluice.changes.diff import CHANGE
from sluice.declare.settings import SparkSettings
from sluice.delta.writing.commit import commit_arrow
from sluice.delta.writing.merge import SparkCommit
from sluice.limits import Limits
from sluice.spark.session import Spark

LAYOUTS = ("by key", "unordered", "buckets", "one file", "vectors")
BUCKETS, REPEATS = 64, 3
TOTAL = pa.decimal128(22, 2)


@dataclass(frozen=True)
class Measured:
    """One kind of change to one layout; `read_ms` before the first and after the last commit."""

    keys: int
    changes: int
    spread: str
    layout: str
    committer: str
    seconds: float
    megabytes: float
    files: int
    read_ms: tuple[float, float]


class Bench:
    """One folder, at most one session."""

    def __init__(self, folder: Path, keys: int, changes: int):
        self.folder, self.keys, self.changes = folder, keys, changes
        conf = {"spark.driver.memory": "3g", "spark.sql.shuffle.partitions": "16"}
        self.spark = Spark(SparkSettings(conf=conf))

    def fill(self, layout: str) -> str:
        """A table of all keys."""
        uri = new_uri(self.folder)
        keys = np.arange(self.keys)
        if layout == "unordered":
            keys = np.random.default_rng(1).permutation(keys)
        rows = state_rows(keys, 0)
        if layout == "buckets":
            append(uri, rows, ["_bucket"])
            return uri
        step = self.keys if layout == "one file" else Limits().file_rows
        for start in range(0, self.keys, step):
            append(uri, rows.slice(start, step))
        return uri

    def change(self, spread: str, nth: int) -> pa.Table:
        """Updates, and a tenth deletes, of keys that no earlier change deleted."""
        step = self.keys // self.changes
        start, step = (self.keys // 2, 1) if spread == "near" else (nth, step)
        keys = start + np.arange(self.changes) * step
        if spread == "near":
            keys += nth * self.changes
        fate = np.where(np.arange(len(keys)) % 10 == 0, "delete", "update")
        return state_rows(keys, nth + 1).append_column(CHANGE, pa.array(fate))

    def measure(self, layout: str, committer: str, spread: str) -> Measured:
        """The same kind of change, some times in a row."""
        uri = self.fill(layout)
        if layout == "vectors":
            self.spark.session.sql(
                f"ALTER TABLE delta.`{uri}` SET TBLPROPERTIES (delta.enableDeletionVectors = true)"
            )
        before = self._read_ms(uri, layout)
        key = ("_bucket", "k") if layout == "buckets" else ("k",)
        found = [self._commit(uri, committer, key, spread, i) for i in range(REPEATS)]
        seconds, written = min(found)
        files = len(DeltaTable(uri).get_add_actions())
        reads = before, self._read_ms(uri, layout)
        point = (self.keys, self.changes, spread, layout, committer)
        return Measured(*point, seconds, written, files, reads)

    def _commit(
        self, uri: str, committer: str, key: Sequence[str], spread: str, nth: int
    ) -> tuple[float, float]:
        before, rows = existing_head(uri), self.change(spread, nth)
        began = time.perf_counter()
        if committer == "delta-rs":
            done = commit_arrow(before, rows, key, position(before.next_batch))
        else:
            session = self.spark.tune(small=False)
            deleted = pc.sum(pc.equal(rows[CHANGE], "delete")).as_py()
            counts = {"delete": deleted, "update": rows.num_rows - deleted}
            frame = session.createDataFrame(rows)
            now = position(before.next_batch)
            by_spark = SparkCommit(session, before, now, key)
            done = by_spark.changelog(frame, counts)
        seconds = round(time.perf_counter() - began, 2)
        return seconds, round(megabytes(uri, done.version), 1)

    def _read_ms(self, uri: str, layout: str) -> float:
        if layout == "vectors":
            return 0.0
        found = []
        for i in range(1, 8):
            key, began = self.keys // 8 * i, time.perf_counter()
            where = pc.field("k") == key
            if layout == "buckets":
                where &= pc.field("_bucket") == int(_bucket(np.array([key]))[0])
            DeltaTable(uri).to_pyarrow_dataset().to_table(filter=where)
            found.append((time.perf_counter() - began) * 1000)
        return round(median(found), 1)

    def all(self, committers: Sequence[str]) -> Iterator[Measured]:
        """Every layout by every committer that can write it."""
        for spread in ("random", "near"):
            for layout in LAYOUTS:
                for committer in committers:
                    if (layout, committer) != ("vectors", "delta-rs"):
                        yield self.measure(layout, committer, spread)


def state_rows(keys: np.ndarray, salt: int) -> pa.Table:
    """Rows of a cogroup's state: of three streams a count, a sum, an average and their parts."""
    columns = {"k": pa.array(keys), "_bucket": pa.array(_bucket(keys))}
    for i in range(3):
        drawn = (keys * 7919 + 31 * salt + i) % 100_000
        total = pc.cast(pa.array(drawn), TOTAL)
        parts = pa.StructArray.from_arrays([total, pa.array(drawn % 9)], names=["total", "n"])
        columns |= {f"n{i}": pa.array(drawn % 9), f"v{i}": parts, f"mean{i}": parts}
    return pa.table(columns)


def _bucket(keys: np.ndarray) -> np.ndarray:
    return (((keys * 2_654_435_761) % 2**32) * BUCKETS // 2**32).astype(np.int32)


def main(argv: list[str]) -> None:
    """Prints a table, and the same as a line of JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--changes", type=int, default=10_000)
    parser.add_argument("--committers", nargs="*", default=["delta-rs", "spark"])
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), given.keys, given.changes)
        try:
            for committer in given.committers:
                bench.measure("by key", committer, "near")
            found = list(bench.all(given.committers))
        finally:
            bench.spark.stop()
    columns = "keys", "changes", "spread", "layout", "committer", "s", "MB", "files", "read ms"
    printed = Printed(*columns)
    for one in found:
        printed.add_row(*map(str, asdict(one).values()))
    Console(width=120).print(printed)
    told = json.dumps([asdict(one) for one in found])
    print(told)
    if given.json:
        given.json.write_text(told)


if __name__ == "__main__":
    main(sys.argv[1:])
