"""What a view's readers see, and what identifies its rows."""

from collections.abc import Callable

from sluice.declare.table import Table

OfViews = Callable[[str], Table]


def test_a_keyed_sources_rows_are_identified_by_its_key(shop: Callable[[str], object]) -> None:
    graph = shop("").graph  # type: ignore[attr-defined]
    assert graph.table("sales").key == ("id",)
    assert graph.table("sales").hidden == {}


def test_a_keyless_sources_rows_have_a_hidden_identity(shop: Callable[[str], object]) -> None:
    clicks = shop("").graph.table("clicks")  # type: ignore[attr-defined]
    assert clicks.key == ("_sluice_interval", "_sluice_id")
    assert clicks.hidden == {"_sluice_interval": "TIMESTAMP", "_sluice_id": "STRING"}
    assert list(clicks.columns) == ["item", "at", "where_from"]


def test_a_dimension_with_history_has_a_row_per_version(shop: Callable[[str], object]) -> None:
    prices = shop("").graph.table("prices")  # type: ignore[attr-defined]
    assert prices.key == ("item", "valid_from")
    assert list(prices.columns) == ["item", "price", "valid_from", "valid_to", "is_current"]


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


def test_a_cogroup_shows_key_and_aggregates_in_the_order_of_streams(table: OfViews) -> None:
    carts = table(
        "c:\n  kind: cogroup\n  key: [item]\n  streams:\n"
        "    sold: {from: sales, aggregates: {total: sum(price), items: count(*)}}\n"
        "    seen: {from: clicks, aggregates: {ats: collect_list(at ORDER BY at)}}"
    )
    assert dict(carts.columns) == {
        "item": "STRING",
        "total": "DECIMAL(22, 2)",
        "items": "BIGINT",
        "ats": "ARRAY<TIMESTAMP>",
    }
    assert carts.key == ("item",)
    assert carts.inputs == ("shop.sales", "shop.clicks")


def test_a_windowed_cogroup_has_window_columns(table: OfViews) -> None:
    carts = table(
        "c:\n  kind: cogroup\n  key: [item]\n  retention: 90 days\n"
        "  window: {type: session, time: at, gap: 30 minutes}\n"
        "  streams: {seen: {from: clicks, aggregates: {n: count(*)}}}"
    )
    assert list(carts.columns) == ["window_start", "window_end", "item", "n"]
    assert carts.key == ("window_start", "item")


def test_a_cogroups_select_is_over_all_streams_aggregates(table: OfViews) -> None:
    carts = table(
        "c:\n  kind: cogroup\n  key: [item]\n  streams:\n"
        "    sold: {from: sales, aggregates: {n: count(*)}}\n"
        "    seen: {from: clicks, key: [item], aggregates: {clicks: count(*)}}\n"
        "  select: {rate: n / clicks}"
    )
    assert dict(carts.columns) == {"item": "STRING", "rate": "DOUBLE"}


BILLS = "b: {kind: lookup, from: sales, join: [{dimension: items, on: item = items.item}]"


def test_a_lookup_without_select_adds_the_dimensions_new_columns(table: OfViews) -> None:
    bills = table(BILLS + "}")
    assert list(bills.columns) == ["id", "item", "price", "at", "tags", "department"]
    assert bills.key == ("id",)
    assert bills.hidden == {"_sluice_batch": "BIGINT"}
    assert bills.inputs == ("shop.sales", "shop.items")


def test_a_lookup_that_is_corrected_keeps_no_batch(table: OfViews) -> None:
    assert table(BILLS + ", refresh: true}").hidden == {}


def test_a_lookup_at_event_time_needs_only_the_key_without_the_version(table: OfViews) -> None:
    bills = table(
        "b: {kind: lookup, from: sales, as_of: event_time, time: at, "
        "join: [{dimension: prices, on: item = prices.item}], select: {p: prices.price}}"
    )
    assert bills.key == ("_sluice_key_id",)
    assert dict(bills.columns) == {"p": "DECIMAL(12, 2)"}
    assert bills.hidden == {"_sluice_key_id": "INT"}


def test_a_window_store_shows_key_start_and_values(table: OfViews) -> None:
    store = table("s: {kind: window_store, from: sales, key: [item], time: at}")
    assert list(store.columns) == ["item", "window_start", "id", "price", "tags"]
    assert store.key == ("item", "window_start")


def test_a_window_store_with_duplicates_carries_its_inputs_key(table: OfViews) -> None:
    store = table(
        "s: {kind: window_store, from: clicks, key: [item], time: at, duplicates: true, "
        "window: 1 hour}"
    )
    assert list(store.columns) == ["item", "window_start", "window_end", "where_from"]
    assert store.key == ("item", "window_start", "_sluice_interval", "_sluice_id")


def test_a_store_of_a_windowed_view_takes_its_start(table: OfViews) -> None:
    store = table(
        "c:\n  kind: cogroup\n  key: [item]\n"
        "  window: {type: tumbling, time: at, size: 1 day}\n"
        "  streams: {seen: {from: clicks, aggregates: {n: count(*)}}}\n"
        "s: {kind: window_store, from: c, key: [item], time: window_start, duplicates: true}"
    )
    assert list(store.columns) == ["item", "window_start", "window_end", "n"]
    assert store.key == ("item", "window_start")


def test_the_column_of_changes_is_not_the_tables(write: Callable[..., object]) -> None:
    from sluice.declare.project import load

    text = """\
pipeline: p
schedule: assets
sources:
  x:
    path: x/
    delivery: stream
    key: [id]
    schema: id INT, op STRING
    change: {column: op, insert: [c, r], update: [u], delete: [d]}
"""
    project = load(write({"pipelines/p.yaml": text}))  # type: ignore[arg-type]
    assert list(project.graph.table("x").columns) == ["id"]
