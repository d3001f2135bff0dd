"""What a top-k's readers see, and what identifies its rows."""

import pytest
from tests.support.declaring import OfViews

RANKED = "t: {kind: topk, from: sales, order_by: [price], limit: 9, "
OF_ITEM = f"{RANKED}partition_by: [item]"
OF_CLICKS = OF_ITEM.replace("sales", "clicks").replace("[price]", "[at]")
ALL = "item id price at tags rank"
AGAIN = "u: {kind: topk, from: t, order_by: [price], limit: 1"
WINDOW = "window: {type: tumbling, time: at, size: 1 day}"


@pytest.mark.parametrize(
    ("views", "columns", "key"),
    [
        (f"{OF_ITEM}}}", ALL, "item id"),
        (f"{RANKED}select: [price]}}", "price rank", "_sluice_key_id"),
        (f"{RANKED}select: {{id: id + 1}}}}", "id rank", "_sluice_key_id"),
        (
            f"{OF_ITEM}, select: [item, price]}}\n{AGAIN}, partition_by: [item]}}",
            "item price rank",
            "item _sluice_key_id",
        ),
        (f"{OF_CLICKS}}}", "item at where_from rank", "item _sluice_interval _sluice_id"),
        (
            f"{OF_ITEM}, {WINDOW}}}",
            f"window_start window_end {ALL}",
            "window_start item id",
        ),
        (f"{RANKED}rank: false}}", "id item price at tags", "id"),
        (f"{OF_ITEM}}}\n{AGAIN}}}", ALL, "item id"),
    ],
    ids=[
        *("partitions first", "a key that is not shown", "a computed key", "a key carried on"),
        *("a source without a key", "windows first", "without ranks", "ranked again"),
    ],
)
def test_a_topk_shows_partition_input_and_rank_and_keeps_its_inputs_key(
    table: OfViews, views: str, columns: str, key: str
) -> None:
    top = table(views)
    assert [*top.columns] == columns.split()
    assert top.key == tuple(key.split())
    assert {*top.hidden} == {name for name in top.key if name.startswith("_sluice")}
    assert top.hidden.get("_sluice_key_id", "INT") == "INT"
