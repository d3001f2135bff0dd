"""Conditions that name their subjects themselves, so that later rows are theirs, too."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sluice.declare.project import load
from sluice.operate.subjects import Asked, by_condition

PIPELINE = """
pipeline: shop
schedule: "@daily"
start_date: 2024-01-01
sources:
  sales:
    path: "landing/{interval_start:%Y-%m-%d}/"
    key: [id, day]
    schema: "id BIGINT, day DATE, paid INT, by STRUCT<No: STRING, at: STRUCT<town: STRING>>"
"""
BY = pa.struct([("No", pa.string()), ("at", pa.struct([("town", pa.string())]))])
SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("paid", pa.int32()), ("by", BY)])


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("id = 5", {"id": 5}),
        ("id = -5", {"id": -5}),
        ("-5 = ID", {"id": -5}),
        ("id = -(5)", {"id": -5}),
        ("(id = -5) and day = '2024-01-02'", {"id": -5, "day": "2024-01-02"}),
    ],
)
def test_columns_name_a_subject(tmp_path: Path, text: str, named: dict[str, Any]) -> None:
    (tmp_path / "config/pipelines").mkdir(parents=True)
    (tmp_path / "config/pipelines/shop.yaml").write_text(PIPELINE)
    table = load(tmp_path / "config").graph.table("sales")
    (found,) = by_condition(table, SCHEMA, "no table is asked", text)
    (row,) = found.subjects.to_pylist()
    assert {name: value if name == "id" else str(value) for name, value in row.items()} == named
    assert found.where is None


@pytest.mark.parametrize(
    ("text", "named"),
    [("by.no = '042'", {"by.No": "042"}), ("'Oslo' = by.AT.town", {"by.at.town": "Oslo"})],
)
def test_a_field_of_a_struct_names_a_subject_besides_the_keys_of_its_rows(
    tmp_path: Path, text: str, named: dict[str, str]
) -> None:
    (tmp_path / "config/pipelines").mkdir(parents=True)
    (tmp_path / "config/pipelines/shop.yaml").write_text(PIPELINE)
    table = load(tmp_path / "config").graph.table("sales")
    keys, values = by_condition(table, SCHEMA, "", text)
    assert (keys.subjects.column_names, values.subjects.to_pylist()) == (["id", "day"], [named])
    assert Asked(where=text).fits(table)
    assert not Asked(where="by.name = 'x'").fits(table)
    assert not Asked(where="paid.no = 'x'").fits(table)
    by = [{"No": "042", "at": {"town": "Oslo"}}, {"No": "43", "at": None}, None]
    assert values.rows(pa.table({"by": pa.array(by, BY)})).to_pylist()[0] is True
    assert values.is_in('{"by": {"at": {"town": "Oslo"}, "No": "042"}}')
    assert not values.is_in('{"by": {}, "of": {"No": "042"}, "town": "Os"}')
