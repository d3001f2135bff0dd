"""A table's position: the version of each input that its rows reflect.

Every commit that Sluice makes carries the whole position in `userMetadata`. So the head commit
alone shows where the next batch begins, even after the log before it was cleaned. Reading it starts
no Spark.

A head also shows whether the table is still set up as Sluice made it: with a feed, readable by all
readers. Other writers with Spark may enable features that some readers can't read, or disable those
that consumers need. Faults are reported before the next batch.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from sluice.delta.log import Log
from sluice.delta.log.opened import CommitCache, commit_of, exists, open_version
from sluice.delta.places.delta_rs import store_fault
from sluice.delta.places.lake_layout import DamagedLog, moved_away, table_at
from sluice.errors import ForeignCommit, HistoryLost, LogCleaned
from sluice.language.names import rename_id

FaultAndRepair = tuple[str, str]  # the fault, and its repair
SETTINGS: Mapping[str, tuple[str, str]] = {  # Delta treats an unset one as false
    "delta.enableChangeDataFeed": ("false", "views over it can't read what changed"),
    "delta.appendOnly": ("true", "no row of it can be corrected"),
}
FEATURES: Mapping[str, str] = {"columnMapping": "readers without Spark silently read nulls"}
MAPPING = "delta.columnMapping.mode"
READABLE = frozenset({"deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"})


def faults(table: DeltaTable, uri: str) -> Iterator[FaultAndRepair]:
    """Yield the settings and features of a table that obstruct batches or readers."""
    settings = table.metadata().configuration
    for name, (wrong, why) in SETTINGS.items():
        if settings.get(name, "false").lower() == wrong:
            good = "true" if wrong == "false" else "false"
            yield f"{name} is {wrong}: {why}", set_to(uri, name, good)
    for name in FEATURES.keys() & unread_features(table):
        repair = f"{moved_away(uri)}: Delta can't remove such a feature"
        yield f"{name} was switched on: {FEATURES[name]}", repair


def unread_features(table: DeltaTable) -> set[str]:
    """Return the names of the table's features that only Spark reads rightly."""
    features = set(table.protocol().reader_features or ()) - READABLE
    mapping = table.metadata().configuration.get(MAPPING, "none").lower()
    return features if mapping == "none" else features | {"columnMapping"}


def set_to(uri: str, name: str, value: str) -> str:
    """Return the statement that sets a property."""
    return f"ALTER TABLE delta.`{uri}` SET TBLPROPERTIES ('{name}' = '{value}')"


FIELD = "sluice"
CREATE, REBUILD = "create", "rebuild"
UPKEEP = frozenset({"compact", "seal", "vacuum"})  # kinds of commits that don't come from batches
MOST_KEPT = 512
Frontier = Mapping[str, int]  # of each ancestor source, the version that a table reflects


@dataclass(frozen=True)
class Pin:
    """One version of one Delta table; `table` is Delta's own table id, not its path.

    `attempt`: the one named by the position at that version, if it is known.
    """

    table: str
    version: int
    attempt: str = field(default="", compare=False)


Pins = Mapping[str, Pin]  # by the ids of tables


@dataclass(frozen=True)
class Position:
    """Position of a table: what a commit reflects.

    `inputs` drive the table; `references` were only looked up. `after` is the version of the table
    from which the commit was computed. `unchanged_since` is set on commits that change no data.
    `refills`: number of groups filled again from the input since the table was built. `parts`:
    fingerprints of the definition's parts, if they can be distinguished. `topic`: the place that a
    source has reached in a Kafka topic, or in somebody else's table. `meaning`: the definition
    itself.
    `renames`: old and new ids of tables that got other names since the table was made, in order.
    `cost`: what the batch spent.
    """

    batch: int
    attempt: str
    kind: str
    definition: str = ""
    inputs: Pins = field(default_factory=dict)
    references: Pins = field(default_factory=dict)
    frontier: Frontier = field(default_factory=dict)
    run: str = ""
    horizon: datetime | None = None
    after: int | None = None
    unchanged_since: int | None = None
    refills: int = 0
    parts: Mapping[str, str] = field(default_factory=dict, repr=False)
    topic: Mapping[str, Any] = field(default_factory=dict)
    meaning: Mapping[str, Any] = field(default_factory=dict, repr=False)
    renames: tuple[tuple[str, str], ...] = ()
    cost: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def to_json(self) -> str:
        """Return the text for `userMetadata`."""
        body: dict[str, Any] = {
            "batch": self.batch,
            "attempt": self.attempt,
            "kind": self.kind,
            "definition": self.definition,
            "inputs": _plain(self.inputs),
            "references": _plain(self.references),
            "frontier": dict(self.frontier),
            "run": self.run,
            "horizon": self.horizon.isoformat() if self.horizon else None,
        }
        optional = {
            "refills": self.refills,
            "parts": dict(self.parts),
            "topic": dict(self.topic),
            "meaning": dict(self.meaning),
            "renames": self.renames,
        }
        body |= {name: value for name, value in optional.items() if value}
        if self.cost.get("attempt") == self.attempt:  # not carried over from another commit
            body["cost"] = {name: of for name, of in self.cost.items() if name != "attempt"}
        versions = {"after": self.after, "unchanged_since": self.unchanged_since}
        body |= {name: version for name, version in versions.items() if version is not None}
        return json.dumps({FIELD: body}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | None) -> "Position | None":
        """Read the position from a commit's `userMetadata`; None if Sluice did not write it."""
        try:
            body = json.loads(text or "")[FIELD]
        except (ValueError, KeyError, TypeError):
            return None
        pins = {name: _pins(body.get(name, {})) for name in ("inputs", "references")}
        known = {f.name: body[f.name] for f in fields(cls) if f.name in body}
        renames = tuple((old, new) for old, new in body.get("renames", ()))
        horizon = body.get("horizon") and datetime.fromisoformat(body["horizon"])
        return cls(**{**known, **pins, "horizon": horizon or None, "renames": renames})

    @classmethod
    def of_commit(cls, version: int, text: str | None) -> "Position | None":
        """Read the position of the table at a commit; None if its `userMetadata` records none."""
        found = cls.from_json(text)
        return None if found and found.is_overtaken(version) else found

    def is_overtaken(self, version: int) -> bool:
        """True if upkeep landed on commits that it was not made from: theirs is the position."""
        return self.kind in UPKEEP and self.after is not None and self.after != version - 1

    @property
    def reads(self) -> tuple[str, ...]:
        """Ids of its inputs and references."""
        return (*self.inputs, *self.references)

    def rename_table(self, old: str, new: str) -> "Position":
        """Return the same position after a table got another name."""
        return replace(
            self,
            inputs={rename_id(name, old, new): pin for name, pin in self.inputs.items()},
            references={rename_id(name, old, new): pin for name, pin in self.references.items()},
            frontier={rename_id(name, old, new): at for name, at in self.frontier.items()},
            renames=(*self.renames, (old, new)),
        )

    def as_named_in(self, newer: "Position") -> "Position":
        """Return the same position with the names of a newer position of the same table."""
        position = self
        for old, new in newer.renames[len(self.renames) :]:
            position = position.rename_table(old, new)
        return position

    def without_change(self, data_version: int) -> "Position":
        """Return the same position for a commit that changes no row."""
        return replace(self, unchanged_since=data_version)


def _plain(pins: Pins) -> dict[str, dict[str, Any]]:
    return {
        name: {"table": pin.table, "version": pin.version}
        | ({"attempt": pin.attempt} if pin.attempt else {})
        for name, pin in pins.items()
    }


def _pins(plain: Mapping[str, Mapping[str, Any]]) -> dict[str, Pin]:
    return {
        name: Pin(pin["table"], pin["version"], pin.get("attempt", ""))
        for name, pin in plain.items()
    }


@dataclass(frozen=True)
class Head:
    """Newest commit of a table; `data_version` is the last version that changed its rows.

    `altered`: settings that differ from Sluice's, each with its repair.
    """

    uri: str
    table: str
    version: int
    position: Position | None
    data_version: int
    last_txn: int = 0
    altered: tuple[FaultAndRepair, ...] = ()

    @property
    def pin(self) -> Pin:
        """The head as an input of another table."""
        return Pin(self.table, self.version, self.position.attempt if self.position else "")

    @property
    def is_filled(self) -> bool:
        """True if rows were ever committed; false if a crash followed the table's creation."""
        return self.position is None or self.position.kind != CREATE

    @property
    def next_batch(self) -> int:
        """Number of the next batch; Delta skips a number that it has seen."""
        return max(self.last_txn, self.position.batch if self.position else 0) + 1


_heads: CommitCache[Head] = CommitCache(MOST_KEPT)


def head(uri: str) -> Head | None:
    """Return the head of the table at `uri`; None if there is no table.

    A newest commit without a position comes from another writer. Commits without data changes are
    skipped; others raise HistoryLost. A commit is read once in a process.
    """
    commit = commit_of(uri)
    if known := _heads.find(commit):
        return known
    if commit is None and not exists(uri):
        return None
    found = head_of(open_version(uri), uri)
    if commit and commit[1] == found.version:
        _heads.keep(commit, found)
    return found


def head_of(table: DeltaTable, uri: str) -> Head:
    """Return the head of a table that is already open, like `head`."""
    version = table.version()
    found = next(_positions(table, uri, 1), None) or next(_positions(table, uri, None), None)
    _check_foreign(uri, found, version)
    return _head(table, uri, version, found)


def head_as_found(uri: str) -> Head | None:
    """Return the head, whoever wrote it; without a position if foreign commits changed rows.

    The repair uses it, and compares all rows with the expected ones.
    """
    try:
        return head(uri)
    except HistoryLost:
        table = open_version(uri)
        return _head(table, uri, table.version(), None)


def positions(uri: str, limit: int | None = None) -> list[tuple[int, Position]]:
    """Return (version, position) of the commits still in the log, newest first."""
    return list(_positions(open_version(uri), uri, limit))


def _positions(table: DeltaTable, uri: str, limit: int | None) -> Iterator[tuple[int, Position]]:
    newest: Position | None = None
    try:
        commits = _commits(table, limit)
    except DeltaError as error:
        if store_fault(error):
            raise
        raise DamagedLog(uri, error) from error
    for version, entry in commits:
        if position := Position.of_commit(version, entry.get("userMetadata")):
            newest = newest or position
            yield version, position.as_named_in(newest)


def _commits(table: DeltaTable, limit: int | None) -> list[tuple[int, dict[str, Any]]]:
    """Return the commits up to the version at which the table was opened, newest first.

    delta-rs also lists later ones, and numbers them as if they were these.
    """
    if limit == 1:
        return [(table.version(), entry) for entry in table.history(1)[-1:]]
    while True:
        newest, found = _newest_version(table), table.history(limit)
        if _newest_version(table) == newest:
            break
    numbered = zip(range(newest, -1, -1), found, strict=False)  # the log may have been cleaned
    return [(version, entry) for version, entry in numbered if version <= table.version()]


def _newest_version(table: DeltaTable) -> int:
    return table.version() + len(table.history(1)) - 1


def _head(table: DeltaTable, uri: str, version: int, found: tuple[int, Position] | None) -> Head:
    table_id, (commit, position) = str(table.metadata().id), found or (version, None)
    last_txn = table.transaction_version(table_id) or 0
    if position and commit < version and position.unchanged_since is None:
        position = position.without_change(commit)
    unchanged = position.unchanged_since if position else None
    changed = version if unchanged is None else unchanged
    altered = tuple(faults(table, uri))
    return Head(uri, table_id, version, position, changed, last_txn, altered)


def _check_foreign(uri: str, found: tuple[int, Position] | None, version: int) -> None:
    """Raise HistoryLost if a foreign commit changed rows or columns since Sluice's last one.

    It also checks just below the last one, because Delta may have committed that on top of rows
    from which it was not computed.
    """
    commit, position = found or (-1, None)
    later = list(range(version, commit, -1))
    if position and position.after is not None:
        later += range(commit - 1, position.after, -1)
    log = Log(uri)
    gone = log.missing_commits(later)
    if gone:
        raise LogCleaned(
            f"the log of {uri} has no position any more: {max(gone)} is gone",
            hint=_rebuild_hint(uri),
        )
    for foreign in later:
        if log.changes_data(foreign):
            raise ForeignCommit(
                f"version {foreign} of {uri} ({log.operation(foreign)}) was not written by Sluice "
                "and changed its rows",
                hint=_rebuild_hint(uri),
            )
    settings = [v for v in later if commit < v and log.changes_schema(v)]
    if settings and found and not _has_same_columns(uri, commit, version):
        raise ForeignCommit(
            f"version {settings[0]} of {uri} ({log.operation(settings[0])}) was not written by "
            "Sluice and changed its columns",
            hint=_rebuild_hint(uri),
        )


def _has_same_columns(uri: str, *versions: int) -> bool:
    """True if these versions have the same columns, or the log was cleaned and nobody can know."""
    try:
        every = [open_version(uri, version).schema().fields for version in versions]
    except DeltaError:
        return True
    return len({tuple((f.name, str(f.type)) for f in fields) for fields in every}) == 1


def _rebuild_hint(uri: str) -> str:
    return (
        f"run `sluice rebuild {table_at(uri)}`: it recomputes the table from its inputs or files, "
        f"and commits only what differs"
    )


def oldest(frontiers: Iterable[Frontier]) -> Frontier:
    """Return the older version of each source that several frontiers name."""
    least: dict[str, int] = {}
    for frontier in frontiers:
        for source, version in frontier.items():
            least[source] = min(version, least.get(source, version))
    return least
