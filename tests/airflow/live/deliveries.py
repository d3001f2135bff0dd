"""Two days of a very small shop, as files that the retail pipeline reads.

Three products (two of DELI, one of PRODUCE), two households. The first day has basket 1 of
household 7 and basket 2 of household 8, the second basket 3 of household 7.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

FIRST, SECOND = "2017-05-08", "2017-05-09"
HAM, SALAD, APPLES = 101, 102, 201
Line = tuple[int, int, int, str]  # household, basket, product, paid
MONEY = pa.decimal128(12, 2)
TRANSACTIONS = pa.schema(
    {name: pa.int64() for name in ("household_id", "store_id", "basket_id", "product_id")}
    | {"quantity": pa.int64(), "sales_value": MONEY, "retail_disc": MONEY, "coupon_disc": MONEY}
    | {"coupon_match_disc": MONEY, "week": pa.int32()}
    | {"transaction_timestamp": pa.timestamp("us", "UTC")}
)
DAYS: Mapping[str, list[Line]] = {
    FIRST: [(7, 1, HAM, "4.00"), (7, 1, APPLES, "1.50"), (8, 2, SALAD, "3.00")],
    SECOND: [(7, 3, SALAD, "2.00"), (7, 3, APPLES, "2.50")],
}


def deliver(folder: Path) -> None:
    """Everything."""
    products = [(HAM, "DELI", "ham"), (SALAD, "DELI", "salad"), (APPLES, "PRODUCE", "apples")]
    _parquet(folder / "products/a.parquet", _products(products))
    _parquet(folder / "demographics/a.parquet", _demographics({7: "50-74K"}))
    for day, lines in DAYS.items():
        deliver_lines(folder, day, lines)
        redemptions = folder / f"coupon_redemptions/{day}/a.csv"
        _write(redemptions, "household_id,coupon_upc,campaign_id,redemption_date\n")
    deliver_members(folder, FIRST, "Type A")
    deliver_members(folder, SECOND, "Type A", households=())


def deliver_lines(folder: Path, day: str, lines: Iterable[Line]) -> None:
    """A day's transactions, in place of what was there."""
    rows = [_line(day, *line) for line in lines]
    table = pa.Table.from_pylist(rows, schema=TRANSACTIONS)
    _parquet(folder / f"transactions/{day}/a.parquet", table)


def deliver_members(folder: Path, day: str, kind: str, households: Iterable[int] = (7,)) -> None:
    """The members of a campaign that starts that day."""
    dates = {"start_date": day, "end_date": "2017-06-01"}
    rows = [
        {"campaign_id": 8, "campaign_type": kind, "household_id": h, **dates} for h in households
    ]
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    _write(folder / f"campaign_memberships/{day}/a.jsonl", text)


def _line(day: str, household: int, basket: int, product: int, paid: str) -> dict[str, Any]:
    nothing = Decimal("0.00")
    return {
        "household_id": household,
        "store_id": 1,
        "basket_id": basket,
        "product_id": product,
        "quantity": 1,
        "sales_value": Decimal(paid),
        "retail_disc": nothing,
        "coupon_disc": nothing,
        "coupon_match_disc": nothing,
        "week": 19,
        "transaction_timestamp": datetime.fromisoformat(f"{day}T12:00").replace(tzinfo=UTC),
    }


def _products(products: Iterable[tuple[int, str, str]]) -> pa.Table:
    names = ("manufacturer_id", "brand", "product_category", "product_type", "package_size")
    schema = {"product_id": pa.int64(), "manufacturer_id": pa.int64(), "department": pa.string()}
    schema |= {name: pa.string() for name in names[1:]}
    rows = [{"product_id": p, "department": d, "product_type": t} for p, d, t in products]
    return pa.Table.from_pylist(rows, schema=pa.schema(schema))


def _demographics(incomes: Mapping[int, str]) -> pa.Table:
    names = ("age", "income", "home_ownership", "marital_status", "household_size")
    names += ("household_comp", "kids_count")
    schema = {"household_id": pa.int64()} | {name: pa.string() for name in names}
    rows = [{"household_id": h, "income": income} for h, income in incomes.items()]
    return pa.Table.from_pylist(rows, schema=pa.schema(schema))


def _parquet(file: Path, table: pa.Table) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, file)


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")
