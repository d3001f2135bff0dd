"""An index of every table, whatever its size, in a folder of the test's own."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sluice.delta.places.folders import move, remove
from sluice.delta.reading import row_index, searching
from sluice.delta.upkeep.erasure import erase_past


def index_all(monkeypatch: pytest.MonkeyPatch, cache: Path) -> Callable[[], int]:
    """Index tables at their second search; return what counts the rows that were looked up."""
    counts = []
    take = row_index.FileIndex.take

    def counted(self: row_index.FileIndex, *given: Any) -> Any:
        rows = take(self, *given)
        counts.append(rows.num_rows)
        return rows

    monkeypatch.setattr(searching, "WORTH_BYTES", 0)
    monkeypatch.setattr(searching, "FEW", 0)
    monkeypatch.setattr(row_index.FileIndex, "take", counted)
    monkeypatch.setenv("SLUICE_CACHE", str(cache))
    return lambda: sum(counts)


def index_small_tables() -> None:
    """Index any table at its first search, in this process from here on."""
    if not searching.WORTH_BYTES:
        return
    searching.WORTH_BYTES = searching.FEW = 0
    due = row_index.TableIndex.is_due
    row_index.TableIndex.is_due = lambda *given: due(*given) or due(*given)  # type: ignore[method-assign]


def erase(uri: str) -> None:
    erase_past(uri, datetime.now(UTC))


def move_away(uri: str) -> None:
    move(uri, f"{uri}_moved")


TAKE_AWAY = [erase, move_away, remove]  # after each of them, no index may be left
