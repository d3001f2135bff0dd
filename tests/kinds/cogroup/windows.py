"""Tumbling, hopping and session windows over two streams, by brute force."""

from datetime import timedelta
from typing import Any

from tests.kinds.cogroup.streams import WHO, Aggregates, G, per_key, summed
from tests.support.lake import Row, State
from tests.support.oracle import (
    column,
    in_sessions,
    present,
    windowed,
    windows_of,
)


def windowed_view(window: str, aggregates: str) -> str:
    return f"""
  found:
    kind: cogroup
    key: [g]
    window: {{{window}}}
    streams:
      sold: {{from: sales, aggregates: {{{aggregates}}}}}
      clicked: {{from: clicks, key: [who], aggregates: {{clicks: "count(*)"}}}}
"""


SOLD: Aggregates = {"rows_sold": len, "v": summed}
HIGH: Aggregates = {"high": lambda rows: max(present(rows, "v"), default=None)}
START, END = column("window_start"), column("window_end")


def in_windows(state: State, size: timedelta, advance: timedelta | None, sold: Aggregates) -> Any:
    windows = windows_of(size, advance)
    return per_key(
        {
            "sold": (windowed(state["sales"], "at", windows), [START, END, G], sold),
            "clicked": (
                windowed(state["clicks"], "at", windows),
                [START, END, WHO],
                {"clicks": len},
            ),
        },
        ("window_start", "window_end", "g"),
    )


def tumbling(state: State) -> list[Row]:
    return in_windows(state, timedelta(hours=6), None, SOLD)


def hopping(state: State) -> list[Row]:
    return in_windows(state, timedelta(minutes=90), timedelta(minutes=40), HIGH)


def session(state: State) -> list[Row]:
    tagged = [{**r, "_g": r["g"], "_s": "sold"} for r in state["sales"]]
    tagged += [{**r, "_g": r["who"], "_s": "clicked"} for r in state["clicks"]]
    rows = in_sessions(tagged, [column("_g")], column("at"), timedelta(minutes=60))
    by = [START, END, column("_g")]
    sold = [r for r in rows if r["_s"] == "sold"]
    clicked = [r for r in rows if r["_s"] == "clicked"]
    streams = {"sold": (sold, by, SOLD), "clicked": (clicked, by, {"clicks": len})}
    return per_key(streams, ("window_start", "window_end", "g"))
