"""A source whose files change their columns: reported, ignored, or stopped with what was found."""

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.gate.conftest import SALES, Shop

from sluice.delta.note_tables import read_rows
from sluice.engine import BatchReport
from sluice.engine.advance import Run, advance
from sluice.errors import QualityStop
from sluice.operate.verify import verify

ROW = {"id": 1, "item": "tea", "price": 3}


def land(shop: Shop, format_: str, columns: dict[str, list[Any]]) -> None:
    shop.declare(SALES.replace("format: json", f"format: {format_}"))
    path = shop.land(0, [], name=f"part.{format_}")
    if format_ == "parquet":
        pq.write_table(pa.table(columns), path)
    elif format_ == "csv":
        lines = [columns.keys(), *zip(*columns.values(), strict=True)]
        path.write_text("".join(",".join(map(str, line)) + "\n" for line in lines))
    else:
        rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
        shop.land(0, rows, name=path.name)


@pytest.mark.parametrize("format_", ["json", "csv", "parquet"])
def test_an_added_column_is_reported_and_ignored(shop: Shop, format_: str) -> None:
    land(shop, format_, {"id": [1], "item": ["tea"], "colour": ["red"], "price": [3]})
    (told,) = shop.deliver(0).warnings
    assert "colour" in told
    (row,) = read_rows(shop.uri())
    assert {column: row[column] for column in ROW} == ROW
    assert "colour" not in row


@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_a_removed_column_stops_the_batch(shop: Shop, format_: str) -> None:
    land(shop, format_, {"id": [1], "price": [3]})
    with pytest.raises(QualityStop, match="lacks the declared column"):
        shop.deliver(0)
    assert read_rows(shop.uri()) == []


def test_columns_in_another_order_are_the_same(shop: Shop) -> None:
    land(shop, "csv", {"price": [3], "item": ["tea"], "id": [1]})
    report = shop.deliver(0)
    assert (report.warnings, report.quarantined, report.inserted) == ((), 0, 1)


def test_a_retyped_column_stops_the_batch_by_column_types_and_file(shop: Shop) -> None:
    land(shop, "parquet", {"id": [1, 2], "item": ["tea", "tea"], "price": ["3", "three"]})
    told = r"/part\.parquet: column price is STRING where INT is declared"
    with pytest.raises(QualityStop, match=told):
        shop.deliver(0)
    assert read_rows(shop.uri()) == []


EVOLVING = SALES.replace("    key: [id]\n", "    key: [id]\n    evolve: true\n")
TOP = """\
views:
  dearest: {kind: topk, from: sales, partition_by: [item], order_by: [price desc], limit: 1}
"""


def evolving(shop: Shop, format_: str, *, keyed: bool = True) -> None:
    text = EVOLVING if keyed else EVOLVING.replace("    key: [id]\n", "")
    shop.declare(text.replace("format: json", f"format: {format_}") + TOP)


def bring(shop: Shop, nth: int, format_: str, **columns: list[Any]) -> BatchReport:
    """A day of these columns, delivered."""
    path = shop.land(nth, [], name=f"part.{format_}")
    if format_ == "parquet":
        pq.write_table(pa.table(columns), path)
    else:
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        lines = [columns.keys(), *(row.values() for row in rows)]
        texts = (
            map(json.dumps, rows) if format_ == "json" else (",".join(map(str, x)) for x in lines)
        )
        path.write_text("".join(f"{line}\n" for line in texts))
    return shop.deliver(nth)


def stored(shop: Shop, *columns: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.get(c, "-") for c in columns) for row in read_rows(shop.uri()))


@pytest.mark.usefixtures("real_spark")
@pytest.mark.parametrize(("format_", "keyed"), [("json", True), ("csv", False), ("parquet", True)])
def test_an_added_column_is_taken_and_views_are_untouched(
    shop: Shop, format_: str, keyed: bool
) -> None:
    evolving(shop, format_, keyed=keyed)
    bring(shop, 0, format_, id=[1], item=["tea"], price=[3])
    advance(shop.spark, shop.project, shop.project.graph.table("dearest"), Run("r"))
    report = bring(shop, 1, format_, id=[2], item=["tea"], price=[2], colour=["red"])
    assert report.warnings == (
        "shop.sales: columns that `schema` lacks were added to the table: colour STRING",
    )
    bring(shop, 2, format_, id=[3], item=["tea"], price=[1])
    assert stored(shop, "id", "colour") == [(1, None), (2, "red"), (3, None)]
    *_, done = advance(shop.spark, shop.project, shop.project.graph.table("dearest"), Run("r"))
    assert (done.outcome, "colour" in read_rows(shop.uri("", "dearest"))[0]) == ("position", False)
    again = bring(shop, 0, format_, id=[1], item=["tea"], price=[3])
    assert (again.warnings, again.inserted, again.updated, again.deleted) == ((), 0, 0, 0)
    if keyed:
        verdicts = verify(shop.spark, shop.project, shop.project.graph.table("sales"))
        assert all(verdict.is_equal for verdict in verdicts)


@pytest.mark.usefixtures("real_spark")
@pytest.mark.parametrize(
    ("options", "lines"),
    [
        ("{}", '{"id":1,"item":"tea","price":3,"more":"x","f":NaN}\n'),
        ('{lineSep: "|"}', '{"id":1}|{"id":2,"more":"x","f":1}|'),
        ("{multiLine: true, encoding: UTF-16}", '[{"id":1,"f":1},\n{"id":2,"more":"x"}]'),
    ],
)
def test_columns_are_found_wherever_rows_are(shop: Shop, options: str, lines: str) -> None:
    text = EVOLVING.replace("format: json", f"format: json\n    options: {options}")
    shop.declare(text + TOP)
    encoding = "utf-16" if "UTF-16" in options else "utf-8"
    shop.land(0, [], name="a.json").write_text(lines, encoding)
    (said,) = shop.deliver(0).warnings
    assert said.endswith("were added to the table: f STRING, more STRING")
    assert "x" in {row.get("more") for row in read_rows(shop.uri())}


def test_a_list_that_is_always_empty_waits_for_a_type(shop: Shop) -> None:
    evolving(shop, "parquet")
    empty, full = (pa.array([v], pa.list_(t)) for v, t in (([], pa.null()), ([5], pa.int64())))
    bring(shop, 0, "parquet", id=[1], item=["tea"], price=[3], sizes=empty)  # type: ignore[arg-type]
    bring(shop, 1, "parquet", id=[2], item=["tea"], price=[3], sizes=full)  # type: ignore[arg-type]
    assert stored(shop, "id", "sizes") == [(1, None), (2, [5])]


def test_a_column_that_was_taken_keeps_its_type(shop: Shop) -> None:
    evolving(shop, "parquet")
    bring(shop, 0, "parquet", id=[1], item=["tea"], price=[3], size=[1.5], on=pa.nulls(1))
    assert stored(shop, "id", "size", "on") == [(1, 1.5, "-")]
    bring(shop, 1, "parquet", id=[2], item=["tea"], price=[3], size=[2])
    assert stored(shop, "id", "size") == [(1, 1.5), (2, 2.0)]
    with pytest.raises(QualityStop, match="column size is STRING where DOUBLE is declared"):
        bring(shop, 2, "parquet", id=[3], item=["tea"], price=[3], size=["XL"])


@pytest.mark.parametrize("type_", [pa.float32(), pa.int64(), pa.int32()])
def test_files_of_several_types_bring_their_common_one(shop: Shop, type_: pa.DataType) -> None:
    evolving(shop, "parquet")
    for id_, name, size in ((1, "a", pa.array([2], type_)), (2, "b", pa.array([0.1]))):
        columns = {"id": [id_], "item": [name], "price": [3], "size": size}
        pq.write_table(pa.table(columns), shop.land(0, [], name=f"{name}.parquet"))
    shop.deliver(0)
    assert stored(shop, "item", "size") == [("a", 2.0), ("b", 0.1)]


def test_a_name_that_no_table_can_have_is_reported_and_ignored(shop: Shop) -> None:
    evolving(shop, "parquet")
    columns = {"Colour": ["red"], "_sluice_id": ["x"], "in stock": [True]}
    report = bring(shop, 0, "parquet", id=[1], item=["tea"], price=[3], **columns)
    assert [w.partition(": ")[2] for w in report.warnings] == [
        "columns that `schema` lacks are ignored: Colour, _sluice_id, in stock"
    ]
    assert stored(shop, "id", "price") == [(1, 3)]


def test_two_columns_that_differ_in_case_alone_stop_the_batch(shop: Shop) -> None:
    evolving(shop, "parquet")
    with pytest.raises(QualityStop, match="more than one column named price, Price"):
        bring(shop, 0, "parquet", id=[1], item=["tea"], price=[3], Price=[4])


@pytest.mark.usefixtures("real_spark")
def test_a_field_of_any_line_is_taken_from_json(shop: Shop) -> None:
    evolving(shop, "json")
    rows = [{**ROW, "id": n, **({"colour": {"r": 1}} if n == 150 else {})} for n in range(151)]
    shop.land(0, rows)
    shop.deliver(0)
    assert stored(shop, "id", "colour")[-1] == (150, '{"r":1}')
