"""Quarantined rows of subjects go; those that a delivery brings meanwhile stay."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sluice.delta.notes.note_tables import append_rows, read_rows
from sluice.language.hidden_columns import INTERVAL
from sluice.operate.erasure import in_quarantine
from sluice.operate.erasure.in_quarantine import without
from sluice.operate.erasure.remains import Sought

DAY = datetime(2024, 1, 2, tzinfo=UTC)


def bad(*ids: int) -> pa.Table:
    rows = [{INTERVAL: DAY, "raw": f'{{"id": {i}}}'} for i in ids]
    schema = pa.schema([(INTERVAL, pa.timestamp("us", "UTC")), ("raw", pa.string())])
    return pa.Table.from_pylist(rows, schema=schema)


def test_a_row_that_comes_to_the_interval_meanwhile_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri, asked = str(tmp_path / "sales__quarantine"), list[Any]()
    append_rows(uri, bad(4711, 4712))
    is_theirs = in_quarantine._is_theirs

    def beside(text: str | None, sought: Sought) -> bool:
        asked.append(text)
        if len(asked) == 4:  # once all rows were read for the last time
            append_rows(uri, bad(99, 4711))
        return is_theirs(text, sought)

    monkeypatch.setattr(in_quarantine, "_is_theirs", beside)
    assert without(uri, Sought(pa.table({"id": [4711]}))) == 2
    assert sorted(row["raw"] for row in read_rows(uri)) == ['{"id": 4712}', '{"id": 99}']
