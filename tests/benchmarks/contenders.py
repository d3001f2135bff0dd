"""The same questions asked of four engines over the same rows: ours, Spark, duckdb and RocksDB.

Each returns whole rows, newest first. duckdb gets the list of files that the table's version has,
RocksDB two stores, by (key, time) and by time, because it has no other way.
"""

import datetime as dt
import pickle
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from rocksdict import Rdict, WriteBatch
from tests.benchmarks.traces import Traces

from sluice.kinds.window_store.reader import ReadOnlyWindowStore
from sluice.read import snapshot
from sluice.read.lake import Lake
from sluice.read.scan import Touched

LATEST = 2**63 - 1
VISIBLE = "service, window_start, trace, duration, status, bytes"
KEPT = (snapshot.footer, snapshot.leaves, snapshot.group_bounds, snapshot.group_places)
Rows = list[Any]


@dataclass(frozen=True)
class Question:
    """The last `limit` rows of a key or of all, by a time, of a status."""

    name: str
    limit: int
    key: int | None = None
    time_to: dt.datetime | None = None
    status: str | None = None

    def sql(self, literal: str = "TIMESTAMP") -> str:
        """As SQL behind a FROM; `literal` is the engine's word for a time with a zone."""
        tests = [f"service = {self.key}"] if self.key is not None else []
        if self.time_to:
            tests.append(f"window_start <= {literal} '{self.time_to:%Y-%m-%d %H:%M:%S+00:00}'")
        if self.status:
            tests.append(f"status = '{self.status}'")
        where = f"WHERE {' AND '.join(tests)}" if tests else ""
        order = "window_start DESC, service DESC, _sluice_interval DESC, _sluice_id DESC"
        return f"{where} ORDER BY {order} LIMIT {self.limit}"


class Ours:
    """The product; cold: just opened, with nothing known of any file."""

    def __init__(self, traces: Traces) -> None:
        self.lake = Lake(traces.project)
        self.store = self.lake.window("traces")
        self.touched = Touched()

    def forget(self) -> None:
        for known in KEPT:
            known.cache_clear()
        self.store = self.lake.window("traces")

    def ask(self, question: Question) -> Rows:
        rows = self.store.fetch(
            key=question.key,
            time_to=question.time_to,
            where=f"status = '{question.status}'" if question.status else None,
            reverse=True,
            limit=question.limit,
        )
        found = list(rows)
        self.touched = rows.touched
        return found


class Duck:
    """duckdb over the table's files; cold: another connection."""

    def __init__(self, traces: Traces) -> None:
        self.files = files_of(Lake(traces.project).window("traces"))
        self.forget()

    def forget(self) -> None:
        self.connection = duckdb.connect()
        self.connection.execute("SET parquet_metadata_cache = true")

    def ask(self, question: Question) -> Rows:
        shown = VISIBLE.replace("window_start", "epoch_us(window_start)")  # zones need an extension
        query = f"SELECT {shown} FROM read_parquet(?) {question.sql('TIMESTAMPTZ')}"
        return self.connection.execute(query, [self.files]).fetchall()


class SparkSql:
    """Spark's ORDER BY ... LIMIT over the table."""

    def __init__(self, traces: Traces, session: Any) -> None:
        self.session = session
        uri = Lake(traces.project).window("traces").table.snapshot.uri
        session.read.format("delta").load(uri).createOrReplaceTempView("traces")

    def ask(self, question: Question) -> Rows:
        return list(self.session.sql(f"SELECT {VISIBLE} FROM traces {question.sql()}").collect())


class Rocks:
    """RocksDB with the same rows, once by key and time and once by time."""

    def __init__(self, folder: Path) -> None:
        self.by_key, self.by_time = (Rdict(str(folder / name)) for name in ("by_key", "by_time"))

    def fill(self, store: ReadOnlyWindowStore) -> None:
        """Put every row into both; meant to be done once."""
        for number, batch in enumerate(store.all().batches()):
            mine, timed = WriteBatch(raw_mode=False), WriteBatch(raw_mode=False)
            times = batch.column(1).cast("int64")
            columns = [c.to_pylist() for c in batch.set_column(1, "at", times).columns]
            for nth, row in enumerate(zip(*columns, strict=True)):
                value, place = pickle.dumps(row), number * 65_536 + nth
                mine.put(_by_key(row[0], row[1], place), value)
                timed.put(struct.pack(">QQ", LATEST - row[1], place), value)
            self.by_key.write(mine)
            self.by_time.write(timed)
        self.by_key.flush()
        self.by_time.flush()

    def ask(self, question: Question) -> Rows:
        found: Rows = []
        for value in self._values(question):
            row = pickle.loads(value)  # noqa: S301 - what `fill` has written
            if question.status in (None, row[4]):
                found.append(row)
            if len(found) == question.limit:
                break
        return found

    def _values(self, question: Question) -> Iterator[bytes]:
        latest = _micros(question.time_to) if question.time_to else LATEST
        if question.key is None:
            first = struct.pack(">QQ", LATEST - latest, 0)
            yield from self.by_time.values(from_key=first)
            return
        first, prefix = _by_key(question.key, latest, 0), struct.pack(">I", question.key)
        for key, value in self.by_key.items(from_key=first):
            if key[:4] != prefix:
                return
            yield value


def files_of(store: ReadOnlyWindowStore) -> list[str]:
    """The files of the store's version."""
    snapshot = store.table.snapshot
    return [f"{snapshot.uri}/{file.path}" for file in snapshot.files(())]


def _by_key(key: int, at: int, number: int) -> bytes:
    return struct.pack(">IQQ", key, LATEST - at, number)


def _micros(at: dt.datetime) -> int:
    return (at - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)


Ask = Callable[[Question], Rows]
