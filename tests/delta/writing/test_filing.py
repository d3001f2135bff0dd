"""Slices of a table, and which of them are worth writing again."""

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from sluice.delta.writing.filing import Slice, files_for, slices_of
from sluice.limits import Limits


def test_a_slice_is_worn_where_a_file_of_a_usual_size_has_many_marked_rows() -> None:
    limits = Limits(file_rows=100)
    assert Slice(0, ("a", "b"), (50, 900), (11, 0)).has_worn_file(limits)
    assert not Slice(0, ("a", "b"), (50, 900), (10, 0)).has_worn_file(limits), "a fifth"
    assert not Slice(0, ("a", "b"), (49, 900), (40, 0)).has_worn_file(limits), "a small file"


def test_files_of_a_table_are_larger_once_they_would_be_many() -> None:
    """They stay so until it has half of these rows; files of a slice are larger from the start."""
    limits = Limits(file_rows=10, large_file_rows=50, slice_file_rows=500)

    def usual(rows: int, files: int, number: int | None = None) -> int:
        some = Slice(number, ("",) * files, (rows // files,) * files)
        assert some.usual_files(limits) == -(-rows // some.file_rows(limits))
        return some.file_rows(limits)

    assert [usual(320, 32), usual(330, 33), usual(320, 8)] == [10, 50, 50]
    assert [usual(165, 5), usual(160, 4), usual(170, 17)] == [50, 10, 10]
    assert [usual(100, 1, 7), usual(10_000, 20, 7)] == [500, 500]
    assert [files_for(rows, limits) for rows in (320, 321, 5_000)] == [32, 7, 100]


def test_slices_come_in_the_order_of_their_numbers_with_all_of_their_files(tmp_path: Path) -> None:
    uri, days = str(tmp_path / "table"), (7, 3, 5, 3, 12, 7)
    for day, count in zip(days, range(1, 7), strict=True):
        rows = pa.table({"day": pa.array([day] * count, pa.int32()), "v": range(count)})
        write_deltalake(uri, rows, mode="append", partition_by=["day"])
    found = slices_of(DeltaTable(uri))
    assert [(one.number, sorted(one.rows)) for one in found] == [
        (3, [2, 4]),
        (5, [3]),
        (7, [1, 6]),
        (12, [5]),
    ]
    for one in found:
        paths = [Path(uri, path) for path in one.paths]
        assert all(f"day={one.number}/" in path.as_posix() for path in paths)
        assert one.bytes == sum(path.stat().st_size for path in paths)
        assert (one.lost, one.row_count) == ((0,) * len(paths), sum(one.rows))


def test_a_table_without_partitions_is_one_slice_without_a_number(tmp_path: Path) -> None:
    uri = str(tmp_path / "table")
    for count in (2, 3):
        write_deltalake(uri, pa.table({"v": range(count)}), mode="append")
    (found,) = slices_of(DeltaTable(uri))
    assert (found.number, found.row_count, len(found.paths)) == (None, 5, 2)
