"""Invariants of a stored table at any time, checked by its log and files only.

`sluice verify` and the tests use the same checks. Each returns a list of faults as text, which is
empty if all is well. Maintenance may have deleted something: then the checks cover the rest.
`sluice.operate.verify` compares the rows with the result of their query.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import pyarrow as pa
from deltalake.exceptions import DeltaError

from sluice.delta.intervals import Note
from sluice.delta.log import Log
from sluice.delta.log.position import CREATE, REBUILD, UPKEEP, Position, positions
from sluice.delta.note_tables import files_of
from sluice.delta.places.delta_rs import open_table
from sluice.delta.reading.live import live_rows, stream_feed
from sluice.delta.reading.spark_reads import is_wider
from sluice.delta.writing.commit import GROW
from sluice.language.names import CHANGE_TYPE, COMES, OF_FEED

_BYTES = 16
_MODULUS = 1 << (8 * _BYTES)


@dataclass(frozen=True)
class Digest:
    """Number of rows, and the sum of their hashes, whatever their order, files and versions.

    Two tables have the same digest exactly if they hold the same rows equally often. Rows that a
    change feed adds and removes can be added to a digest and subtracted from it.
    """

    rows: int = 0
    total: int = 0

    def __add__(self, other: "Digest") -> "Digest":
        return Digest(self.rows + other.rows, (self.total + other.total) % _MODULUS)

    def __sub__(self, other: "Digest") -> "Digest":
        return Digest(self.rows - other.rows, (self.total - other.total) % _MODULUS)

    def __str__(self) -> str:
        return f"{self.rows}:{self.total:032x}"


def digest_of(rows: Iterable[Mapping[str, Any]]) -> Digest:
    """Return the digest of rows as Python values. A null column counts as a missing one.

    So rows from before a column was added keep their digest. Cost: about 10 microseconds a row.
    """
    count, total = 0, 0
    for row in rows:
        given = sorted((name, canonical(value)) for name, value in row.items() if value is not None)
        hashed = blake2b(repr(given).encode(), digest_size=_BYTES).digest()
        count, total = count + 1, total + int.from_bytes(hashed)
    return Digest(count, total % _MODULUS)


def canonical(value: Any) -> Any:
    """Return a value with one `repr` for equal ones: -0.0 is 0.0, all NaN are one, times UTC."""
    match value:
        case float():
            return value + 0.0
        case datetime():
            return (value.astimezone(UTC) if value.tzinfo else value).isoformat()
        case dict():
            return sorted((name, canonical(v)) for name, v in value.items())
        case list() if value and all(isinstance(entry, tuple) for entry in value):
            return sorted(map(repr, map(canonical, value)))  # a map: Arrow returns its entries
        case list() | tuple():
            return [canonical(v) for v in value]
        case _:
            return value


def position_faults(uri: str) -> Iterator[str]:
    """Check that batches rise, versions read never fall, and all commits of rows are accounted for.

    A rebuild starts again: it may follow rows of other writers, and replaced inputs.
    """
    log, found = Log(uri), positions(uri)[::-1]
    for (_, earlier), (version, later) in pairwise(found):
        if later.kind == REBUILD:
            continue
        yield from (f"version {version}: {what}" for what in _steps(earlier, later))
        changed = log.changes_data(version)
        if changed == (later.unchanged_since is not None) and later.kind != CREATE:
            said = "changed rows, though its" if changed else "changed no row, though its"
            yield f"version {version}: {said} position says otherwise"
        between = range(version - 1, version - 1 if later.after is None else later.after, -1)
        for foreign in between:
            if not log.missing_commits([foreign]) and log.changes_data(foreign):
                yield f"version {version}: was not computed from the rows of version {foreign}"


def _steps(earlier: Position, later: Position) -> Iterator[str]:
    """Yield the faults of a position, compared with the one before it."""
    carries_on = later.kind in {*UPKEEP, GROW, CREATE}
    if later.batch < earlier.batch or (later.batch == earlier.batch and not carries_on):
        yield f"batch {later.batch} came after batch {earlier.batch}"
    for kind, before, after in (
        ("input", earlier.inputs, later.inputs),
        ("reference", earlier.references, later.references),
    ):
        for name, pin in before.items():
            now = after.get(name)
            if now is None:
                yield f"the {kind} {name} is no longer recorded"
            elif now.table != pin.table:
                yield f"the {kind} {name} was replaced by another table without a rebuild"
            elif now.version < pin.version:
                yield f"the {kind} {name} went back from version {pin.version} to {now.version}"


def feed_faults(uri: str) -> Iterator[str]:
    """Check that the change feed, from its oldest readable version, adds up to the rows."""
    newest = open_table(uri).version()
    oldest = feed_start(uri, newest)
    try:
        began = digest(uri, oldest)
    except (DeltaError, OSError):
        return  # the rows from which the feed begins were vacuumed
    try:
        rows, changes = digest(uri, newest), feed_digest(uri, oldest, newest)
    except (DeltaError, OSError, pa.ArrowException) as error:
        said = str(error).partition("\n")[0]
        yield f"the change feed from version {oldest} can't be read to version {newest}: {said}"
        return
    if began + changes != rows:
        folded = (began + changes).rows
        yield (
            f"the change feed from version {oldest} adds up to {folded} rows that differ "
            f"from the {rows.rows} of version {newest}"
        )


def feed_start(uri: str, newest: int) -> int:
    """Return the oldest version from which the feed is complete up to `newest`."""
    log = Log(uri)
    for version in range(newest, 0, -1):
        if log.missing_commits([version]) or log.missing_files(version):
            return version
        if log.changes_schema(version) and (
            log.ends_feed(version)
            or log.missing_commits([version - 1])
            or not is_wider(uri, version - 1, version)
        ):
            return version
    return 0


def feed_digest(uri: str, after: int, upto: int) -> Digest:
    """Return the digest of the net change in the feed of versions (after, upto]."""
    total = Digest()
    if after >= upto:
        return total
    for batch in stream_feed(open_table(uri, version=upto), after, upto):
        added: list[dict[str, Any]] = []
        removed: list[dict[str, Any]] = []
        for change in batch.to_pylist():
            side = added if change[CHANGE_TYPE] in COMES else removed
            side.append({c: v for c, v in change.items() if c not in OF_FEED})
        total = total + digest_of(added) - digest_of(removed)
    return total


def digest(uri: str, version: int | None = None, ignore: Collection[str] = ()) -> Digest:
    """Return the canonical hash of a table's rows: all columns, also hidden ones, but `ignore`."""
    table = open_table(uri, version=version)
    dataset = live_rows(table, uri, files_of(uri))
    columns = [name for name in dataset.schema.names if name not in ignore]
    batches = dataset.to_batches(columns=columns)
    return sum((digest_of(batch.to_pylist()) for batch in batches), Digest())


def count_faults(
    noted: Iterable[Note], stored: Mapping[Any, int] | None = None, *, repeats: bool = False
) -> Iterator[str]:
    """Check that each delivery's rows read = accepted + quarantined, and accepted ones are stored.

    `stored`: rows of the table by the start of their interval. With `repeats`, equal rows of a
    delivery are stored once.
    """
    for one in noted:
        read, accepted, bad = one.rows_read, one.rows_accepted, one.rows_quarantined
        if read != accepted + bad:
            yield f"{one.interval}: {read} rows read, {accepted} accepted and {bad} quarantined"
        if stored is None:
            continue
        kept = sum(
            n for start, n in stored.items() if one.interval.start <= start < one.interval.end
        )
        if kept > accepted or (kept < accepted and not repeats):
            yield f"{one.interval}: {accepted} rows were accepted, {kept} are stored"


def rows_by(uri: str, column: str) -> dict[Any, int]:
    """Count the rows of a table for each value of a column."""
    counted = live_rows(open_table(uri), uri).to_table([column]).group_by(column)
    found = counted.aggregate([([], "count_all")]).to_pylist()
    return {row[column]: row["count_all"] for row in found}


def row_count(uri: str, version: int) -> int:
    """Return the number of rows of a table, as its files report it."""
    return live_rows(open_table(uri, version=version), uri).count_rows()
