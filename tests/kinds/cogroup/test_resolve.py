"""What a cogroup's readers see, and what identifies its rows."""

from typing import Any

from tests.support.declaring import OfViews

from sluice.engine.tracing import conditions


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
    sessions = (
        "c:\n  kind: cogroup\n  key: [item]\n  retention: 90 days\n"
        "  window: {type: session, time: at, gap: 30 minutes}\n"
        "  streams: {seen: {from: clicks, aggregates: {n: count(*)}}}"
    )
    carts = table(sessions)
    assert list(carts.columns) == ["window_start", "window_end", "item", "n"]
    assert carts.key == ("window_start", "item")
    assert carts.named_key == ("item", "window_start")
    query = "SELECT window_start, item, n FROM c"
    seen = table(f"{sessions}\nv: {{kind: sql, key: [window_start, item], sql: '{query}'}}")
    assert seen.named_key == ("window_start", "item"), "as declared"


def test_a_cogroups_select_is_over_all_streams_aggregates(table: OfViews) -> None:
    carts = table(
        "c:\n  kind: cogroup\n  key: [item]\n  streams:\n"
        "    sold: {from: sales, aggregates: {n: count(*)}}\n"
        "    seen: {from: clicks, key: [item], aggregates: {clicks: count(*)}}\n"
        "  select: {rate: n / clicks}"
    )
    assert dict(carts.columns) == {"item": "STRING", "rate": "DOUBLE"}


def test_the_condition_of_one_stream_can_be_left_out(table: OfViews) -> None:
    carts = table(
        "c:\n  kind: cogroup\n  key: [item]\n  streams:\n"
        "    sold: {from: sales, where: price > 1, aggregates: {n: count(*)}}\n"
        "    seen: {from: clicks, where: at IS NOT NULL, aggregates: {ats: count(at)}}"
    )
    sold, seen = conditions(carts.spec)
    assert (sold.text, seen.text) == (
        "streams.sold.where: price > 1",
        "streams.seen.where: at IS NOT NULL",
    )
    left: Any = sold.without(carts.spec)
    assert left.streams["sold"].where is None
    assert left.streams["seen"].where == carts.spec.streams["seen"].where  # type: ignore[attr-defined]
