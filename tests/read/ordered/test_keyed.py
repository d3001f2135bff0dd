"""Key-value reads against a brute-force reading of the same rows."""

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.read.tables import keyed, placed, write

from sluice.delta.reading import row_index
from sluice.errors import UsageError
from sluice.read import snapshot
from sluice.read.key_order import KeyColumns, KeyRange, place
from sluice.read.snapshot import NotBuilt, Rising, Snapshot, SnapshotExpired, _within

KEY = pa.schema([("k", pa.int64()), ("s", pa.string()), ("v", pa.int64())])
key_values = st.tuples(
    st.one_of(st.none(), st.integers(-9, 9)), st.one_of(st.none(), st.text("aéz😀", max_size=2))
)
commits = st.lists(st.lists(key_values, min_size=1, max_size=12), min_size=1, max_size=4)
bounds = st.one_of(st.none(), key_values, key_values.map(lambda key: key[:1]))


def rows_of(keys, start=0):
    return [{"k": k, "s": s, "v": start + i} for i, (k, s) in enumerate(keys)]


@settings(max_examples=60, deadline=None)
@given(commits, bounds, bounds, st.booleans(), st.one_of(st.none(), st.integers(0, 9)))
def test_a_range_is_the_sorted_rows_between_its_bounds(batches, low, high, reverse, limit):
    unique = list(dict.fromkeys(key for keys in batches for key in keys))
    expected = [
        row
        for row in sorted(rows_of(unique), key=lambda r: placed((r["k"], r["s"])))
        if (low is None or placed((row["k"], row["s"]))[: len(low)] >= placed(low))
        and (high is None or placed((row["k"], row["s"]))[: len(high)] <= placed(high))
    ]
    expected = expected[::-1] if reverse else expected
    with TemporaryDirectory() as folder:
        size = len(batches[0])
        for start in range(0, len(unique), size):
            part = rows_of(unique)[start : start + size]
            write(f"{folder}/t", pa.Table.from_pylist(part, KEY), group_rows=3)
        table = keyed(f"{folder}/t", "k", "s")
        found = table.range(key_from=low, key_to=high, reverse=reverse, limit=limit)
        assert list(found) == expected[:limit]
        assert table.count == len(unique)


def some_table(folder: Path, files: int = 8, rows: int = 100) -> str:
    uri = str(folder / "t")
    for i in range(files):
        ks = range(i * rows, (i + 1) * rows)
        write(uri, pa.table({"k": list(ks), "v": [str(k) for k in ks]}), group_rows=25)
    return uri


def test_a_get_opens_one_file_and_reads_one_row_group(tmp_path):
    table = keyed(some_table(tmp_path), "k")
    assert table.get(333) == {"k": 333, "v": "333"}
    found = table.range(key_from=333, key_to=333)
    assert [row["k"] for row in found] == [333]
    assert (found.touched.files, found.touched.row_groups) == (1, 1)


def test_a_get_opens_the_largest_file_first_and_no_other_once_it_has_the_row(tmp_path):
    uri, scattered = str(tmp_path / "t"), ([0, 401, 799], [1, 399, 798])
    others = sorted({*range(800)} - {*scattered[0], *scattered[1]})
    for keys in (scattered[0], others, scattered[1]):
        write(uri, pa.table({"k": keys, "v": [str(k) for k in keys]}), group_rows=25)
    table = keyed(uri, "k")
    assert [table.get(key) for key in (399, 401)] == [{"k": k, "v": str(k)} for k in (399, 401)]
    assert table.get(900) is None
    found = table.only(table.key.exactly(400))
    assert list(found) == [{"k": 400, "v": "400"}]
    assert (found.touched.files, found.touched.row_groups) == (1, 1)


def test_a_get_of_a_key_outside_all_files_opens_none(tmp_path):
    found = keyed(some_table(tmp_path), "k").range(key_from=-5, key_to=-1)
    assert list(found) == []
    assert found.touched.files == 0


def test_row_groups_in_order_are_found_as_one_by_one():
    chance = Random(7)
    for _ in range(300):
        lows = sorted(chance.choices(range(9), k=6))
        highs = sorted(low + chance.randrange(4) for low in lows)
        units = [(place(low), place(high)) for low, high in zip(lows, highs, strict=True)]
        bounds = sorted(chance.choices([None, *range(12)], k=2), key=place)
        low, high = ((place(one),) for one in bounds)
        one_by_one = [n for n, (a, b) in enumerate(units) if a <= high[0] and b >= low[0]]
        known = {"k": Rising(units)}
        found = _within(KeyRange(("k",), low, high), range(6), known.__getitem__)
        assert [*found] == one_by_one


def test_an_ordered_read_opens_files_only_as_they_are_reached(tmp_path):
    found = keyed(some_table(tmp_path), "k").all(reverse=True)
    assert next(found)["k"] == 799
    assert (found.touched.files, found.touched.row_groups) == (1, 1)
    assert [next(found)["k"] for _ in range(150)] == list(range(798, 648, -1))
    assert found.touched.files == 2


def test_an_iterator_stays_on_its_version(tmp_path):
    uri = some_table(tmp_path)
    table = keyed(uri, "k")
    rows = table.all()
    first = next(rows)["k"]
    DeltaTable(uri).delete("k > 50")
    write(uri, pa.table({"k": [-1], "v": ["new"]}))
    assert [first, *(row["k"] for row in rows)] == list(range(800))
    assert keyed(uri, "k").count == 52


def test_keys_the_wrong_way_round_are_empty_unless_the_table_goes_backward(tmp_path):
    write(tmp_path / "t", pa.table({"a": [1, 1, 2, 3], "b": [1, 2, 1, 1]}))
    table = keyed(tmp_path / "t", "a", "b")
    backward = replace(table, backward_iteration=True)
    assert list(table.range(key_from=3, key_to=(1, 2))) == []
    found = [(row["a"], row["b"]) for row in backward.range(key_from=3, key_to=(1, 2))]
    assert found == [(3, 1), (2, 1), (1, 2)]
    assert [row["b"] for row in backward.range(key_from=1, key_to=(1, 2))] == [1, 2]
    assert len(list(backward.range(key_from=2))) == 2


def test_what_is_left_of_an_iterator_can_be_had_as_arrow(tmp_path):
    rows = keyed(some_table(tmp_path), "k").all()
    assert [next(rows)["k"] for _ in range(3)] == [0, 1, 2]
    assert rows.to_arrow()["k"].to_pylist() == list(range(3, 800))
    assert list(rows) == []


def test_a_vacuumed_version_is_named_not_skipped(tmp_path):
    uri = some_table(tmp_path)
    rows = keyed(uri, "k").all(reverse=True)
    DeltaTable(uri).delete()
    DeltaTable(uri).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    with pytest.raises(SnapshotExpired, match="vacuumed"):
        next(rows)


def test_a_key_that_was_read_is_not_decoded_again_and_goes_with_its_file(tmp_path, monkeypatch):
    uri, decoded = some_table(tmp_path), []
    read = snapshot._decode
    monkeypatch.setattr(snapshot, "_decode", lambda *args: decoded.append(args[-1]) or read(*args))
    table = keyed(uri, "k")
    for key in (333, 334, 333):  # in one row group
        assert table.get(key) == {"k": key, "v": str(key)}
    assert decoded == [["k"], ["v"]]
    DeltaTable(uri).delete()
    DeltaTable(uri).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    with pytest.raises(SnapshotExpired, match="vacuumed"):
        table.get(333)


def test_no_index_is_opened_of_a_table_that_was_never_searched(tmp_path, monkeypatch):
    uri, opened = some_table(tmp_path), []
    monkeypatch.setattr(row_index, "FileIndex", lambda *args: opened.append(args))
    assert keyed(uri, "k").get(333) == {"k": 333, "v": "333"}
    assert opened == []


def test_null_is_a_key_like_any_other(tmp_path):
    rows = [{"k": None, "s": "x", "v": 1}, {"k": 1, "s": None, "v": 2}]
    write(tmp_path / "t", pa.Table.from_pylist(rows, KEY))
    table = keyed(tmp_path / "t", "k", "s")
    assert table.get(None, "x")["v"] == 1
    assert table.get(1, None)["v"] == 2
    assert table.get(None, None) is None
    assert [row["v"] for row in table.all()] == [1, 2]
    assert [row["v"] for row in table.range(key_to=(0,))] == [1]


KINDS = [
    (pa.string(), ["a b", "c/d ü%20", "e=f", "x" * 80, None]),
    (pa.decimal128(38, 2), [Decimal("-9.99"), Decimal("123456789012345678901.10"), None]),
    (pa.decimal128(12, 2), [Decimal("-3.40"), Decimal("1.20")]),
    (pa.date32(), [date(1900, 1, 1), date(2017, 1, 1)]),
    (pa.bool_(), [False, True, None]),
    (pa.float64(), [-1.5, 0.0, 2.25, float("inf")]),
    (pa.binary(), [b"\x00", b"\xff"]),
    (
        pa.timestamp("us", "UTC"),
        [
            datetime(1, 1, 1, tzinfo=UTC),
            datetime(1960, 1, 1, 1, 1, 1, 999_999, tzinfo=UTC),
            datetime(2017, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
            datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        ],
    ),
]


@pytest.mark.parametrize("reverse", [False, True])
def test_nan_is_a_key_that_comes_after_all_numbers(tmp_path, reverse):
    nan = float("nan")
    for part in ([nan, 1.0, None], [2.0, nan], [float("-inf"), float("inf")]):
        ids = [f"{value} {len(part)}" for value in part]
        write(tmp_path / "t", pa.table({"k": pa.array(part, pa.float64()), "_sluice_id": ids}))
    table = keyed(tmp_path / "t", "k", "_sluice_id")
    in_order = ["None", "-inf", "1.0", "2.0", "inf", "nan", "nan"]

    def keys(rows):
        return sorted((str(row["k"]) for row in rows), key=in_order.index)

    told, after = [], None
    while page := list(rows := table.range(reverse=reverse, limit=2, after=after)):
        told, after = [*told, *(str(row["k"]) for row in page)], rows.cursor
    assert told == (in_order[::-1] if reverse else in_order)
    assert keys(table.range(key_from=2.0, reverse=reverse)) == in_order[3:]
    assert keys(table.range(key_to=2.0, reverse=reverse)) == in_order[:4]
    assert keys(table.range(key_from=nan, key_to=nan, reverse=reverse)) == ["nan", "nan"]


# What partitions can hold: delta-rs writes negative decimals there wrongly.
PARTITION_KINDS = [
    (kind, values)
    for kind, values in KINDS
    if not (kind == pa.binary() or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
]


@pytest.mark.parametrize(("kind", "values"), KINDS)
def test_keys_of_every_orderable_type(tmp_path, kind, values):
    _check_keys(tmp_path / "t", kind, values, partition_by=[])


@pytest.mark.parametrize(("kind", "values"), PARTITION_KINDS)
def test_keys_that_are_partitions(tmp_path, kind, values):
    _check_keys(tmp_path / "t", kind, values, partition_by=["k"])


def _check_keys(uri, kind, values, partition_by):
    for i, value in enumerate(values):
        part = pa.table({"k": pa.array([value], kind), "v": [i]})
        write(uri, part, partition_by=partition_by)
    table = keyed(uri, "k")
    assert [table.get(value)["v"] for value in values] == list(range(len(values)))
    in_order = sorted(range(len(values)), key=lambda i: placed((values[i],)))
    assert [row["v"] for row in table.all()] == in_order
    page = table.all(limit=1)
    first = [row["v"] for row in page]
    assert first + [row["v"] for row in table.all(after=page.cursor)] == in_order
    assert [row["v"] for row in table.all(reverse=True)] == in_order[::-1]


def test_hidden_columns_order_but_are_never_shown(tmp_path):
    rows = pa.table({"a": [1, 1], "_sluice_id": ["y", "x"], "v": [1, 2]})
    write(tmp_path / "t", rows)
    table = keyed(tmp_path / "t", "a", "_sluice_id")
    assert list(table.all()) == [{"a": 1, "v": 2}, {"a": 1, "v": 1}]
    assert table.schema.names == ["a", "v"]
    with pytest.raises(UsageError, match="unknown column '_sluice_id'"):
        table.all(where="_sluice_id = 'x'")
    with pytest.raises(UsageError, match="no key to identify one by"):
        table.get(1)


def test_columns_that_came_later_are_null_in_older_files(tmp_path):
    write(tmp_path / "t", pa.table({"k": [1]}))
    DeltaTable(str(tmp_path / "t")).alter.add_columns(_field("v"))
    write(tmp_path / "t", pa.table({"k": [2], "v": ["new"]}))
    assert keyed(tmp_path / "t", "k").to_arrow().to_pylist() == [
        {"k": 1, "v": None},
        {"k": 2, "v": "new"},
    ]


def _field(name):
    from deltalake import Field
    from deltalake.schema import PrimitiveType

    return Field(name, PrimitiveType("string"))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda t: t.get("7"), "'7' is not a value of column 'k'"),
        (lambda t: t.get(True), "True is not a value"),
        (lambda t: t.get(1, 2), "2 values don't fit"),
        (lambda t: t.get(2**70), "does not fit"),
        (lambda t: t.range(key_from=("a", 1)), "2 values don't fit"),
        (lambda t: t.all(limit=-1), "limit must be 0 or more, not -1"),
        (lambda t: t.range(columns=["vv"]), "did you mean 'v'"),
        (lambda t: t.all(where="w > 1"), "unknown column 'w'"),
        (lambda t: t.all(where=5), "where must be a text, not 5"),
        (lambda t: t.all(where=""), "where '' does not parse"),
        (lambda t: t.all(columns=5), "columns must be names, not 5"),
        (lambda t: t.all(columns=[5]), "unknown column '5'"),
        (lambda t: t.all(after=5), "5 is not a cursor"),
    ],
)
def test_what_can_not_be_asked_is_said_at_once(tmp_path, ask, message):
    write(tmp_path / "t", pa.table({"k": [1], "v": ["x"]}))
    with pytest.raises(UsageError, match=message):
        ask(keyed(tmp_path / "t", "k"))


def test_a_column_that_is_named_twice_is_shown_once(tmp_path):
    write(tmp_path / "t", pa.table({"k": [1], "v": ["x"]}))
    table = keyed(tmp_path / "t", "k")
    for read in (table.all, table.read, table.range):
        assert read(columns=["v", "k", "v"]).schema.names == ["v", "k"]
        assert list(read(columns=["v", "v"])) == [{"v": "x"}]


def test_keys_without_an_order_are_read_as_they_are_stored(tmp_path):
    write(tmp_path / "t", pa.table({"k": [[2, 1], [1]]}))
    table = keyed(tmp_path / "t", "k")
    assert table.read().to_arrow().to_pylist() == [{"k": [2, 1]}, {"k": [1]}]
    for ask in (table.all, lambda: table.range(key_from=([1],)), lambda: table.get([1])):
        with pytest.raises(UsageError, match="'k'"):
            ask()
    with pytest.raises(UsageError, match="have no order: column 'k' of their key is of type ARRAY"):
        table.all(limit=1)


def test_a_table_that_is_not_there_names_the_command_that_builds_it(tmp_path):
    with pytest.raises(NotBuilt) as caught:
        Snapshot.open("sales", str(tmp_path / "none"), build="sluice run shop")
    assert "run `sluice run shop`" in str(caught.value)


def test_a_version_that_is_not_there_names_the_newest(tmp_path):
    write(tmp_path / "t", pa.table({"k": [1]}))
    with pytest.raises(UsageError, match="the newest version is 0"):
        Snapshot.open("t", str(tmp_path / "t"), 7)


@pytest.mark.parametrize("feature", ["columnMapping", "typeWidening"])
def test_a_table_whose_files_would_be_read_wrongly_is_refused(tmp_path, feature):
    write(tmp_path / "t", pa.table({"k": [1]}))
    log = tmp_path / "t" / "_delta_log" / f"{0:020d}.json"
    lines = log.read_text().splitlines()
    protocol = (
        '{"protocol":{"minReaderVersion":3,"minWriterVersion":7,'
        f'"readerFeatures":["{feature}"],"writerFeatures":["{feature}"]}}}}'
    )
    log.write_text("\n".join(protocol if '"protocol"' in line else line for line in lines))
    with pytest.raises(UsageError, match=feature):
        keyed(tmp_path / "t", "k")


def test_column_mapping_by_the_old_protocol_is_refused(tmp_path):
    write(tmp_path / "t", pa.table({"k": [1]}))
    log = tmp_path / "t" / "_delta_log" / f"{0:020d}.json"
    mapped = '"configuration":{"delta.columnMapping.mode":"name",'
    physical = r"\"delta.columnMapping.id\":1,\"delta.columnMapping.physicalName\":\"col-1\""
    log.write_text(
        log.read_text()
        .replace('"configuration":{', mapped)
        .replace(r"\"metadata\":{}", rf"\"metadata\":{{{physical}}}")
        .replace('"minReaderVersion":1', '"minReaderVersion":2')
    )
    with pytest.raises(UsageError, match="columnMapping"):
        keyed(tmp_path / "t", "k")


def test_a_time_of_a_key_that_is_none_is_refused_with_its_column() -> None:
    moment = pa.timestamp("us", tz="UTC")
    key = KeyColumns("days", ("window_start", "city"), (moment, pa.string()))
    with pytest.raises(
        UsageError, match=r"'bern' is not a value of column 'window_start'"
    ) as raised:
        key.parse(["bern", "2024-01-01"])
    assert "write 2017-01-31" in raised.value.hint
