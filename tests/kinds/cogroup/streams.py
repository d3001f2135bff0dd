"""Two sources, and brute force over rows of streams by key."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from tests.support.lake import Row
from tests.support.oracle import (
    column,
    grouped,
    total,
)
from tests.support.rows import (
    NOON,
    floats,
    groups,
    ids,
    money,
    not_finite,
    numbers,
    row,
    times,
    words,
)

if TYPE_CHECKING:
    from tests.support.oracle import Value

SOURCES = """
sources:
  sales:
    path: "sales/{interval_start:%Y-%m-%d}/"
    key: [id]
    schema: "id INT, g STRING, v INT, m DECIMAL(6,2), f DOUBLE, w STRING, at TIMESTAMP"
  clicks:
    path: "clicks/{interval_start:%Y-%m-%d}/"
    schema: "who STRING, n BIGINT, f FLOAT, at TIMESTAMP"
views:
"""
sales = row(id=ids, g=groups, v=numbers, m=money, f=floats | floats | not_finite, w=words, at=times)
clicks = row(
    _sluice_interval=st.just(NOON),
    _sluice_id=st.sampled_from(["p-1", "q-1", "q-2", "r-1"]),
    who=groups,
    n=numbers,
    f=st.sampled_from([None, 0.5, -0.25, 8.0]),
    at=times,
)
G, WHO = column("g"), column("who")
TIES = (column("id"), "asc")
Aggregates = Mapping[str, Callable[[list[Row]], Any]]


def summed(rows: list[Row]) -> Any:
    return total(rows, "v")


def per_key(
    streams: Mapping[str, tuple[list[Row], list["Value"], Aggregates]], key: tuple[str, ...]
) -> list[Row]:
    """One row for each key that any stream has; aggregates of a stream without rows are of []."""
    by_stream = {name: grouped(rows, *by) for name, (rows, by, _) in streams.items()}
    found = []
    for group in dict.fromkeys(g for of_stream in by_stream.values() for g in of_stream):
        values: Row = dict(zip(key, group, strict=True))
        for name, (_, _, aggregates) in streams.items():
            rows = by_stream[name].get(group, [])
            values |= {column: function(rows) for column, function in aggregates.items()}
        found.append(values)
    return found
