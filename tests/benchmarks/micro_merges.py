"""Merges of random keys into a large table: by Sluice, Delta with vectors, Iceberg and Paimon.

python -m tests.benchmarks.micro_merges [--rows 20000000] [--changes 10000 100000 1000000]
    [--ways Sluice Delta Iceberg Paimon] [--json FILE]

Half of a merge's rows are updates of random rows, half have new keys, as in the micro-benchmark of
LHBench (Jain et al., CIDR 2023). Each contender reads the same Parquet files: ten merges of the
first number of rows, then one of each other. Sluice delivers them to a source with a key, each by a
new process of `sluice run`, so its history of deliveries and its change feed are written as well;
Spark merges in one warm session, with the change feeds of Delta and Paimon; Iceberg has none.
Iceberg and Paimon get a PySpark for which the registry has a build, in an environment of their own
that is kept in the cache folder. Prints for
each merge its seconds, CPU seconds and megabytes, and how many times longer a scan takes after ten
merges. All must end with the same rows.
"""

import argparse
import datetime as dt
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table
from tests.benchmarks import spark_merges
from tests.benchmarks.spark_pipelines import adopt_orphans, cpu_of_children

import sluice
from sluice.cache import cache_folder
from sluice.spark.jars import classpath, retrieve
from sluice.spark.java import environment

FIRST, REPEATED, FILE_ROWS = dt.date(2024, 1, 1), 10, 1_000_000
BUILDS = {  # a format's artifact, and its PySpark
    "Iceberg": (("org.apache.iceberg", "iceberg-spark-runtime-4.0_2.13", "1.10.1"), "4.0.1"),
    "Paimon": (("org.apache.paimon", "paimon-spark-3.5", "0.9.0"), "3.5.7"),
}
PIPELINE = """\
pipeline: bench
schedule: "@daily"
start_date: 2024-01-01
sources:
  rows:
    path: "landing/{interval_start:%Y-%m-%d}/"
    format: parquet
    key: [id]
    schema: "id BIGINT, shop BIGINT, amount DECIMAL(12,2), note STRING"
"""


@dataclass(frozen=True)
class Measured:
    """A merge, a scan or the first rows; `nth`: the merges before a scan, or the merge's number."""

    way: str
    what: str
    nth: int
    seconds: float
    cpu_seconds: float
    bytes: int


class Merges:
    """The files that all merge, in a folder: `base`, and `merges` in their order."""

    def __init__(self, folder: Path, rows: int, changes: Sequence[int]) -> None:
        self.folder, self.rows = folder, rows
        self.draw = np.random.default_rng(7)
        (folder / "base").mkdir()
        (folder / "merges").mkdir()
        for start in range(0, rows, FILE_ROWS):
            ids = np.arange(start, min(start + FILE_ROWS, rows))
            pq.write_table(self._rows(ids), folder / "base" / f"{start:012}.parquet")
        for nth, count in enumerate([changes[0]] * REPEATED + [*changes[1:]]):
            old = self.draw.choice(self.rows, count // 2, replace=False)
            new = np.arange(self.rows, self.rows + count - len(old))
            self.rows += len(new)
            ids = self.draw.permutation(np.concatenate([old, new]))
            pq.write_table(self._rows(ids), folder / "merges" / f"{nth:03}-{count}.parquet")

    def _rows(self, ids: np.ndarray) -> pa.Table:
        """Return rows with these keys, which lie in no order of the table's files."""
        draw, count = self.draw, len(ids)
        amounts = pa.array(draw.integers(1, 1_000_000, count)).cast(pa.decimal128(21, 2))
        notes = pa.array(draw.integers(0, 10**9, count)).cast(pa.string())
        return pa.table(
            {
                "id": ids * 2_654_435_761 % 2**40,
                "shop": draw.integers(0, 1_000, count),
                "amount": amounts.cast(pa.decimal128(12, 2)),
                "note": pc.binary_join_element_wise("note", notes, " "),
            }
        )

    @property
    def merges(self) -> list[Path]:
        return sorted((self.folder / "merges").iterdir())


class Ours:
    """A lake whose source is delivered the files, one interval each."""

    def __init__(self, merges: Merges) -> None:
        self.merges, self.home = merges, merges.folder / "ours"
        pipelines = self.home / "config" / "pipelines"
        pipelines.mkdir(parents=True)
        (pipelines / "bench.yaml").write_text(PIPELINE, "utf-8")
        conf = "spark: {conf: {spark.driver.memory: 4g}}\n"
        (self.home / "config" / "sluice.yaml").write_text(f"lake: lake\n{conf}", "utf-8")
        self.tables = self.home / "lake" / "bench"

    def measure(self) -> Iterator[Measured]:
        yield self._deliver("base", 0, sorted((self.merges.folder / "base").iterdir()))
        yield self._scan(0)
        for nth, file in enumerate(self.merges.merges, 1):
            yield self._deliver("merge", nth, [file])
            if nth == REPEATED:
                yield self._scan(nth)

    def _deliver(self, what: str, nth: int, files: Sequence[Path]) -> Measured:
        day = FIRST + dt.timedelta(days=nth)
        landing = self.home / "landing" / f"{day}"
        landing.mkdir(parents=True)
        for file in files:
            os.link(file, landing / file.name)
        before, used, began = spark_merges.size(self.tables), cpu_of_children(), time.monotonic()
        command = [sys.executable, "-m", "sluice.cli.main", "run", "--config", "config"]
        interval = ["--start", f"{day}", "--end", f"{day + dt.timedelta(days=1)}"]
        done = subprocess.run(
            [*command, *interval], cwd=self.home, capture_output=True, text=True, check=False
        )
        seconds = time.monotonic() - began
        assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
        cpu, grown = cpu_of_children() - used, spark_merges.size(self.tables) - before
        return Measured("Sluice", what, nth, round(seconds, 2), round(cpu, 1), grown)

    def _scan(self, nth: int) -> Measured:
        self.totals()
        began, used = time.monotonic(), time.process_time()
        self.totals()
        seconds, cpu = time.monotonic() - began, time.process_time() - used
        return Measured("Sluice", "scan", nth, round(seconds, 2), round(cpu, 1), 0)

    def totals(self) -> list[str]:
        """Return what the query of `spark_merges` does."""
        rows = sluice.open(self.home / "config").table("rows").to_arrow()
        sums = [pc.sum(rows[name]).as_py() for name in ("shop", "amount")]
        return [*map(str, (rows.num_rows, *sums, pc.max(rows["note"]).as_py()))]


def measure_spark(
    way: str, format_: str, python: Path, jars: Sequence[Path], merges: Merges
) -> tuple[list[Measured], list[str]]:
    """Return what merges by a Spark take, and the totals that its table has at the end."""
    script = Path(spark_merges.__file__)
    env = {**os.environ, **environment(), "PYSPARK_PYTHON": str(python)}
    env = {k: v for k, v in env.items() if k not in ("SPARK_HOME", "PYTHONPATH")}
    place = os.pathsep.join(map(str, jars))
    done = subprocess.run(
        [str(python), str(script), format_, str(merges.folder), place],
        env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    *measured, last = lines
    return [Measured(way, **line) for line in measured], last["rows"]


def prepare(way: str) -> tuple[Path, list[Path]]:
    """Return the Python with a PySpark, and the jars of a format for it; they are made once."""
    if way == "Delta":
        return Path(sys.executable), [*map(Path, classpath())]
    artifact, release = BUILDS[way]
    _, name, of = artifact
    home = cache_folder() / f"{way.lower()}-{of}-spark-{release}"
    python, jar = home / "bin" / "python", home / f"{name}-{of}.jar"
    if not jar.exists():
        shutil.rmtree(home, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        wanted = [f"pyspark=={release}", f"psutil=={version('psutil')}"]
        subprocess.run([str(python), "-m", "pip", "install", "-q", *wanted], check=True)
        retrieve([artifact], home)
    return python, [jar]


def say(one: Measured) -> Measured:
    """Print a figure as soon as it is there."""
    print(f"{one.way}, {one.what} {one.nth}: {one.seconds} s, {one.cpu_seconds} CPU s", flush=True)
    return one


def show(found: Sequence[Measured], changes: Sequence[int]) -> None:
    """Print the merges by size, and the scans."""
    sizes = [changes[0]] * REPEATED + [*changes[1:]]
    table = Table("rows", "way", "seconds", "CPU seconds", "MB written")
    ways = [*dict.fromkeys(one.way for one in found)]
    for count in ("base", *changes):
        for way in ways:
            of = [m for m in found if m.way == way and _rows(m, sizes) == count]
            shown = [
                float(np.median([getattr(m, n) for m in of])) for n in ("seconds", "cpu_seconds")
            ]
            written = float(np.median([m.bytes for m in of])) / 1e6
            rows = count if count == "base" else f"{count:,}"
            table.add_row(rows, way, *(f"{value:.1f}" for value in (*shown, written)))
    Console().print(table)
    for way in ways:
        first, last = (m.seconds for m in found if m.way == way and m.what == "scan")
        print(f"{way}: a scan takes {first} s, after ten merges {last} s: {last / first:.2f}x")


def _rows(one: Measured, sizes: Sequence[int]) -> Any:
    return {"base": "base", "merge": sizes[one.nth - 1] if one.nth else None}.get(one.what)


def main() -> None:
    """Measure all contenders, and print tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--changes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    ways = ["Sluice", "Delta", *BUILDS]
    parser.add_argument("--ways", nargs="+", choices=ways, default=ways)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    adopt_orphans()
    prepared = {way: prepare(way) for way in asked.ways if way != "Sluice"}
    found, totals = list[Measured](), list[list[str]]()
    with tempfile.TemporaryDirectory() as folder:
        merges = Merges(Path(folder), asked.rows, asked.changes)
        if "Sluice" in asked.ways:
            ours = Ours(merges)
            found += map(say, ours.measure())
            totals.append(ours.totals())
        for way, (python, jars) in prepared.items():
            measured, total = measure_spark(way, way.lower(), python, jars, merges)
            found += map(say, measured)
            totals.append(total)
    assert all(total == totals[0] for total in totals), totals
    show(found, asked.changes)
    if asked.json:
        asked.json.write_text(json.dumps([asdict(one) for one in found], indent=2), "utf-8")


if __name__ == "__main__":
    main()
