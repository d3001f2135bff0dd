"""An index of every table, whatever its size, in a folder of the test's own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sluice.delta.reading import row_index, searching


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
