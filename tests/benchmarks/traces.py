"""A window store filled by micro-batches through the product: files, ingestion, view, upkeep.

Keys are zipf distributed (rank r has a share of 1/r), times spread over each interval; one row in
a hundred comes late, by up to three days. The lake is kept and used again if it is there.
"""

import datetime as dt
import json
import time
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sluice.declare.project import Project, load
from sluice.engine import BatchReport
from sluice.language.interval import Interval
from sluice.operate.maintain import Upkeep, maintain
from sluice.operate.run import intervals_to_run, run
from sluice.spark.session import Spark

START = dt.datetime(2017, 3, 1, tzinfo=dt.UTC)
MICROSECOND = dt.timedelta(microseconds=1)
LATE_SHARE, LATEST = 0.01, dt.timedelta(days=3)
PIPELINE = """
pipeline: bench
schedule: "0 */{hours} * * *"
start_date: 2017-03-01
end_date: {end:%Y-%m-%d}
sources:
  events:
    path: "landing/{{interval_start:%Y-%m-%dT%H}}/"
    format: parquet
    schema: >-
      trace STRING, service INT, at TIMESTAMP, duration INT, status STRING, bytes BIGINT
    time: at
views:
  traces: {{kind: window_store, from: events, key: [service], time: at, duplicates: true}}
"""
STATUSES = np.array(["ok", "slow", "error"], dtype=object)
SHARES = (0.949, 0.05, 0.001)  # `error` is the rare one


@dataclass(frozen=True)
class Traces:
    """So many rows over so many days, in so many batches a day, below one folder."""

    folder: Path
    rows: int
    days: int = 30
    keys: int = 100_000
    batches: int = 8
    memory: str = "3g"

    @property
    def hours(self) -> int:
        """The length of an interval."""
        return 24 // self.batches

    @property
    def name(self) -> str:
        return f"{self.rows}-{self.days}-{self.keys}-{self.batches}"

    @property
    def home(self) -> Path:
        return self.folder / self.name

    @cached_property
    def project(self) -> Project:
        path = self.home / "config" / "pipelines" / "bench.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        end = START + dt.timedelta(days=self.days)
        path.write_text(PIPELINE.format(hours=self.hours, end=end), encoding="utf-8")
        settings = f"lake: lake\nspark: {{conf: {{spark.driver.memory: {self.memory}}}}}\n"
        (self.home / "config" / "sluice.yaml").write_text(settings)
        return load(self.home / "config")

    def key(self, rank: Any) -> Any:
        """The key of a rank: neighbours in rank are no neighbours in key order."""
        return rank * 7_919 % self.keys

    def load(self, spark: Spark) -> float:
        """Deliver what is missing, interval by interval, and look after it; seconds."""
        pipeline, begun = self.project.pipelines["bench"], time.monotonic()
        missing = intervals_to_run(self.project, pipeline, None, None, dt.datetime.now(dt.UTC))
        for interval in missing:
            self._land(interval)
        if missing:
            run(spark, self.project, pipeline, missing, _tell)
        for upkeep in maintain(spark, self.project, self.project.graph.tables.values()):
            _tell(upkeep)
        return time.monotonic() - begun

    def _land(self, interval: Interval) -> None:
        path = self.home / "landing" / f"{interval.start:%Y-%m-%dT%H}" / "part.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(self._rows(interval), path)

    def _rows(self, interval: Interval) -> pa.Table:
        count = self.rows // (self.days * self.batches)
        rng = np.random.default_rng(int(interval.start.timestamp()))
        shares = 1 / np.arange(1, self.keys + 1)
        ranks = np.searchsorted(np.cumsum(shares) / shares.sum(), rng.random(count))
        length = (interval.end - interval.start) // MICROSECOND
        late = np.where(rng.random(count) < LATE_SHARE, rng.integers(0, LATEST // MICROSECOND), 0)
        times = int(interval.start.timestamp() * 1e6) + rng.integers(0, length, count) - late
        return pa.table(
            {
                "trace": _traces(rng.bytes(8 * count).hex(), count),
                "service": pa.array(self.key(ranks), pa.int32()),
                "at": pa.array(times).cast(pa.timestamp("us", "UTC")),
                "duration": rng.integers(1, 60_000, count).astype("int32"),
                "status": rng.choice(STATUSES, count, p=SHARES),
                "bytes": rng.integers(100, 10_000_000, count),
            }
        )


def _traces(digits: str, count: int) -> pa.Array:
    """As many texts of sixteen of those digits each."""
    offsets = pa.py_buffer(np.arange(count + 1, dtype="int32") * 16)
    return pa.StringArray.from_buffers(count, offsets, pa.py_buffer(digits.encode()))


def _tell(done: BatchReport | Upkeep) -> None:
    """A line of JSON, so that a long load can be followed."""
    print(json.dumps(asdict(done), default=str), flush=True)
