"""What a run needs and does not get: it fails loudly, or succeeds; never is a table wrong."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from tests.crash.conftest import Worker
from tests.crash.shop import Shop, day

from sluice.engine import retries
from sluice.errors import SluiceError
from sluice.operate.verify import faults

DISK = 24_000_000
LEFT = (0, 4_000, 16_000, 40_000, 96_000)  # bytes, as far as each run gets
ROWS, WIDTH = 60_000, 2_000
SKEWED = """
pipeline: shop
schedule: "@daily"
start_date: 2024-01-01
sources:
  sales:
    path: "landing/{interval_start:%Y-%m-%d}/"
    format: parquet
    schema: "shop STRING, n INT, text STRING"
views:
  totals:
    kind: cogroup
    key: [shop]
    streams:
      sales: {from: sales, aggregates: {lines: count(*), texts: collect_list(text ORDER BY n)}}
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few megabytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(disk)]
    if os.geteuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a file system")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_full_disks_harm_no_table(
    before: Shop,
    undisturbed: dict[str, Any],
    small_disk: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retries, "PAUSES", (0.0,))  # nobody makes room meanwhile
    shop = before.copy(small_disk / "shop")
    heard = []
    for left in LEFT:
        with nearly_full(small_disk, left):
            try:
                shop.run(day(1))
            except SluiceError as error:
                heard.append(error.message)
        shop.check()
    assert heard, "the disk was never full"
    assert all("a disk has no room left" in message for message in heard)
    shop.run(day(1))
    shop.check()
    assert shop.state() == undisturbed


@contextlib.contextmanager
def nearly_full(disk: Path, left: int) -> Iterator[None]:
    """As long as it lasts, there is no more than that left on the disk."""
    ballast = disk / "ballast"
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    ballast.write_bytes(b"\0" * max(free - left, 0))
    yield
    ballast.unlink()


@pytest.mark.usefixtures("own_spark")
def test_groups_beyond_memory_harm_no_table(tmp_path: Path, session: SparkSession) -> None:
    """Half of all rows are one group's, and they are to be one value."""
    shop = Shop.create(tmp_path / "shop")
    (shop.config / "pipelines" / "shop.yaml").write_text(SKEWED)
    (shop.config / "sluice.yaml").write_text("lake: lake\nspark: {small_batches: spark}\n")
    numbers = range(ROWS)
    rows = {
        "shop": ["a" if n % 2 else f"{n}" for n in numbers],
        "n": pa.array(numbers, pa.int32()),
        "text": ["x" * WIDTH] * ROWS,
    }
    folder = tmp_path / "shop" / "landing" / "2024-01-01"
    folder.mkdir(parents=True)
    pq.write_table(pa.table(rows), folder / "rows.parquet")
    small = Worker.start(tmp_path / "small")
    assert small.answer() == {"ready": True}
    small.tell(shop, day(1))
    said = small.answer()
    small.kill()
    assert said is None or said["error"] == "Retryable", said["message"]
    for table in shop.project.graph.tables.values():
        assert not any(faults(shop.project, table).values())
    assert "shop.totals committed" in shop.run(day(1)), "the tests' own Spark has more memory"
    totals = DeltaTable(shop.uri("totals")).to_pyarrow_table(columns=["shop", "lines", "texts"])
    found = {row["shop"]: (row["lines"], len(row["texts"])) for row in totals.to_pylist()}
    assert found["a"] == (ROWS // 2, ROWS // 2)
    assert len(found) == ROWS // 2 + 1
