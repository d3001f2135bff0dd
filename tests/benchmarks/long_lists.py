"""One element more in a long list: kept in its key's row, or as rows of a table of elements.

python -m tests.benchmarks.long_lists [--lengths 1000 10000 100000 1000000] [--json FILE]

What storage does, without Spark, for four keys with lists of that length. In the row, a batch reads
the key's state (the values with their order and their rows' keys), and writes it and the visible
list. As rows, it appends the element, reads the key's elements, and writes the visible list.
Seconds of the fastest of three, and megabytes written.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table as Printed
from tests.benchmarks.bare_tables import append, existing_head, megabytes, new_uri, position

from sluice.changes.diff import CHANGE
from sluice.delta.reading.local import read_rows
from sluice.delta.writing.commit import commit_arrow

KEYS, CHANGED, REPEATS = 4, 1, 3


@dataclass(frozen=True)
class Measured:
    """Seconds of each step, and megabytes written by it."""

    length: int
    step: str
    seconds: float
    megabytes: float = 0.0


def elements(ids: np.ndarray) -> pa.Table:
    """As rows."""
    values = pa.array([f"item {i % 5000}" for i in ids])
    return pa.table({"k": pa.array(ids % KEYS), "id": pa.array(ids), "v": values})


def lists(length: int, keys: Sequence[int], *, with_order: bool) -> pa.Table:
    """As lists, one row for each key."""
    ids = np.concatenate([np.arange(length) * KEYS + k for k in keys])
    rows = elements(ids)
    values = rows["v"].combine_chunks()
    if with_order:
        order = rows["id"].combine_chunks()
        values = pa.StructArray.from_arrays([order, order, values], names=["o0", "k0", "v"])
    offsets = pa.array(np.arange(len(keys) + 1) * length, pa.int32())
    listed = pa.ListArray.from_arrays(offsets, values)
    return pa.table({"k": pa.array(np.array(keys, dtype=np.int64)), "list": listed})


def fill(folder: Path, rows: pa.Table) -> str:
    """A table of those rows."""
    uri = new_uri(folder)
    append(uri, rows)
    return uri


def commit(uri: str, rows: pa.Table, change: str, key: Sequence[str]) -> tuple[float, float]:
    """Seconds, and megabytes written."""
    before = existing_head(uri)
    changelog = rows.append_column(CHANGE, pa.array([change] * rows.num_rows))
    began = time.perf_counter()
    done = commit_arrow(before, changelog, key, position(before.next_batch))
    seconds = time.perf_counter() - began
    return round(seconds, 3), round(megabytes(uri, done.version), 2)


def read(uri: str) -> tuple[float, float]:
    """Seconds to read what there is of the key."""
    began = time.perf_counter()
    read_rows(uri, existing_head(uri).version, where=pc.field("k") == CHANGED)
    return round(time.perf_counter() - began, 3), 0.0


def measure(folder: Path, length: int) -> list[Measured]:
    """Every step of both ways."""
    state, visible = (
        fill(folder, lists(length, range(KEYS), with_order=order)) for order in (True, False)
    )
    rows = fill(folder, elements(np.arange(length * KEYS)))
    found: dict[str, tuple[float, float]] = {}
    for nth in range(1, REPEATS + 1):
        longer = [lists(length + nth, [CHANGED], with_order=order) for order in (True, False)]
        one = elements(np.array([(length + nth) * KEYS + CHANGED]))
        steps: dict[str, Callable[[], tuple[float, float]]] = {
            "in the row: read state": partial(read, state),
            "in the row: write state": partial(commit, state, longer[0], "update", ["k"]),
            "as rows: append": partial(commit, rows, one, "insert", ["k", "id"]),
            "as rows: read elements": partial(read, rows),
            "both: write visible list": partial(commit, visible, longer[1], "update", ["k"]),
        }
        for name, step in steps.items():
            done = step()
            found[name] = min(done, found.get(name, done))
    return [Measured(length, name, *times) for name, times in found.items()]


def main(argv: list[str]) -> None:
    """Prints a table, and the same as a line of JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--lengths", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        found = [one for length in given.lengths for one in measure(Path(folder), length)]
    printed = Printed("length", "step", "s", "MB written")
    for one in found:
        printed.add_row(f"{one.length:,}", one.step, str(one.seconds), str(one.megabytes))
    Console(width=100).print(printed)
    told = json.dumps([asdict(one) for one in found])
    print(told)
    if given.json:
        given.json.write_text(told)


if __name__ == "__main__":
    main(sys.argv[1:])
