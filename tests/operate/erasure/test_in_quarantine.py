"""Quarantined rows of subjects go; those that a delivery brings meanwhile stay."""

import json
from base64 import b64encode
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sluice.delta.note_tables import append_rows, read_rows
from sluice.language.names import INTERVAL
from sluice.operate import forgetting
from sluice.operate.forgetting import without
from sluice.operate.subjects import Sought

DAY = datetime(2024, 1, 2, tzinfo=UTC)


def raw(*texts: str) -> pa.Table:
    rows = [{INTERVAL: DAY, "raw": text} for text in texts]
    schema = pa.schema([(INTERVAL, pa.timestamp("us", "UTC")), ("raw", pa.string())])
    return pa.Table.from_pylist(rows, schema=schema)


def bad(*ids: int) -> pa.Table:
    return raw(*(f'{{"id": {i}}}' for i in ids))


def test_rows_that_come_meanwhile_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri, asked = str(tmp_path / "sales__quarantine"), list[Any]()
    append_rows(uri, bad(4711, 4712))
    is_theirs = forgetting._is_theirs

    def beside(text: str | None, sought: Sought) -> bool:
        asked.append(text)
        if len(asked) == 4:  # once all rows were read for the last time
            append_rows(uri, bad(99, 4711))
        return is_theirs(text, sought)

    monkeypatch.setattr(forgetting, "_is_theirs", beside)
    assert without(uri, Sought(pa.table({"id": [4711]}))) == 2
    assert sorted(row["raw"] for row in read_rows(uri)) == ['{"id": 4712}', '{"id": 99}']


@pytest.mark.parametrize("value", [4711, "4711", None])
def test_columns_called_as_parts_of_a_message_are_columns(tmp_path: Path, value: Any) -> None:
    uri = str(tmp_path / "sales__quarantine")
    row = {"topic": 1, "partition": 2, "offset": 3, "key": value, "value": "x"}
    append_rows(uri, raw(json.dumps(row), json.dumps({**row, "key": 4712})))
    assert without(uri, Sought(pa.table({"key": [4711]}))) == (value is not None)
    assert json.dumps({**row, "key": 4712}) in [row["raw"] for row in read_rows(uri)]


def test_a_message_has_its_key_and_its_value_encoded(tmp_path: Path) -> None:
    uri = str(tmp_path / "sales__quarantine")
    place = {"topic": "t", "partition": 0, "offset": 3}
    theirs = {**place, "key": None, "value": b64encode(b'{"id": 4711}').decode()}
    other = {**place, "key": b64encode(b"4712").decode(), "value": None}
    append_rows(uri, raw(json.dumps(theirs), json.dumps(other)))
    assert without(uri, Sought(pa.table({"id": [4711]}), in_messages=True)) == 1
    assert [json.loads(row["raw"]) for row in read_rows(uri)] == [other]
