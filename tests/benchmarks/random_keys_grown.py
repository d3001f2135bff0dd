"""Batches of changes from everywhere to a cogroup of a hundred million keys.

python -m tests.benchmarks.random_keys_grown --built FOLDER [--keys 20000000] [--times 5]
    [--batches 5] [--changes 10000]

Spark would build such tables for two hours. So those of so many keys that
`tests.benchmarks.random_keys --built FOLDER` has left are copied, and to each of their files come
copies with later keys, in the commit that made it. The batches and reads are then those of
`random_keys`, in this process.
"""

import argparse
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from tests.benchmarks.random_keys import STEP, STREAMS, Bench, Measured, Reads, show

from sluice.limits import Limits

GROUP_ROWS = 5_000  # as the files have that are copied


class Grown(Bench):
    """Tables of `built` keys, and their copies with later ones."""

    def __init__(self, folder: Path, built: int, times: int, changes: int):
        super().__init__(folder, built * times, changes, Limits())
        self.built = built

    def grow(self) -> None:
        """Add the copies."""
        for name in (*STREAMS, "view__state", "view"):
            folder = Path(self.uri(name))
            for log in (folder / "_delta_log").iterdir():
                if log.suffix != ".json":
                    log.unlink()  # a checkpoint, or a note of one
            for log in sorted((folder / "_delta_log").glob("*.json")):
                lines = log.read_text().splitlines()
                added = [json.loads(line)["add"] for line in lines if line.startswith('{"add"')]
                lines += [
                    json.dumps({"add": copy}) for add in added for copy in self._copies(folder, add)
                ]
                log.unlink()  # it is a link to the file of the tables as they were built
                log.write_text("\n".join(lines) + "\n")

    def _copies(self, folder: Path, add: dict[str, Any]) -> Iterator[dict[str, Any]]:
        rows, stats = pq.read_table(folder / add["path"]), json.loads(add["stats"])
        for nth in range(1, self.keys // self.built):
            later = {
                name: by * nth * self.built
                for name, by in (("id", 1), ("k", 2))
                if name in rows.column_names
            }
            copy = rows
            for name, by in later.items():
                column = pc.add(rows[name], pa.scalar(by, pa.int64()))
                copy = copy.set_column(copy.column_names.index(name), name, column)
                for bound in ("minValues", "maxValues"):
                    stats[bound][name] = json.loads(add["stats"])[bound][name] + by
            path = folder / f"later-{nth}-{add['path']}"
            pq.write_table(copy, path, row_group_size=GROUP_ROWS, store_decimal_as_integer=True)
            size = path.stat().st_size
            yield {**add, "path": path.name, "size": size, "stats": json.dumps(stats)}

    def key_of(self, ids: np.ndarray) -> np.ndarray:
        """The key in the table that was built, and as much later as the ID is."""
        nth, inside = np.divmod(ids, self.built)
        return 2 * (inside * STEP % self.built + self.built * nth)


def run(given: argparse.Namespace, folder: Path) -> Iterator[Measured | Reads]:
    """Measure on a copy."""
    shutil.copytree(given.built / f"built-{given.keys}", folder, copy_function=os.link)
    bench = Grown(folder, given.keys, given.times, given.changes)
    bench.grow()
    yield bench.reads(0)
    for number in range(1, given.batches + 1):
        yield bench.batch(number)
    yield bench.reads(given.batches)
    yield bench.source()


def main() -> None:
    """Print tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--built", type=Path, required=True)
    parser.add_argument("--keys", type=int, default=20_000_000)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--batches", type=int, default=5)
    parser.add_argument("--changes", type=int, default=10_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.built) as folder:
        found = list(run(given, Path(folder, "grown")))
    batches = [asdict(one).values() for one in found if isinstance(one, Measured)]
    show(("rows", "batch", "s", "CPU s", "MB", "% of tables", "engine"), batches)
    reads = [asdict(one).values() for one in found if isinstance(one, Reads)]
    show(("after batches", "get ms", "scan CPU s", "files"), reads)


if __name__ == "__main__":
    main()
