"""Small tables: how they are read."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake.fs import DeltaStorageHandler

from sluice.delta.note_tables import append_rows, read_rows, read_table

ROWS = pa.table({"day": ["a:b", "c"], "n": [1, 2]})


@pytest.mark.parametrize("store", ["", "file://"])
def test_rows_are_those_that_were_written(tmp_path: Path, store: str) -> None:
    uri = f"{store}{tmp_path}/a lake/notes"
    append_rows(uri, ROWS)
    assert read_table(uri).sort_by("n").select(ROWS.column_names) == ROWS
    assert read_rows(uri, [("n", ">", 1)]) == [{"day": "c", "n": 2}]
    assert read_rows(str(tmp_path / "none")) == []


def test_local_files_are_not_read_by_python_whose_end_would_abort_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a file was opened by Python")

    uri = str(tmp_path / "notes")
    append_rows(uri, ROWS)
    monkeypatch.setattr(DeltaStorageHandler, "open_input_file", refuse)
    assert len(read_rows(uri)) == 2
