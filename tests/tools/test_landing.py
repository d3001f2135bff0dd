"""The demo's deliveries: all of the data, exactly, and the same however often they are made."""

import csv
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from ruamel.yaml import YAML

from landing import (
    CORRECTED_DAY,
    DEMO_END,
    DEMO_HOUSEHOLD,
    DEMO_START,
    SPOILED_DAY,
    correct,
    days,
    split,
    spoil,
)
from shopping import TRANSACTIONS, memberships, read, transactions

PIPELINE = Path(__file__).parents[2] / "config/pipelines/retail.yaml"
CHRISTMAS = date(2017, 12, 25)


@pytest.fixture
def week(tmp_path: Path) -> Path:
    split(tmp_path)
    return tmp_path


def lines_of(folder: Path, day: date) -> pa.Table:
    return pq.ParquetFile(folder / f"transactions/{day}/part-0.parquet").read()


def amounts(lines: pa.Table) -> dict[tuple[int, int], Decimal]:
    """What was paid, per basket and product."""
    columns = (lines[name].to_pylist() for name in ("basket_id", "product_id", "sales_value"))
    return {(basket, product): paid for basket, product, paid in zip(*columns, strict=True)}


def state(folder: Path) -> dict[Path, int]:
    return {file: file.stat().st_mtime_ns for file in folder.rglob("*") if file.is_file()}


def test_each_day_of_the_week_gets_a_file_of_each_kind(week: Path):
    for kind in ("transactions", "coupon_redemptions", "campaign_memberships"):
        assert sorted(folder.name for folder in (week / kind).iterdir()) == [
            str(day) for day in days(DEMO_START, DEMO_END)
        ]


def test_a_file_holds_the_rows_of_its_day_alone(week: Path):
    moments = lines_of(week, DEMO_START)["transaction_timestamp"].to_pylist()
    start = datetime(2017, 5, 8, tzinfo=UTC)
    assert start <= min(moments) <= max(moments) < start + timedelta(days=1)


def test_the_year_is_split_without_a_row_lost_but_new_years_night():
    rows = sum(transactions(day).num_rows for day in days(date(2017, 1, 1), date(2018, 1, 1)))
    assert rows + transactions(date(2018, 1, 1)).num_rows == read("transactions").num_rows
    every_day = days(date(2017, 1, 1), date(2018, 1, 1))
    assert sum(len(memberships(day)) for day in every_day) == read("campaigns").num_rows


def test_money_is_exact():
    lines = transactions(DEMO_START)
    assert lines.schema == TRANSACTIONS
    floats = read("transactions").filter(
        pc.is_in(read("transactions")["basket_id"], lines["basket_id"].combine_chunks())
    )
    expected = [Decimal(f"{value:.2f}") for value in floats["sales_value"].to_pylist()]
    assert lines["sales_value"].to_pylist() == expected


SQL_TYPES = {
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.string(): "STRING",
    pa.decimal128(12, 2): "DECIMAL(12,2)",
    pa.timestamp("us", "UTC"): "TIMESTAMP",
}


@pytest.mark.parametrize(
    ("kind", "name"),
    [("sources", "transactions"), ("dimensions", "products"), ("dimensions", "demographics")],
)
def test_parquet_files_have_the_declared_columns(week: Path, kind: str, name: str):
    declared = YAML(typ="safe").load(PIPELINE)[kind][name]["schema"]
    file = next((week / name).rglob("*.parquet"))
    found = [f"{field.name} {SQL_TYPES[field.type]}" for field in pq.read_schema(file)]
    assert ", ".join(found) == " ".join(declared.split())


def test_redemptions_are_csv_with_a_header_and_memberships_json_lines(week: Path):
    with (week / "coupon_redemptions/2017-05-08/redemptions.csv").open() as file:
        first = next(csv.DictReader(file))
    assert first["redemption_date"] == "2017-05-08"
    members = (week / "campaign_memberships/2017-05-08/members.jsonl").read_text().splitlines()
    assert len(members) == 1076
    assert json.loads(members[0])["start_date"] == "2017-05-08"


def test_a_day_without_redemptions_gets_a_header_and_christmas_no_transactions(tmp_path: Path):
    split(tmp_path, CHRISTMAS, CHRISTMAS + timedelta(days=1))
    redeemed = (tmp_path / f"coupon_redemptions/{CHRISTMAS}/redemptions.csv").read_text()
    assert redeemed.splitlines() == ["household_id,coupon_upc,campaign_id,redemption_date"]
    assert not (tmp_path / "transactions").exists()


def test_a_correction_drops_a_basket_and_raises_three_lines_of_the_day(week: Path):
    untouched = state(week)
    split(week)
    assert state(week) == untouched, "a second split touches no file"
    lines = lines_of(week, CORRECTED_DAY)
    before = amounts(lines)
    told = correct(week)
    corrected = state(week)
    assert (correct(week), state(week)) == (told, corrected), "a second correction is the same"
    after = amounts(lines_of(week, CORRECTED_DAY))
    assert told.household_id == DEMO_HOUSEHOLD
    assert told.dropped == 3
    assert {basket for basket, _ in before.keys() - after.keys()} == {told.basket_id}
    raised = {line for line in after if after[line] != before[line]}
    assert sorted(product for _, product in raised) == sorted(told.raised)
    assert all(after[line] == 10 * before[line] for line in raised)
    split(week)
    assert lines_of(week, CORRECTED_DAY) == lines, "splitting again takes it back"


def test_spoiled_days_have_three_bad_lines_until_mended(week: Path) -> None:
    file = week / f"coupon_redemptions/{SPOILED_DAY}/redemptions.csv"
    before = file.read_text().splitlines()
    assert spoil(week) == 3
    after = file.read_text().splitlines()
    assert [n for n, lines in enumerate(zip(before, after, strict=True)) if len({*lines}) > 1] == [
        *(1, 2, 3)
    ]
    assert after[1].startswith(",")
    assert ",n/a," in after[2]
    assert after[3].endswith(",2017-02-30")
    split(week, SPOILED_DAY, SPOILED_DAY + timedelta(days=1))
    assert file.read_text().splitlines() == before
