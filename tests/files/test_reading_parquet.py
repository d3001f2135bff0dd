"""Parquet files become rows of the declared columns, or rows with a reason."""

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.files.files import SCHEMA, Files

from sluice.errors import QualityStop


def test_parquet_files_of_differing_types_are_read_as_declared(files: Files) -> None:
    at = datetime(2024, 1, 1, 2, 3, 4, 567000, tzinfo=UTC).replace(tzinfo=None)
    for i, (ints, unit) in enumerate(
        [("int32", "us"), ("int64", "ms"), ("int8", "ns"), ("float64", "us"), ("uint32", "ns")]
    ):
        zone = "Europe/Berlin" if i % 2 else None
        table = pa.table(
            {
                "at": pa.array([at]).cast(pa.timestamp(unit, zone)),
                "d": pa.array([Decimal("1.500")]).cast(pa.decimal128(8 + i, 3)),
                "id": pa.array([i]).cast(ints),
            }
        )
        files.put(**{f"f{i}_parquet": table})
    legacy = pa.table({"id": [9], "d": pa.array([1.5]), "at": pa.array([at])})
    pq.write_table(legacy, files.folder / "z.parquet", use_deprecated_int96_timestamps=True)
    when = at.replace(tzinfo=UTC)
    assert files.good("parquet", "id BIGINT, d DECIMAL(6,2), at TIMESTAMP") == [
        (i, Decimal("1.50"), when) for i in (0, 1, 2, 3, 4, 9)
    ]


@pytest.mark.usefixtures("real_spark")
def test_values_of_parquet_beyond_their_type_are_quarantined(files: Files) -> None:
    noon = [datetime(2024, 1, 1, 12, tzinfo=UTC), datetime(2024, 1, 2, tzinfo=UTC)]
    files.put(
        a_parquet=pa.table({"id": [1, 2**40], "d": [1.0, 1e9], "t": ["a", "b"], "on": pa.nulls(2)}),
        b_parquet=pa.table({"id": [1.5, 2.0], "d": [float("nan"), 2.0], "t": ["c", "d"]}),
        c_parquet=pa.table({"id": [3, 4], "d": [3.0, 4.0], "t": [b"\xff", b"ok"], "on": noon}),
        d_parquet=pa.table({"id": [5, 6], "d": [5.0, 6.0], "t": ["e", "f"], "on": noon}),
    )
    files.put(b_parquet=pq.read_table(files.folder / "b.parquet").append_column("on", [noon]))
    rows, bad = files.rows("parquet", f"{SCHEMA}, on DATE")
    assert rows == [
        (1, "a", Decimal("1.00"), None),
        (2, "d", Decimal("2.00"), date(2024, 1, 2)),
        (4, "ok", Decimal("4.00"), date(2024, 1, 2)),
        (6, "f", Decimal("6.00"), date(2024, 1, 2)),
    ]
    assert [reason for reason, _ in bad] == [
        "column id: 1.5 is not a valid INT",
        "column id: 1099511627776 is not a valid INT",
        "column on: 2024-01-01 12:00:00 is not a valid DATE",
        "column t: FF is not a valid STRING",
    ]


@pytest.mark.parametrize(
    ("values", "declared", "told"),
    [
        (["3", "x"], "INT", "STRING where INT"),
        ([5, 6], "STRING", "BIGINT where STRING"),
        ([date(2024, 1, 1)], "INT", "DATE where INT"),
        ([True], "INT", "BOOLEAN where INT"),
        ([1], "BOOLEAN", "BIGINT where BOOLEAN"),
        (["2024-01-01"], "DATE", "STRING where DATE"),
        ([[1, 2]], "STRING", "ARRAY<BIGINT> where STRING"),
        ([["1"]], "ARRAY<INT>", "ARRAY<STRING> where ARRAY<INT>"),
        ([{"b": 1, "a": 2}], "STRUCT<a: INT, b: INT>", "STRUCT<B:BIGINT,A:BIGINT> where"),
    ],
)
def test_a_column_of_another_kind_stops_by_column_types_and_file(
    files: Files, values: list[Any], declared: str, told: str
) -> None:
    files.put(a_parquet=pa.table({"c": values}), b_parquet=pa.table({"c": values}))
    with pytest.raises(QualityStop, match=rf"a\.parquet: column c is {re.escape(told)}"):
        files.read("parquet", f"c {declared}")


@pytest.mark.usefixtures("real_spark")
def test_nested_values_are_read_if_nothing_of_them_is_lost(files: Files) -> None:
    files.put(
        a_parquet=pa.table({"n": [[1, 2]], "s": [{"a": 1, "b": "x"}]}),
        b_parquet=pa.table({"n": [[2**40]], "s": [{"a": 2, "b": "y"}]}),
    )
    rows, bad = files.rows("parquet", "n ARRAY<INT>, s STRUCT<a: INT, b: STRING>")
    assert rows == [([1, 2], {"a": 1, "b": "x"})]
    assert [reason.partition(":")[0] for reason, _ in bad] == ["column n"]


@pytest.mark.parametrize(("key", "declared"), [("int64", "INT"), ("float64", "INT")])
def test_map_keys_that_may_be_lost_stop_by_column(files: Files, key: str, declared: str) -> None:
    table = {"m": pa.array([[(1, "a")]], pa.map_(key, pa.string()))}
    files.put(a_parquet=pa.table(table))
    with pytest.raises(QualityStop, match=r"a\.parquet: column m is MAP<.*> where MAP<INT,STRING>"):
        files.read("parquet", f"m MAP<{declared}, STRING>")


@pytest.mark.usefixtures("real_spark")
def test_keys_of_maps_may_be_smaller_integers(files: Files) -> None:
    table = {"m": pa.array([[(1, 2**40)], [(2, 3)], None], pa.map_(pa.int16(), pa.int64()))}
    files.put(a_parquet=pa.table(table))
    rows, bad = files.rows("parquet", "m MAP<BIGINT, INT>")
    assert rows == [(None,), ([(2, 3)],)]
    assert [reason.partition(":")[0] for reason, _ in bad] == ["column m"]


@pytest.mark.usefixtures("real_spark")
def test_parts_of_nested_values_without_a_type_are_null(files: Files) -> None:
    nothing, days = pa.array([[], None, [None]]), "ARRAY<DATE>"
    files.put(
        a_parquet=pa.table(
            {
                "a": nothing,
                "s": [{"x y": 1, "b": None}, None, {"x y": None, "b": None}],
                "n": [[{"i": 1, "b": None}], [], None],
                "m": pa.array([[("k", None)], [], None], pa.map_(pa.string(), pa.null())),
                "v": pa.nulls(3),
            }
        ),
        b_parquet=pa.table(
            {
                "a": [["t"]],
                "s": [{"x y": 2, "b": date(2024, 1, 1)}],
                "n": [[{"i": 2**40, "b": None}]],
                "m": pa.nulls(1),
                "v": [{"x": 1}],
            }
        ),
    )
    nested = f"s STRUCT<`x y`: INT, b: DATE>, n ARRAY<STRUCT<i: INT, b: {days}>>"
    types = f"a ARRAY<STRING>, {nested}, m MAP<STRING, {days}>, v STRUCT<x: INT>"
    rows, bad = files.rows("parquet", types)
    assert rows == [
        (None, None, [], [], None),
        ([None], {"x y": None, "b": None}, None, None, None),
        ([], {"x y": 1, "b": None}, [{"i": 1, "b": None}], [("k", None)], None),
    ]
    assert [reason.partition(":")[0] for reason, _ in bad] == ["column n"]
    with pytest.raises(
        QualityStop, match=r"a\.parquet: column a is ARRAY<.*> where INT is declared"
    ):
        files.read("parquet", "a INT")


def test_columns_of_parquet_are_found_by_name(files: Files) -> None:
    files.put(
        a_parquet=pa.table({"t": ["a"], "d": [Decimal(1)], "id": [1]}),
        b_parquet=pa.table({"id": [2], "x": [0], "d": [Decimal(2)], "t": ["b"]}),
    )
    assert files.good("parquet") == [(1, "a", Decimal("1.00")), (2, "b", Decimal("2.00"))]
    with pytest.raises(
        QualityStop, match=r"c\.parquet lacks the declared column\(s\) d; it has id, t"
    ):
        files.put(c_parquet=pa.table({"id": [2], "t": ["b"]})).read("parquet")


@pytest.mark.usefixtures("real_spark")
def test_years_beyond_the_calendar_are_found_inside_nested_values(files: Files) -> None:
    days = pa.array([2932897, 0, 2932897, 0], pa.date32())
    nested = {
        "s": pa.StructArray.from_arrays([days], ["on day"]),
        "m": pa.MapArray.from_arrays([0, 1, 2, 3, 4], ["a", "b", "c", "d"], days),
        "e": pa.array([[{}], [{"x": 0}], None, [None]], pa.list_(pa.map_(pa.string(), "date32"))),
    }
    types = "s STRUCT<`on day`: DATE>, m MAP<STRING, DATE>, e ARRAY<MAP<STRING, DATE>>"
    files.put(a_parquet=pa.table({"i": range(4), **nested}))
    rows, bad = files.rows("parquet", f"i INT, {types}")
    assert [r[0] for r in rows] == [1, 3]
    assert [reason.partition(":")[0] for reason, _ in bad] == ["column s", "column s"]


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (Decimal("1.50"), pa.decimal256(50, 2)),
        (1.5, pa.float16()),
        (b"abcd", pa.binary(4)),
        (1, pa.time64("us")),
    ],
)
def test_types_beyond_sparks_name_column_and_file(files: Files, value: Any, type_: Any) -> None:
    files.put(a_parquet=pa.table({"id": pa.array([value], type_)}))
    with pytest.raises(QualityStop, match=r"no type for the column\(s\) id as file .*a\.parquet"):
        files.read("parquet", "id INT").rows.collect()
