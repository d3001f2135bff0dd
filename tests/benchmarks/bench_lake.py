"""A lake of one pipeline called `bench`, a warm session on it, and what work there costs."""

import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.changes import CHANGE
from sluice.declare.project import Project, load
from sluice.delta.log import Log
from sluice.delta.log.files import table_size
from sluice.delta.log.position import Head, Position, head
from sluice.delta.places.lake_layout import layout
from sluice.delta.reading.local import to_spark_types
from sluice.delta.reading.spark_reads import snapshot
from sluice.delta.writing.commit import commit_arrow, create
from sluice.delta.writing.merge import SparkCommit, changelog_counts
from sluice.engine import BatchReport
from sluice.engine.advance import Run, advance
from sluice.limits import Limits
from sluice.spark.session import Spark

HEAD = 'pipeline: bench\nschedule: "@daily"\nstart_date: 2024-01-01\n'


def declared(folder: Path, tables: str, memory: str) -> Project:
    """A project of these sources and views; `memory`: Spark's heap."""
    path = folder / "config" / "pipelines" / "bench.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEAD + tables, encoding="utf-8")
    spark = f"{{conf: {{spark.driver.memory: {memory}}}}}"
    (folder / "config" / "sluice.yaml").write_text(f"lake: lake\nspark: {spark}\n")
    return load(folder / "config")


class BenchLake:
    """The lake of a project, and its session."""

    def __init__(self, project: Project):
        self.project, self.spark = project, Spark(project.spark)

    @property
    def session(self) -> SparkSession:
        return self.spark.tune(small=False)

    def uri(self, name: str) -> str:
        return layout(self.project).uri(f"bench.{name}")

    def head(self, name: str) -> Head:
        found = head(self.uri(name))
        assert found is not None
        return found

    def now(self, name: str) -> DataFrame:
        """What a table holds now."""
        return snapshot(self.session, self.uri(name), self.head(name).version, Limits())

    def fill(self, name: str, rows: DataFrame, key: Sequence[str]) -> None:
        """Make a table of these rows."""
        create(self.uri(name), rows.schema, position(0))
        self.commit(name, rows.withColumn(CHANGE, F.lit("insert")), key)

    def commit(self, name: str, changelog: DataFrame, key: Sequence[str]) -> int:
        """Commit a changelog by Spark, and return the number of its changes."""
        kept, before = changelog.persist(), self.head(name)
        done = SparkCommit(self.session, before, position(before.next_batch), tuple(key))
        changed = done.changelog(kept, changelog_counts(kept)).changed
        kept.unpersist()
        return changed

    def deliver(self, name: str, changelog: DataFrame, key: Sequence[str]) -> None:
        """Commit a changelog as a batch of a source does: a small one without Spark."""
        kept, before = changelog.persist(), self.head(name)
        if kept.count() <= self.project.spark.small_changelog:
            commit_arrow(
                before, to_spark_types(kept.toArrow()), tuple(key), position(before.next_batch)
            )
        else:
            self.commit(name, kept, key)
        kept.unpersist()

    def copy(self, name: str) -> None:
        """Write a table's rows for DuckDB, which can't read marked files; nobody times it."""
        self.now(name).write.mode("overwrite").parquet(self._copy_of(name))

    def copied(self, name: str) -> str:
        """Return what DuckDB reads of a table that was copied."""
        return f"read_parquet('{self._copy_of(name)}/*.parquet')"

    def _copy_of(self, name: str) -> str:
        return self.uri(name).rpartition("/")[0] + f"/copies/{name}"

    def follow(self, view: str) -> Sequence[BatchReport]:
        """Bring a view up to its inputs."""
        return advance(self.spark, self.project, self.project.graph.table(view), Run("bench"))

    def megabytes(self, name: str) -> float:
        return round(table_size(self.uri(name), self.head(name).version).bytes / 1e6, 1)

    def jobs(self) -> int:
        """Return the number of jobs that Spark has run."""
        context: Any = self.session.sparkContext
        return int(context._jsc.sc().dagScheduler().numTotalJobs())


def position(batch: int) -> Position:
    """Position of a batch that no source takes part in."""
    return Position(batch, uuid.uuid4().hex, "ingest")


def written_bytes(uri: str, version: int) -> int:
    """Return the bytes of a commit: new files, those of the change feed, and the commit itself."""
    actions = Log(uri).actions(version)
    known = {action["remove"]["path"] for action in actions if "remove" in action}
    files = [action[kind] for action in actions for kind in ("add", "cdc") if kind in action]
    log = Path(uri, "_delta_log", f"{version:020d}.json").stat().st_size
    return log + sum(file["size"] for file in files if file["path"] not in known)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the processor seconds of this process and those it has started, and the result."""
    before = cpu_seconds()
    result = work()
    return round(cpu_seconds() - before, 2), result


def cpu_seconds() -> float:
    """Return the processor seconds of this process and those it has started, so far."""
    mine = psutil.Process()
    times = [each.cpu_times() for each in (mine, *mine.children(recursive=True))]
    return float(sum(each.user + each.system for each in times))
