"""Tables of every type that is compared, written in several commits, and the search in them."""

import random
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from sluice.delta.reading.searching import SearchedVersion
from sluice.delta.reading.wanted import Span
from sluice.limits import Limits

ROWS = 60
SCHEMA = pa.schema(
    {
        "part": pa.string(),
        "small": pa.int16(),
        "big": pa.int64(),
        "text": pa.string(),
        "day": pa.date32(),
        "at": pa.timestamp("us", "UTC"),
        "price": pa.decimal128(12, 2),
        "is_on": pa.bool_(),
        "ratio": pa.float64(),
        "tags": pa.list_(pa.struct({"name": pa.string(), "n": pa.int32()})),
        "counts": pa.map_(pa.string(), pa.int64()),
    }
)
COMPARED = ("part", "small", "big", "text", "day", "at", "price", "is_on")


def a_row(chance: random.Random) -> dict[str, Any]:
    n = chance.randrange(6)
    values = {
        "part": f"p{n % 3}",
        "small": n,
        "big": n * 10**12,
        "text": f"é{n}",
        "day": date(1, 1, 1 + n),
        "at": datetime(2024, 1, 1, tzinfo=UTC) + timedelta(microseconds=n),
        "price": Decimal(n) / 4,
        "is_on": n % 2 == 0,
        "ratio": float("nan") if n == 3 else -0.0,
        "tags": [{"name": "a", "n": n}, None, {"name": None, "n": None}],
        "counts": [("a", n), ("b", None)],
    }
    return {k: None if chance.random() < 0.15 else v for k, v in values.items()}


def written(folder: Path, chance: random.Random, parts: Sequence[str]) -> str:
    """Write rows in four commits; the first has fewer columns."""
    uri = str(folder / "t")
    for number in range(4):
        rows = pa.Table.from_pylist([a_row(chance) for _ in range(ROWS)], SCHEMA)
        rows = rows.drop_columns(["text", "tags"]) if number == 0 else rows
        write_deltalake(
            uri, rows, mode="append", schema_mode="merge" if number else None, partition_by=[*parts]
        )
    return uri


def among(row: dict[str, Any], wanted: dict[str, list[Any]]) -> bool:
    return all(row[name] in values for name, values in wanted.items())


def within(row: dict[str, Any], span: Span) -> bool:
    value, least, most = row[span.column], span.least.as_py(), span.most.as_py()
    if value is None:
        return span.nulls
    return (least is None or least <= value) and (most is None or value <= most)


def a_span(chance: random.Random) -> Span:
    """Some bounds of a column with an order; null is none."""
    name = chance.choice(["small", "big", "day", "at"])
    least, most = (pa.scalar(a_row(chance)[name], SCHEMA.field(name).type) for _ in range(2))
    return Span(name, least, most, chance.random() < 0.5)


def searched(
    uri: str,
    wanted: list[dict[str, list[Any]]],
    span: Span | None = None,
    columns: Sequence[str] = (),
) -> pa.Table:
    searched = SearchedVersion(uri, DeltaTable(uri).version(), Limits(), columns)
    values = [
        {n: pa.chunked_array([pa.array(v, SCHEMA.field(n).type)]) for n, v in one.items()}
        for one in wanted
    ]
    found = searched.find_rows(values, span)
    assert found is not None
    return found


def shown(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))
