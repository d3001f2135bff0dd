# ruff: noqa: E501 - messages stand here as they are printed
"""What people get wrong in window stores, and the line that each gets."""

import pytest
from tests.support.declaring import Mistakes


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (
            "{kind: window_store, from: sales, key: [item], time: att}",
            (
                "11: views.s.time: unknown "
                "column 'att'; did you mean 'at'? columns are: id, item, price, at, tags"
            ),
        ),
        (
            "{kind: window_store, from: sales, key: [at], time: at}",
            ("11: views.s.key: at is already the event time: drop it from the key"),
        ),
        (
            "{kind: window_store, from: sales, key: [window_start], time: at}",
            (
                "11: views.s.key: "
                "window_start and window_end are the store's own columns, not its key"
            ),
        ),
        (
            "{kind: window_store, from: sales, key: [tags], time: at}",
            ("11: views.s.key: tags is a MAP, which has no order and can't be a key"),
        ),
        (
            "{kind: window_store, from: sales, key: [item], time: at, select: {item: id}}",
            "11: views.s.select.item: item is the store's key as it is; use another name",
        ),
    ],
)
def test_a_window_store(mistakes: Mistakes, view: str, message: str) -> None:
    assert mistakes(f"s: {view}") == [message]


def test_a_window_stores_key_is_not_nested(mistakes: Mistakes) -> None:
    groups = "{streams: {s: {from: sales, aggregates: {ids: collect_set(id), last: max(at)}}}"
    told = mistakes(
        f"g: {groups}, kind: cogroup, key: [item]}}\n"
        "s: {kind: window_store, from: g, key: [ids], time: last}"
    )
    assert told == ["12: views.s.key: ids is ARRAY; reads sort by plain values: select those"]


def test_an_order_among_rows_that_all_stay_is_refused(mistakes: Mistakes) -> None:
    view = "s: {kind: window_store, from: sales, key: [item], time: at, duplicates: true, sequence: [id]}"
    assert mistakes(view) == [
        (
            "11: views.s.sequence: `sequence` chooses one of two rows; with `duplicates` both are "
            "kept: drop one"
        )
    ]
