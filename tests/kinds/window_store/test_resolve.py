"""What a window store's readers see, and what identifies its rows."""

from tests.support.declaring import OfViews


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
