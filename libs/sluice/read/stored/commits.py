"""Commit of a single version: its position in the inputs, and when it was made.

It is read from the log's file of just that version. So it belongs to that version, even after later
commits.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sluice.delta.log.position import Position
from sluice.read.stored.parquet import filesystem


@dataclass(frozen=True)
class Commit:
    """One version of a table; `written`: bytes of the files that it has added."""

    version: int
    at: datetime
    operation: str
    position: Position | None
    changes_data: bool
    written: int = 0


def commit(uri: str, version: int) -> Commit | None:
    """Return the commit of that version; None if the log no longer has it."""
    try:
        with filesystem(uri).open_input_stream(f"_delta_log/{version:020d}.json") as stream:
            actions = [json.loads(line) for line in stream.read().splitlines() if line]
    except FileNotFoundError:
        return None
    info: dict[str, Any] = next((a["commitInfo"] for a in actions if "commitInfo" in a), {})
    changes = any(a.get(k, {}).get("dataChange") for a in actions for k in ("add", "remove"))
    at = datetime.fromtimestamp(info.get("timestamp", 0) / 1000, UTC)
    position = Position.from_json(info.get("userMetadata"))
    if position and position.is_overtaken(version):
        position = None
    files = (a[kind] for a in actions for kind in ("add", "cdc") if kind in a)
    written = sum(file.get("size") or 0 for file in files)
    return Commit(version, at, str(info.get("operation", "")), position, bool(changes), written)


def back_from(uri: str, version: int) -> Iterator[Commit]:
    """Yield the commits from that version back to the log's start, newest first."""
    while version >= 0 and (found := commit(uri, version)):
        yield found
        version -= 1
