"""A table's position: which version of each input its rows reflect.

Every commit that Sluice makes carries the whole position in `userMetadata`, so that the head
commit alone says where the next batch begins, also after the log before it was cleaned. Reading
it starts no Spark.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from deltalake import DeltaTable
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import PyFileSystem

from sluice.errors import HistoryLost

FIELD = "sluice"


@dataclass(frozen=True)
class Pin:
    """One version of one Delta table; `table` is Delta's own table id, not its path."""

    table: str
    version: int


@dataclass(frozen=True)
class Position:
    """What a commit reflects.

    `inputs` drive the table; `references` were only looked up. `unchanged_since` is set on commits
    that change no data.
    """

    batch: int
    attempt: str
    kind: str
    definition: str = ""
    inputs: Mapping[str, Pin] = field(default_factory=dict)
    references: Mapping[str, Pin] = field(default_factory=dict)
    frontier: Mapping[str, int] = field(default_factory=dict)
    run: str = ""
    horizon: datetime | None = None
    unchanged_since: int | None = None

    def to_json(self) -> str:
        """The text for `userMetadata`."""
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
        if self.unchanged_since is not None:
            body["unchanged_since"] = self.unchanged_since
        return json.dumps({FIELD: body}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | None) -> "Position | None":
        """The position in a commit's `userMetadata`, or None if Sluice did not write it."""
        try:
            body = json.loads(text or "")[FIELD]
        except (ValueError, KeyError, TypeError):
            return None
        horizon = datetime.fromisoformat(body["horizon"]) if body["horizon"] else None
        pins = {name: _pins(body[name]) for name in ("inputs", "references")}
        return cls(**{**body, **pins, "horizon": horizon})

    def without_change(self, data_version: int) -> "Position":
        """The same position for a commit that changes no row."""
        return replace(self, unchanged_since=data_version)


def _plain(pins: Mapping[str, Pin]) -> dict[str, dict[str, Any]]:
    return {name: {"table": pin.table, "version": pin.version} for name, pin in pins.items()}


def _pins(plain: Mapping[str, Mapping[str, Any]]) -> dict[str, Pin]:
    return {name: Pin(pin["table"], pin["version"]) for name, pin in plain.items()}


@dataclass(frozen=True)
class Head:
    """The newest commit of a table; `data_version` is the last version that changed its rows."""

    uri: str
    table: str
    version: int
    position: Position | None
    data_version: int
    last_txn: int = 0

    @property
    def pin(self) -> Pin:
        """The head as an input of another table."""
        return Pin(self.table, self.version)

    @property
    def next_batch(self) -> int:
        """The number of the batch that would follow; Delta skips a number it has seen."""
        return max(self.last_txn, self.position.batch if self.position else 0) + 1


def head(uri: str) -> Head | None:
    """The head of the table at `uri`, None if there is no table.

    A newest commit without a position is somebody else's: commits that changed no data are
    walked back over; one that did raises HistoryLost.
    """
    if not DeltaTable.is_deltatable(uri):
        return None
    table = DeltaTable(uri)
    return head_of(table, uri)


def head_of(table: DeltaTable, uri: str) -> Head:
    """As `head`, of a table that is already open."""
    version, table_id = table.version(), table.metadata().id
    position = Position.from_json(table.history(1)[0].get("userMetadata"))
    if position is None:
        position = _walk_back(table, uri, version)
    unchanged = position.unchanged_since if position else None
    changed = version if unchanged is None else unchanged
    last_txn = table.transaction_version(str(table_id)) or 0
    return Head(uri, str(table_id), version, position, changed, last_txn)


def positions(uri: str, limit: int | None = None) -> list[tuple[int, Position]]:
    """(version, position) of the commits still in the log, newest first."""
    history = DeltaTable(uri).history(limit)
    found = ((int(h["version"]), Position.from_json(h.get("userMetadata"))) for h in history)
    return [(version, position) for version, position in found if position]


def _walk_back(table: DeltaTable, uri: str, version: int) -> Position | None:
    entries = table.history()
    for entry in entries:
        position = Position.from_json(entry.get("userMetadata"))
        commit = int(entry["version"])
        if position:
            unchanged = position.unchanged_since
            return position.without_change(commit if unchanged is None else unchanged)
        if commit > 0 and changes_data(uri, commit):
            raise HistoryLost(
                f"version {commit} of {uri} ({entry.get('operation')}) was not written by Sluice "
                "and changed its rows",
                hint="run `sluice rebuild` on this table: it recomputes the rows and commits only "
                "what differs",
            )
    return None


def changes_data(uri: str, version: int) -> bool:
    """Whether a commit adds or removes rows (compaction, vacuum and settings don't)."""
    filesystem = PyFileSystem(DeltaStorageHandler(uri))
    with filesystem.open_input_stream(f"_delta_log/{version:020d}.json") as stream:
        lines = stream.read().decode().splitlines()
    actions = [json.loads(line) for line in lines if line]
    return any(a.get(k, {}).get("dataChange", False) for a in actions for k in ("add", "remove"))
