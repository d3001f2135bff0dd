"""What a top-k's readers see, and what identifies its rows."""

from tests.support.declaring import OfViews


def test_a_topk_shows_partition_input_and_rank(table: OfViews) -> None:
    top = table("t: {kind: topk, from: sales, partition_by: [item], order_by: [price], limit: 1}")
    assert list(top.columns) == ["item", "id", "price", "at", "tags", "rank"]
    assert top.key == ("item", "id")
    assert top.hidden == {}


def test_a_topk_of_a_projection_carries_its_inputs_key(table: OfViews) -> None:
    top = table("t: {kind: topk, from: sales, order_by: [price], limit: 1, select: [price]}")
    assert list(top.columns) == ["price", "rank"]
    assert top.key == ("_sluice_key_id",)
    assert top.hidden == {"_sluice_key_id": "INT"}


def test_a_renamed_or_computed_key_is_carried_too(table: OfViews) -> None:
    top = table("t: {kind: topk, from: sales, order_by: [price], limit: 1, select: {id: id + 1}}")
    assert top.key == ("_sluice_key_id",)


def test_a_carried_key_keeps_its_name_further_on(table: OfViews) -> None:
    top = table(
        "t: {kind: topk, from: sales, order_by: [price], limit: 9, select: [item, price]}\n"
        "u: {kind: topk, from: t, partition_by: [item], order_by: [price], limit: 1}"
    )
    assert top.key == ("item", "_sluice_key_id")
    assert list(top.columns) == ["item", "price", "rank"]


def test_a_topk_over_a_keyless_source_carries_the_hidden_identity(table: OfViews) -> None:
    top = table("t: {kind: topk, from: clicks, partition_by: [item], order_by: [at], limit: 1}")
    assert top.key == ("item", "_sluice_interval", "_sluice_id")
    assert set(top.hidden) == {"_sluice_interval", "_sluice_id"}


def test_a_windowed_topk_is_identified_by_its_window_first(table: OfViews) -> None:
    top = table(
        "t: {kind: topk, from: sales, partition_by: [item], order_by: [price], limit: 1, "
        "window: {type: tumbling, time: at, size: 1 day}}"
    )
    assert list(top.columns)[:3] == ["window_start", "window_end", "item"]
    assert top.key == ("window_start", "item", "id")


def test_a_topk_without_rank_has_no_rank_column(table: OfViews) -> None:
    top = table("t: {kind: topk, from: sales, order_by: [price], limit: 1, rank: false}")
    assert "rank" not in top.columns


def test_a_topk_over_a_topk_ranks_again(table: OfViews) -> None:
    top = table(
        "t: {kind: topk, from: sales, partition_by: [item], order_by: [price], limit: 9}\n"
        "u: {kind: topk, from: t, order_by: [price], limit: 1}"
    )
    assert list(top.columns) == ["item", "id", "price", "at", "tags", "rank"]
