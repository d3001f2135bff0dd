"""What grows with tables, files and commits, on paper as in practice: no row is written.

python -m tests.benchmarks.scale [--tables 250 1000] [--files 1000 10000 100000]

The first table is of projects with pipelines of five tables each: CPU seconds to load one, as every
command does, and the memory of that process. The second is of logs that name so many files of
100,000 rows: bytes of their checkpoint, CPU seconds to open the table and to list its files. Each
line is a process of its own.
"""

import argparse
import json
import multiprocessing
import resource
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.transaction import AddAction
from rich.console import Console
from rich.table import Table as Printed

from sluice.declare.project import load
from sluice.delta.log.files import active_files
from sluice.delta.log.opened import CHECKPOINTS

PIPELINE = """\
pipeline: p{number}
schedule: "@daily"
start_date: 2024-01-01
sources:
  sales:
    path: "../landing/{{interval_start:%Y-%m-%d}}/"
    schema: id BIGINT, shop STRING, item STRING, amount DECIMAL(12,2), at TIMESTAMP
    key: [id]
views:
  totals:
    kind: cogroup
    key: [shop, item]
    streams: {{sales: {{from: sales, aggregates: {{n: count(*), total_{number}: sum(amount)}}}}}}
  best: {{kind: topk, from: totals, order_by: [total_{number} DESC], limit: 3}}
  large: {{kind: select, from: sales, where: amount > {number}}}
  daily:
    kind: sql
    sql: SELECT shop, CAST(at AS DATE) AS day, sum(amount) AS total FROM sales
      WHERE amount > {number} GROUP BY shop, CAST(at AS DATE)
"""
TABLES_EACH = 5
COLUMNS = pa.schema(
    [("id", pa.int64()), ("k", pa.int64()), ("v", pa.decimal128(12, 2)), ("name", pa.string())]
)
FILE_ROWS, FILE_BYTES, AT_ONCE = 100_000, 4_000_000, 50_000


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--tables", type=int, nargs="*", default=[250, 1000])
    arguments.add_argument("--files", type=int, nargs="*", default=[1000, 10_000, 100_000])
    asked = arguments.parse_args()
    show("projects", ["tables", "load, CPU s", "MB"], project, asked.tables)
    show("logs", ["files", "checkpoint, kB", "open, CPU s", "files, CPU s", "MB"], log, asked.files)


def show(title: str, heads: list[str], measure: Callable[[int], list[str]], of: list[int]) -> None:
    printed = Printed(*heads, title=title)
    for number in of:
        with multiprocessing.get_context("spawn").Pool(1) as alone:
            printed.add_row(f"{number:,}", *alone.apply(measure, [number]))
    Console().print(printed)


def project(tables: int) -> list[str]:
    with folder() as at:
        (at / "pipelines").mkdir()
        (at / "sluice.yaml").write_text("lake: ../lake\n")
        for number in range(tables // TABLES_EACH):
            (at / "pipelines" / f"p{number}.yaml").write_text(PIPELINE.format(number=number))
        before = time.process_time()
        load(at)
        return [f"{time.process_time() - before:.2f}", megabytes()]


def log(files: int) -> list[str]:
    with folder() as at:
        table = DeltaTable.create(str(at), schema=COLUMNS, configuration=dict(CHECKPOINTS))
        for first in range(0, files, AT_ONCE):
            named = [added(number) for number in range(first, min(files, first + AT_ONCE))]
            table.create_write_transaction(named, mode="append", schema=table.schema())
            table.update_incremental()
        table.create_checkpoint()
        size = sum(file.stat().st_size for file in (at / "_delta_log").glob("*.parquet"))
        before = time.process_time()
        table = DeltaTable(str(at))
        opened = time.process_time()
        assert active_files(table).num_rows == files
        listed = time.process_time()
        seconds = (f"{opened - before:.2f}", f"{listed - opened:.2f}")
        return [f"{size / 1000:,.0f}", *seconds, megabytes()]


def added(number: int) -> AddAction:
    first = number * FILE_ROWS
    low = {"id": first, "k": number, "v": 0.01, "name": "aaaaaaaaaa"}
    high = {"id": first + FILE_ROWS - 1, "k": number + 7, "v": 999.99, "name": "zzzzzzzzzz"}
    stats = {"numRecords": FILE_ROWS, "minValues": low, "maxValues": high}
    text = json.dumps({**stats, "nullCount": dict.fromkeys(low, 0)})
    return AddAction(f"part-00000-{uuid.uuid4()}.parquet", FILE_BYTES, {}, 1, True, text)


@contextmanager
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp())
    try:
        yield made
    finally:
        shutil.rmtree(made)


def megabytes() -> str:
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f}"


if __name__ == "__main__":
    main()
