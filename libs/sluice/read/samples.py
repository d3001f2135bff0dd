"""Some of the rows in which two versions of a table differ, before and after.

The change feed gives candidates; only as many as needed are read. Each is then looked up in both
versions, so a row that changed back is none. Cost: two look-ups for each candidate.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sluice.declare.table import Table
from sluice.delta.reading.live import stream_feed
from sluice.language.names import Row
from sluice.read.conditions.key_order import KeyColumns
from sluice.read.lake import Lake
from sluice.read.ordered.keyed import KeyedTable
from sluice.read.stored.snapshot import open_delta

SPARE = 10  # candidates for each row asked for


@dataclass(frozen=True)
class Sample:
    """One row that differs: `before` is None if it is new, `after` if it is gone."""

    before: Row | None
    after: Row | None


def samples(lake: Lake, table: Table, version: int | None, most: int) -> Iterator[Sample]:
    """Yield up to `most` rows in which the table's head differs from `version`.

    Without a version, all rows are new.
    """
    now = lake.stored(table)
    was = lake.stored(table, version) if version is not None else None
    found = 0
    for key in _candidates(now, -1 if version is None else version, most * SPARE):
        sample = Sample(row_of(was, key) if was else None, row_of(now, key))
        if found < most and sample.before != sample.after:
            found += 1
            yield sample


def _candidates(now: KeyedTable, after: int, most: int) -> Iterator[tuple[Any, ...]]:
    """Yield keys that versions after `after` touched, each once."""
    seen: set[tuple[Any, ...]] = set()
    delta = open_delta(now.name, now.snapshot.uri, now.version)
    for version in range(after + 1, now.version + 1):
        for batch in stream_feed(delta, version - 1, version):
            names = [name for name in now.identity if name in batch.schema.names]
            for row in batch.select(names).to_pylist() if len(names) == len(now.identity) else ():
                key = tuple(row[name] for name in now.identity)
                if key not in seen and len(seen) < most:
                    seen.add(key)
                    yield key
            if len(seen) >= most:
                return


def row_of(table: KeyedTable, key: tuple[Any, ...]) -> Row | None:
    """Return the row of a whole key, hidden columns of it included; None if there is none."""
    if not {*table.identity} <= {*table.snapshot.schema.names}:
        return None  # rebuilt with a key of other columns
    columns = KeyColumns.of(table.name, table.identity, table.snapshot.schema)
    rows = table.select((columns.exactly(key),), None, limit=1)
    return next((dict(row) for row in rows), None)
