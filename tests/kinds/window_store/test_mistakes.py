# ruff: noqa: E501 - a mistake stands in one line
"""What people get wrong in window stores, and the line that each gets."""

from tests.support.declaring import Mistakes
from tests.support.wording import Wording, cells, each


@each(
    "view, told",
    *cells("""
        {kind: window_store, from: sales, key: [item], time: att} | views.s.time: … att … at … id, item, price, at, tags
        {kind: window_store, from: sales, key: [at], time: at} | views.s.key:
        {kind: window_store, from: sales, key: [window_start], time: at} | views.s.key: … window_start … window_end
        {kind: window_store, from: sales, key: [tags], time: at} | views.s.key: … MAP
        {kind: window_store, from: sales, key: [item], time: at, select: {item: id}} | views.s.select.item:
        {kind: window_store, from: sales, key: [item], time: at, duplicates: true, sequence: [id]}
            | views.s.sequence: … sequence … duplicates
    """),
)
def test_a_window_store(mistakes: Mistakes, wording: Wording, view: str, told: str) -> None:
    wording(mistakes(f"s: {view}"), f"11: {told}")


def test_a_window_stores_key_is_not_nested(mistakes: Mistakes) -> None:
    groups = "{streams: {s: {from: sales, aggregates: {ids: collect_set(id), last: max(at)}}}"
    told = mistakes(
        f"g: {groups}, kind: cogroup, key: [item]}}\n"
        "s: {kind: window_store, from: g, key: [ids], time: last}"
    )
    assert told == ["12: views.s.key: ids is ARRAY; reads sort by plain values: select those"]


def test_names_of_the_key_that_are_selected_otherwise_come_in_order(mistakes: Mistakes) -> None:
    key, select = "[price, item, id]", "{price: item, id: price, item: id}"
    told = mistakes(
        f"s: {{kind: window_store, from: sales, key: {key}, time: at, select: {select}}}"
    )
    each_ = [one.partition(":")[2].partition(":")[0].strip() for one in told]
    assert each_ == [f"views.s.select.{name}" for name in ("id", "item", "price")]
