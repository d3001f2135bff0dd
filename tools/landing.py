"""The demo's deliveries: real shopping, split by day like files from a shop's systems.

`split` writes, below a folder,

    transactions/2017-05-08/part-0.parquet           one line of a basket per row
    coupon_redemptions/2017-05-08/redemptions.csv    with a header
    campaign_memberships/2017-05-08/members.jsonl    on the day on which the campaign starts
    products/part-0.parquet, demographics/part-0.parquet

A day without redemptions or new campaigns still gets its file, an empty one; on Christmas Day the
shops were closed, so there is no folder of transactions. Campaigns that had started before the year
are delivered on its first day. Existing files with the same content stay, so a rerun changes
nothing.

The demo's week is the one from Monday, May 8th, the first in which everything happens at once:
campaign 8 starts that day with 1,076 members, and 40 households redeem 76 coupons (17 in the best
week before). Its household, 2115, is a member, redeems two coupons and fills six baskets.

`correct` delivers a day of transactions again, as after a complaint: a household's largest basket
is gone, and the most expensive lines of a department cost ten times as much. `spoil` delivers a day
of redemptions with three unusable lines; `split` fixes them.
"""

import argparse
import csv
import io
import json
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from shopping import (
    FIRST_DAY,
    MONEY,
    YEAR_END,
    memberships,
    read,
    redemptions,
    transactions,
    with_column,
)

DEMO_START, DEMO_END = date(2017, 5, 8), date(2017, 5, 15)
DEMO_HOUSEHOLD = 2115
CORRECTED_DAY = date(2017, 5, 10)
CORRECTED_DEPARTMENT = "DELI"
RAISED_LINES = 3
RAISED_BY = Decimal(10)
SPOILED_DAY = date(2017, 5, 11)
SPOILED = (("household_id", ""), ("campaign_id", "n/a"), ("redemption_date", "2017-02-30"))


@dataclass(frozen=True, slots=True)
class Correction:
    """Differences of a corrected day."""

    day: date
    household_id: int
    basket_id: int
    dropped: int
    raised: tuple[int, ...]
    """Products with raised prices."""


def split(folder: Path, start: date = DEMO_START, end: date = DEMO_END) -> None:
    """Deliver the days from `start` up to, not including, `end`, and both snapshots."""
    for name in ("products", "demographics"):
        _put(folder / name / "part-0.parquet", _parquet(read(name)))
    for day in days(start, end):
        lines = transactions(day)
        if lines.num_rows:
            _put(_transactions_file(folder, day), _parquet(lines))
        _put(_redemptions_file(folder, day), _csv(redemptions(day)))
        _put(folder / f"campaign_memberships/{day}/members.jsonl", _json_lines(memberships(day)))


def correct(
    folder: Path, day: date = CORRECTED_DAY, household_id: int = DEMO_HOUSEHOLD
) -> Correction:
    """Deliver a day's transactions with a basket dropped and some amounts raised. It starts from
    the original data, so repeating a correction changes nothing. If the household didn't shop that
    day, the day's first one is taken.
    """
    lines = transactions(day)
    if not pc.any(pc.equal(lines["household_id"], household_id)).as_py():
        household_id = lines["household_id"][0].as_py()
    basket = _largest_basket(lines.filter(pc.equal(lines["household_id"], household_id)))
    kept = lines.filter(pc.not_equal(lines["basket_id"], basket))
    dearest = _dearest(kept, CORRECTED_DEPARTMENT)
    _put(_transactions_file(folder, day), _parquet(_raise(kept, dearest)))
    raised = kept["product_id"].take(pa.array(dearest)).to_pylist()
    return Correction(day, household_id, basket, lines.num_rows - kept.num_rows, tuple(raised))


def spoil(folder: Path, day: date = SPOILED_DAY) -> int:
    """Deliver a day's redemptions with a fault in each of the first lines; return their number."""
    header, *lines = _csv(redemptions(day)).decode().splitlines()
    names, rows = header.split(","), [line.split(",") for line in lines]
    for row, (column, value) in zip(rows, SPOILED, strict=False):
        row[names.index(column)] = value
    _put(
        _redemptions_file(folder, day), "".join(f"{','.join(r)}\n" for r in [names, *rows]).encode()
    )
    return min(len(SPOILED), len(rows))


def days(start: date, end: date) -> Iterator[date]:
    """Yield every day of [start, end)."""
    return (start + timedelta(days=number) for number in range((end - start).days))


def _largest_basket(lines: pa.Table) -> int:
    baskets = lines.group_by("basket_id").aggregate([("product_id", "count")])
    largest = baskets.sort_by([("product_id_count", "descending"), ("basket_id", "ascending")])
    return int(largest["basket_id"][0].as_py())


def _dearest(lines: pa.Table, department: str) -> list[int]:
    """Return row numbers of the department's lines with the largest amounts, one a product."""
    products = read("products")
    of_department = products.filter(pc.equal(products["department"], department))["product_id"]
    mine = pc.is_in(lines["product_id"], value_set=of_department)
    rows = pa.table(
        {
            "row": pa.array(range(lines.num_rows)),
            "product_id": lines["product_id"],
            "amount": lines["sales_value"],
        }
    ).filter(mine)
    dearest = rows.sort_by([("amount", "descending"), ("row", "ascending")]).to_pylist()
    one_each = {line["product_id"]: line["row"] for line in reversed(dearest)}
    return sorted(one_each.values(), key=[line["row"] for line in dearest].index)[:RAISED_LINES]


def _raise(lines: pa.Table, rows: Iterable[int]) -> pa.Table:
    amounts = lines["sales_value"].to_pylist()
    for row in rows:
        amounts[row] *= RAISED_BY
    return with_column(lines, "sales_value", pa.chunked_array([pa.array(amounts, MONEY)]))


def _transactions_file(folder: Path, day: date) -> Path:
    return folder / f"transactions/{day}/part-0.parquet"


def _redemptions_file(folder: Path, day: date) -> Path:
    return folder / f"coupon_redemptions/{day}/redemptions.csv"


def _parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="snappy", store_schema=False)
    return sink.getvalue()


def _csv(table: pa.Table) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.column_names)
    writer.writerows(zip(*table.to_pydict().values(), strict=True))
    return text.getvalue().encode()


def _json_lines(rows: Iterable[dict[str, object]]) -> bytes:
    return "".join(json.dumps(row, default=str) + "\n" for row in rows).encode()


def _put(file: Path, content: bytes) -> None:
    """Write atomically, and only if it differs: an unchanged file is not a new delivery."""
    if file.is_file() and file.read_bytes() == content:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    draft.write_bytes(content)
    draft.replace(file)


def main() -> None:
    """Split the requested days, the demo's week by default; or correct or spoil one day."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--folder", type=Path, default=Path("landing"))
    parser.add_argument("--start", type=date.fromisoformat, default=DEMO_START)
    parser.add_argument("--end", type=date.fromisoformat, default=DEMO_END, help="exclusive")
    parser.add_argument("--year", action="store_true", help="all 365 days of 2017")
    parser.add_argument("--correct", type=date.fromisoformat, metavar="DAY")
    parser.add_argument("--spoil", type=date.fromisoformat, metavar="DAY")
    given = parser.parse_args()
    began = time.perf_counter()
    if given.correct:
        print(correct(given.folder, given.correct))
    elif given.spoil:
        print(f"{given.folder}: {spoil(given.folder, given.spoil)} bad lines of {given.spoil}")
    else:
        start, end = (FIRST_DAY, YEAR_END) if given.year else (given.start, given.end)
        split(given.folder, start, end)
        print(f"{given.folder}: {start} to {end} in {time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
