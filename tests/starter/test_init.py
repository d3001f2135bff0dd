"""A project that `sluice init` begins runs as it is, and says what the data says."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable, write_deltalake
from ruamel.yaml import YAML

from sluice.cli.main import main
from sluice.declare.project import load
from sluice.errors import UsageError
from sluice.read.lake import Lake
from sluice.starter.files import FoundTable, find
from sluice.starter.new_project import CHECK, DAGS, guess, pipelines, schedule, start

TODAY = date(2024, 6, 1)
Land = Callable[[str, object], None]
FLIGHTS = """id;carrier;delay;at;dep time
1;AA;5;2013-01-01 05:00:00;517
2;UA;NA;2013-01-02 06:30:00;533
3;AA;-7;2013-01-03 07:00:00;NA
"""
AIRLINES = "carrier,name\nAA,American\nUA,United\n"


@pytest.fixture
def land(tmp_path: Path) -> Land:
    def put(path: str, content: object) -> None:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, pa.Table):
            pq.write_table(content, file)
            return
        text = content if isinstance(content, str) else "".join(map(line, content))  # type: ignore[arg-type]
        raw = text.encode()
        file.write_bytes(gzip.compress(raw) if file.suffix == ".gz" else raw)

    return put


def line(row: object) -> str:
    return json.dumps(row) + "\n"


def declared(folder: Path, *patterns: str) -> dict[str, dict[str, dict[str, object]]]:
    guesses = [guess(found) for found in find(patterns, folder)]
    (text,) = pipelines("shop", guesses, TODAY).values()
    return YAML(typ="safe").load(text)  # type: ignore[no-any-return]


def test_files_of_the_same_columns_are_one_table(tmp_path: Path, land: Land) -> None:
    for nth in (1, 2):
        land(f"data/sales-{nth}.csv", f"id,at,paid\n{nth},2024-01-0{nth}T10:00:00,1.5\n")
    land("data/airlines.csv", AIRLINES)
    found = declared(tmp_path, "data")
    assert found["sources"]["sales"] == {
        "path": "data/sales-*.csv",
        "format": "csv",
        "schema": "id BIGINT, at TIMESTAMP, paid DOUBLE",
        "time": "at",
    }
    assert found["dimensions"]["airlines"]["key"] == ["carrier"]


def test_a_date_in_a_path_is_the_interval(tmp_path: Path, land: Land) -> None:
    for day in ("2024-05-30", "2024-05-31"):
        land(f"landing/clicks/{day}/part-{day[-1]}.json.gz", [{"who": 1, "tags": ["a"]}])
        land(f"landing/stock-{day}.parquet", pa.table({"n": pa.array([1], pa.int32())}))
    found = declared(tmp_path, "landing")
    clicks, stock = found["sources"]["clicks"], found["sources"]["stock"]
    assert clicks["path"] == "landing/clicks/{interval_start:%Y-%m-%d}/"
    assert clicks["schema"] == "who BIGINT, tags ARRAY<STRING>"
    assert stock["path"] == "landing/stock-{interval_start:%Y-%m-%d}.parquet"
    assert (found["schedule"], found["start_date"]) == ("@daily", date(2024, 5, 30))
    assert "end_date" not in found  # more is coming


def test_a_table_is_not_named_after_its_partition(tmp_path: Path, land: Land) -> None:
    for day in (1, 2):
        land(f"landing/vitals/day=2024-05-0{day}/part-0.csv", f"id,n\n{day},2\n")
    (found,) = find(["landing"], tmp_path)
    assert (found.name, found.path) == ("vitals", "landing/vitals/day={interval_start:%Y-%m-%d}/")


def test_times_within_objects_have_one_type_beside_broken_lines(tmp_path: Path, land: Land) -> None:
    rows = [{"id": n, "sample": {"at": f"2024-05-01T10:00:0{n}Z", "tube": "red"}} for n in (1, 2)]
    land("landing/2024-05-01/lab.jsonl", [*rows, {"id": 3, "sample": None}])
    land("landing/2024-05-02/lab.jsonl", "".join(map(line, rows)) + "{broken\n")
    (found,) = find(["landing"], tmp_path)
    columns = {"id": "BIGINT", "sample": "STRUCT<at: TIMESTAMP, tube: STRING>"}
    assert guess(found).columns == columns


def test_months_in_paths_are_intervals_and_others_reference_data(
    tmp_path: Path, land: Land
) -> None:
    for month in ("2024-04", "2024-05"):
        land(f"landing/orders/{month}/orders.csv", f"id,at\n1,{month}-01 10:00:00\n")
        land(f"landing/lines/{month}.json", [{"id": 1, "at": f"{month}-01T10:00:00.500"}])
    land("landing/staff.csv", "id,born\n1,1947-01-01\n")
    found = declared(tmp_path, "landing")
    orders, lines = found["sources"]["orders"], found["sources"]["lines"]
    assert orders["path"] == "landing/orders/{interval_start:%Y-%m}/"
    assert lines["path"] == "landing/lines/{interval_start:%Y-%m}.json"
    assert (lines["schema"], lines["time"]) == ("id BIGINT, at TIMESTAMP", "at")
    assert found["dimensions"]["staff"]["key"] == ["id"]
    assert (found["schedule"], found["start_date"]) == ("@monthly", date(2024, 4, 1))


def test_folders_by_year_month_or_day_are_intervals(tmp_path: Path, land: Land) -> None:
    for year in ("2022", "2023"):
        land(f"landing/orders/{year}/a.csv", f"id,at\n1,{year}-01-01 10:00:00\n")
        land(f"taxes/{year}.csv", "id,paid\n1,2\n")
        land(f"visits/{year}/05/30/a.csv", "id,page\n1,x\n")
        land(f"stock/{year}/{year}-05-30.csv", "id,n\n1,2\n")
    orders = declared(tmp_path, "landing", "taxes")
    assert orders["sources"]["orders"]["path"] == "landing/orders/{interval_start:%Y}/"
    assert orders["sources"]["taxes"]["path"] == "taxes/{interval_start:%Y}.csv"
    assert (orders["schedule"], orders["start_date"]) == ("@yearly", date(2022, 1, 1))
    days = declared(tmp_path, "visits", "stock")
    assert days["sources"]["visits"]["path"] == "visits/{interval_start:%Y/%m/%d}/"
    stock = "stock/{interval_start:%Y}/{interval_start:%Y-%m-%d}.csv"
    assert days["sources"]["stock"]["path"] == stock
    assert (days["schedule"], days["start_date"]) == ("@daily", date(2022, 5, 30))


def test_a_column_whose_types_differ_by_file_is_text(tmp_path: Path, land: Land) -> None:
    for nth, code in enumerate(("0171", "K1A", "8000"), 1):
        land(f"landing/2024-05-0{nth}.csv", f"id,code\n{nth},{code}\n")
    assert declared(tmp_path, "landing")["sources"]["landing"]["schema"] == "id BIGINT, code STRING"


def test_dirty_files_quarantine_the_bad_rows(
    tmp_path: Path, land: Land, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [f"{n},{n % 9},2024-05-30 10:00:{n:02},ok" for n in range(40)]
    rows[5] = "5,5,2024-02-30 10:00:00,ok"
    rows[6] = "6,six,2024-05-30 10:00:06,ok"
    rows[7] = "7,7,2024-05-30 10:00:07"
    rows[8] = "8,8,2024-05-30 10:00:08,ok,more"
    rows[9] = "9,9,30/05/2024 10:00,ok"
    rows[11] = rows[10]
    land("landing/orders/2024-05-30.csv", "\n".join(["id,n,at,state", *rows]) + "\n")
    orders = tmp_path / "landing" / "orders" / "2024-05-30.csv"
    orders.write_bytes(orders.read_bytes().replace(b"10:00:12,ok", b"10:00:12,\xe9"))
    events = [{"id": n, "at": "2024-05-30T10:00:00Z", "n": n} for n in range(20)]
    lines = [line(e) for e in events]
    lines[3] = '{"id": 3, "at": \n'
    lines[4] = line({**events[4], "n": "four"})
    land("landing/events/2024-05-30.json", "".join(lines))
    people = "".join(f"{n},p{n % 7}\n" for n in range(30))
    land("landing/people.csv", f"person_id,name\n{people}3,again\n,nobody\n")
    for name in ("empty.csv", "empty.json", "header.csv", "latin.csv", "broken.csv.gz"):
        land(f"landing/{name}", "a,b\n" if name == "header.csv" else "")
    (tmp_path / "landing" / "latin.csv").write_bytes(b"id,n\xe4me\n1,2\n")
    (tmp_path / "landing" / "broken.csv.gz").write_bytes(b"no archive")
    start(tmp_path, (), "{}")
    (written,) = (tmp_path / "config" / "pipelines").iterdir()
    text = written.read_text()
    for said in (
        "# 2 rows can't be read, such as row 9 of landing/orders/2024-05-30.csv, which has 3 fiel",
        '# n: 1 of 38 values is no BIGINT, such as "six" in row 8',
        '# at: 2 of 38 values are no TIMESTAMP, such as "2024-02-30 10:00:00" in row 7',
        "# state: 1 of 38 values is not UTF-8, such as that in row 14",
        "# key: [id]    # likely, but 1 row repeats another's, such as row 13",
        "# 1 row can't be read, such as row 4 of landing/events/2024-05-30.json, which is no JSON",
        '# n: 1 of 19 values is no BIGINT, such as "four" in row 5',
        "key: [person_id]    # likely, but 2 rows repeat another's, such as row 32",
        "# landing/empty.csv can't be read as csv: Empty CSV file",
        "# landing/empty.json can't be read as json: no line is a JSON object",
        "# landing/header.csv has no rows, so nothing shows the types of its columns",
        "# landing/latin.csv can't be read as csv: 'utf-8' codec can't decode byte 0xe4",
        "# landing/broken.csv.gz can't be read as csv: ",
    ):
        assert said in text, text
    assert "n BIGINT, at TIMESTAMP, state STRING" in text
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sluice.extras.is_installed", lambda extra: extra != "spark")
    runner = CliRunner()
    ran = runner.invoke(main, ["run", written.stem])
    assert ran.exit_code == 0, ran.output
    counts = {}
    for table in ("orders", "events", "people"):
        good, bad = (
            runner.invoke(main, ["read", name, "--json"]).stdout.splitlines()
            for name in (table, f"{table}__quarantine")
        )
        counts[table] = len(good), len(bad)
    assert counts == {"orders": (34, 6), "events": (18, 2), "people": (30, 2)}


def test_mostly_textual_columns_and_codes_stay_texts(tmp_path: Path, land: Land) -> None:
    rows = [{"id": n, "zip": f"{n}0000", "o": {"a": n}} for n in range(20)]
    land("a.json", [*rows, {"id": 20, "zip": 5, "o": 7}])
    codes = "".join(f"{n},0{n}\n" for n in range(19))
    land("b.csv", f"id,code\n{codes}19,x\n")
    found = declared(tmp_path, "a.json", "b.csv")["dimensions"]
    assert found["a"]["schema"] == "id BIGINT, zip STRING, o STRING"
    assert found["b"]["schema"] == "id BIGINT, code STRING"


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_files_with_repeated_columns_are_refused(land: Land, tmp_path: Path, name: str) -> None:
    rows = pa.table([[1], [2], [3]], names=["id", "n", "n"])
    land(f"data/{name}", rows if name.endswith("parquet") else "id,n,n\n1,2,3\n")
    with pytest.raises(UsageError, match=f"{name} has several columns of one name: n") as refused:
        find(["data/"], tmp_path)
    assert refused.value.hint == "give each column a name of its own, or leave the file out"


def test_spellings_that_an_option_reads_are_named(tmp_path: Path, land: Land) -> None:
    rows = "".join(f"{n};{n}.250,50;{n + 10}.11.2026 14:30;0{n}/13/2026\n" for n in range(1, 10))
    land("a.csv", f"id;paid;at;born\n{rows}10;on request;;\n")
    land("b.json", [{"id": n, "paid": f"{n},50", "on": "13/01/2026"} for n in range(3)])
    (a, b) = find(["a.csv", "b.json"], tmp_path)
    assert a.notes == (
        "paid: 9 of 10 values are DECIMAL with `options: {locale: de-DE}`",
        "at: 9 of 9 values are TIMESTAMP with `options: {timestampFormat: dd.MM.yyyy HH:mm}`",
        "born: 9 of 9 values are DATE with `options: {dateFormat: MM/dd/yyyy}`",
    )
    assert b.notes == ("on: 3 of 3 values are DATE with `options: {dateFormat: dd/MM/yyyy}`",)
    assert {guess(a).columns[name] for name in ("paid", "at", "born")} == {"STRING"}


def test_numbers_that_begin_with_a_zero_are_texts(land: Land, tmp_path: Path) -> None:
    land("landing/sales/2024-01-01.csv", "shop,zip,n,at\n12,8001,0,2024-01-01 00:00:00\n")
    land("landing/sales/2024-01-02.csv", 'shop,zip,n,at\n007,"1010",-1,2024-01-02 00:00:00\n')
    (found,) = find(["landing/"], tmp_path)
    assert guess(found).columns["shop"] == "STRING"
    assert guess(found).columns["zip"] == guess(found).columns["n"] == "BIGINT"
    assert found.rows["shop"].to_pylist() == ["12", "007"]


def test_days_and_months_are_a_pipeline_each(
    tmp_path: Path, land: Land, monkeypatch: pytest.MonkeyPatch
) -> None:
    for day in ("2024-04-01", "2024-04-02"):
        land(f"shop/landing/visits/{day}/visits.csv", "id,page\n1,x\n")
    for month in ("2024-03", "2024-04"):
        land(f"shop/landing/orders/{month}/orders.csv", f"id\n{month[-1]}\n")
    land("shop/landing/staff.csv", "id,name\n1,ann\n")
    monkeypatch.chdir(tmp_path / "shop")
    said = CliRunner().invoke(main, ["init"]).stdout.splitlines()[-1]
    assert said == "next: `sluice plan`, then `sluice run shop`, then `sluice run shop_monthly`"
    files = {f.stem: YAML(typ="safe").load(f) for f in Path("config/pipelines").iterdir()}
    daily, monthly = files["shop"], files["shop_monthly"]
    assert (daily["schedule"], list(daily["sources"])) == ("@daily", ["visits"])
    assert (monthly["schedule"], list(monthly["sources"])) == ("@monthly", ["orders"])
    assert (monthly["start_date"], monthly["end_date"]) == (date(2024, 3, 1), date(2024, 5, 1))
    assert (list(daily["dimensions"]), "dimensions" in monthly) == (["staff"], False)


def test_by_uvx_the_next_steps_say_where_the_command_is(
    tmp_path: Path, land: Land, monkeypatch: pytest.MonkeyPatch
) -> None:
    land("shop/staff.csv", "id,name\n1,ann\n")
    monkeypatch.chdir(tmp_path / "shop")
    monkeypatch.setattr("sys.argv", ["/cache/bin/sluice-views", "init"])
    said = CliRunner().invoke(main, ["init", "--from", "."]).stdout.splitlines()
    assert said[-1] == "by uvx, write `uvx sluice-views` for `sluice`, with the options given now"


def test_tables_side_by_side_have_names_of_their_own(tmp_path: Path, land: Land) -> None:
    for day in ("2024-05-30", "2024-05-31"):
        land(f"landing/{day}/orders.csv", "id,paid\n1,2\n")
        land(f"landing/{day}/visits.csv", "id,page\n1,x\n")
    land("old/orders.csv", "id,worth\n1,2\n")
    found = declared(tmp_path, "landing", "old")
    folder = "landing/{interval_start:%Y-%m-%d}"
    paths = {name: table["path"] for name, table in found["sources"].items()}
    assert paths == {"orders": f"{folder}/orders.csv", "visits": f"{folder}/visits.csv"}
    assert found["dimensions"]["orders_2"]["path"] == "old/orders.csv"


def test_dated_tables_have_the_columns_of_most_files(tmp_path: Path, land: Land) -> None:
    for day in range(1, 21):
        header, row = "id,ward,at", f"{day},ICU,2024-05-{day:02}"
        if day > 15:
            header, row = "ward,id,at,insurer", f"ICU,{day},2024-05-{day:02},AOK"
        if day == 18:
            header = "ward_code,id,at,insurer"
        land(f"landing/2024-05-{day:02}/stays.csv", f"{header}\n{row}\n")
    utf16 = "id,ward,at\n21,ICU,2024-05-21\n".encode("utf-16")
    land("landing/2024-05-21/stays.csv", "")
    (tmp_path / "landing/2024-05-21/stays.csv").write_bytes(utf16)
    (found,) = find(["landing"], tmp_path)
    assert found.path == "landing/{interval_start:%Y-%m-%d}/"
    assert found.rows.column_names == ["id", "ward", "at"]
    assert found.rows.num_rows == 19
    last, lacks, insurer = found.notes
    assert last.startswith("landing/2024-05-21/stays.csv can't be read as csv: ")
    assert lacks == "landing/2024-05-18/stays.csv lacks ward, so its delivery stops"
    assert insurer == (
        "left out: insurer, which 4 of 20 files have, such as landing/2024-05-16/stays.csv"
    )


def test_dated_files_of_other_columns_are_refused(tmp_path: Path, land: Land) -> None:
    land("landing/2024-05-01.csv", "id,at\n1,2024-05-01\n")
    land("landing/2024-05-02.csv", "name,size\na,2\n")
    with pytest.raises(UsageError, match="too few columns in common"):
        find(["landing"], tmp_path)


def test_patterns_that_would_take_others_are_refused(tmp_path: Path, land: Land) -> None:
    for name, header in (("a1", "x,y"), ("a2", "x,z"), ("a3", "x,y")):
        land(f"data/{name}.csv", f"{header}\n1,2\n")
    with pytest.raises(UsageError, match="a path of their own"):
        declared(tmp_path, "data")


def test_last_rows_count_for_types_and_nulls(tmp_path: Path, land: Land) -> None:
    numbers = "".join(f"{n},{n}\n" for n in range(200_000))
    land("long.csv", f"id,n\n{numbers}200000,0.5\n200001,\\N\n")
    long = declared(tmp_path, "long.csv")["dimensions"]["long"]
    assert (long["schema"], long["options"]) == ("id BIGINT, n DOUBLE", {"nullValue": "\\N"})


def test_history_ends_where_the_data_does(tmp_path: Path, land: Land) -> None:
    land("days.csv", "at\n2013-01-01\n2013-01-31\n")
    land("months.csv", "at,n\n2013-01-15,1\n2013-12-31,2\n")
    land("years.csv", "at,n,m\n1999-05-01,1,1\n2013-12-31,2,2\n")
    of = {name: [guess(f) for f in find([f"{name}.csv"], tmp_path)] for name in ("days", "months")}
    assert [schedule(g) for g in of.values()] == ["@daily", "@monthly"]
    whole = declared(tmp_path, "years.csv")
    bounds = (date(1999, 1, 1), date(2014, 1, 1))
    assert (whole["schedule"], (whole["start_date"], whole["end_date"])) == ("@yearly", bounds)
    assert declared(tmp_path, "days.csv")["end_date"] == date(2013, 2, 1)


def test_separators_and_texts_for_null_are_found(tmp_path: Path, land: Land) -> None:
    land("flights.csv", FLIGHTS)
    flights = declared(tmp_path, "flights.csv")["sources"]["flights"]
    assert flights["options"] == {"sep": ";", "nullValue": "NA"}
    assert (
        flights["schema"]
        == "id BIGINT, carrier STRING, delay BIGINT, at TIMESTAMP, dep_time BIGINT"
    )
    assert flights["names"] == {"dep_time": "dep time"}
    land("words.csv", "id,word\n1,NA\n2,null\n")  # texts that look like null in a column of texts
    assert "options" not in declared(tmp_path, "words.csv")["dimensions"]["words"]


def test_an_array_of_objects_is_a_document(tmp_path: Path, land: Land) -> None:
    land("cars.json", '[\n  {"id": 1, "at": "1970-01-01", "Weight": 3.5},\n  {"id": 2}\n]\n')
    cars = declared(tmp_path, "cars.json")["dimensions"]["cars"]
    schema = "id BIGINT, at TIMESTAMP, weight DOUBLE"
    assert (cars["options"], cars["schema"]) == ({"multiLine": "true"}, schema)
    assert cars["names"] == {"weight": "Weight"}
    land("odd.json", '[{"Name": "a"}, 5]')
    with pytest.raises(UsageError, match=r"odd\.json can't be read as json"):
        declared(tmp_path, "odd.json")


def test_columns_get_names_that_can_be_declared(tmp_path: Path, land: Land) -> None:
    head = "CarID,Miles per Gallon,miles_per_gallon,1970,Höhe (m),年,1970!,NumberOfCDs"
    land("cars.csv", f"{head}\n1,2,3,4,5,6,7,8\n")
    cars = declared(tmp_path, "cars.csv")["dimensions"]["cars"]
    assert cars["key"] == ["car_id"]
    assert cars["schema"] == (
        "car_id BIGINT, miles_per_gallon_2 BIGINT, miles_per_gallon BIGINT, column_1970 BIGINT, "
        "hohe_m BIGINT, column BIGINT, column_1970_2 BIGINT, number_of_cds BIGINT"
    )
    assert cars["names"] == {
        "car_id": "CarID",
        "miles_per_gallon_2": "Miles per Gallon",
        "column_1970": "1970",
        "hohe_m": "Höhe (m)",
        "column": "年",
        "column_1970_2": "1970!",
        "number_of_cds": "NumberOfCDs",
    }


def test_columns_that_differ_in_capitals_are_left_out(tmp_path: Path, land: Land) -> None:
    land("cars.csv", "id,Name,name,_Sluice_x\n1,a,b,c\n")
    guesses = [guess(found) for found in find(["cars.csv"], tmp_path)]
    assert dict(guesses[0].columns) == {"id": "BIGINT"}
    left_out = "# left out, because of their names: Name, name, _Sluice_x"
    assert left_out in pipelines("shop", guesses, TODAY)["shop"]
    land("odd.csv", "Name,NAME\na,1970\n")
    with pytest.raises(UsageError, match=r"odd\.csv has no column .*: Name, NAME"):
        declared(tmp_path, "odd.csv")


def test_a_key_is_one_only_if_it_distinguishes_all_rows(tmp_path: Path, land: Land) -> None:
    land("two.csv", "a,b,c\n1,1,x\n1,2,x\n2,1,x\n")
    (two,) = find(["two.csv"], tmp_path)
    assert guess(two).key == ("a", "b")
    land("none.csv", "a,b\n1,1\n1,1\n")
    with pytest.raises(UsageError, match="neither a time nor a key"):
        declared(tmp_path, "none.csv")


def test_a_column_named_like_an_identifier_is_the_key_before_what_is_unique_by_chance() -> None:
    count = 200
    number = [f"P{n:05}" for n in [*range(count - 1), 7]]
    born = [date(1950, 1, 1) + timedelta(days=97 * n) for n in range(count)]
    names = [f"Name {n}" for n in range(count)]
    rows = pa.table({"born": born, "name": names, "patient_no": number})
    found = guess(FoundTable("patients", "p.csv", "csv", {}, rows))
    assert (found.key, found.repeats) == (("patient_no",), 1)
    rows = pa.table({"customer_id": number, "order": names})
    assert guess(FoundTable("orders", "o.csv", "csv", {}, rows)).key == ("order",)
    paid = [Decimal(n) / 100 for n in range(count)]
    rows = pa.table({"paid": paid, "born": born, "shop": ["a", "b"] * (count // 2)})
    assert guess(FoundTable("sales", "s.csv", "csv", {}, rows)).key == ()


def test_delta_tables_are_followed_by_their_key(tmp_path: Path, land: Land) -> None:
    at = pa.array(
        [datetime(2024, 1, day, tzinfo=UTC) for day in (1, 2, 3)], pa.timestamp("us", "UTC")
    )
    tags = pa.array([[("a", 1)]] * 3, pa.map_(pa.string(), pa.int64()))
    orders = pa.table({"id": [1, 2, 3], "Paid At": at, "shop": ["a", "a", "b"], "tags": tags})
    write_deltalake(tmp_path / "crm/orders", orders, partition_by=["shop"])
    DeltaTable(tmp_path / "crm/orders").delete("id = 3")
    write_deltalake(tmp_path / "crm/empty", orders.schema.empty_table())
    land("crm/airlines.csv", AIRLINES)
    found = declared(tmp_path, "crm")
    assert found["sources"]["orders"] == {
        "delta": {"path": "crm/orders"},
        "schema": "id BIGINT, paid_at TIMESTAMP, shop STRING",
        "names": {"paid_at": "Paid At"},
        "time": "paid_at",
    }
    assert found["sources"]["empty"].keys() == {"delta", "schema", "names"}
    assert found["dimensions"].keys() == {"airlines"}
    start(tmp_path, ["crm"], "{}")
    (file,) = (tmp_path / "config" / "pipelines").iterdir()
    assert "# key: [id]" in file.read_text()
    assert "# left out, because a MAP can't be compared: tags" in file.read_text()
    for _ in range(2):
        done = CliRunner().invoke(main, ["run", file.stem, "--config", str(tmp_path / "config")])
        assert done.exit_code == 0, done.stderr
    assert Lake(load(str(tmp_path / "config"))).table("orders").count == 2


def test_reference_data_alone_is_a_project(tmp_path: Path, land: Land) -> None:
    folder = tmp_path / "my - shop__2"
    land("data/airlines.csv", AIRLINES)
    folder.mkdir()
    start(folder, [str(tmp_path / "data")], schema="{}")
    project = load(folder / "config", environ={})
    assert [*project.graph.tables] == ["my_shop_2.airlines"]
    assert project.pipelines["my_shop_2"].start_date is not None


def test_what_can_not_be_begun_is_refused(tmp_path: Path, land: Land) -> None:
    with pytest.raises(UsageError, match="no data to start with"):
        start(tmp_path, [], "{}")
    with pytest.raises(UsageError, match=r"no data file at nowhere"):
        start(tmp_path, ["nowhere"], "{}")
    land("broken.parquet", "PAR1")
    with pytest.raises(UsageError, match=r"broken\.parquet can't be read as parquet"):
        start(tmp_path, ["broken.parquet"], "{}")
    assert {path.name for path in tmp_path.iterdir()} == {"broken.parquet"}
    (tmp_path / "config").mkdir()
    with pytest.raises(UsageError, match="exists already"):
        start(tmp_path, ["broken.parquet"], "{}")


def test_a_project_runs_as_it_was_begun(tmp_path: Path, land: Land, remote: str) -> None:
    land("data/flights.csv", FLIGHTS)
    land("data/airlines.csv", AIRLINES.replace("carrier", "Carrier Code"))

    def sluice(*words: str) -> str:
        command = [sys.executable, "-m", "sluice.cli.main", *words]
        environment = {**os.environ, "SPARK_REMOTE": remote}
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    said = sluice("init", "--from", "data/flights.csv", "data/airlines.csv")
    (file,) = (tmp_path / "config" / "pipelines").iterdir()
    assert said.splitlines()[-1] == f"next: `sluice plan`, then `sluice run {file.stem}`"
    assert file.read_text().startswith("# yaml-language-server: $schema=../pipeline.schema.json")
    assert json.loads((tmp_path / "config" / "pipeline.schema.json").read_text())
    found = "import runpy; made = runpy.run_path('dags/pipelines.py'); "
    found += "print(sorted({v.dag_id for v in made.values() if hasattr(v, 'dag_id')}))"
    done = subprocess.run(
        [sys.executable, "-c", found],
        cwd=tmp_path,
        env={**os.environ, "AIRFLOW_HOME": str(tmp_path / "airflow")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert eval(done.stdout.splitlines()[-1]) == sorted(  # noqa: S307 - a list of texts
        {file.stem, "sluice_maintenance", "sluice_verify"}
    )
    sluice("run", file.stem)
    lake = Lake(load(tmp_path / "config"))
    newest = {row["rank"]: row["id"] for row in lake.table("newest_flights").read()}
    assert newest == {1: 3, 2: 2, 3: 1}
    assert {row["carrier_code"] for row in lake.table("airlines").read()} == {"AA", "UA"}
    assert {row["dep_time"] for row in lake.table("flights").read()} == {517, 533, None}


def test_dag_files_are_copied_into_an_airflow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, dags = tmp_path / "shop", tmp_path / "theirs"
    (project / "config").mkdir(parents=True)
    monkeypatch.chdir(project)
    copied = ["init", "--airflow", str(dags)]
    missing = CliRunner().invoke(main, copied)
    assert missing.exit_code == 2
    assert f"{dags} is no folder" in missing.stderr
    dags.mkdir()
    (dags / "pipelines.py").write_text("# theirs\n", "utf-8")
    done = CliRunner().invoke(main, copied)
    assert done.exit_code == 0, done.stderr
    assert f"SLUICE_CONFIG={project / 'config'}" in done.stdout
    assert {file.name for file in dags.iterdir()} == {
        "pipelines.py",
        "sluice_pipelines.py",
        "sluice_config_check.py",
    }
    assert (dags / "pipelines.py").read_text("utf-8") == "# theirs\n"
    beside = CliRunner().invoke(main, [*copied, "--example", "retail"])
    assert beside.exit_code == 2
    monkeypatch.chdir(tmp_path)
    assert "has no config/" in CliRunner().invoke(main, copied).stderr


def test_airflow_takes_every_file_of_a_project_for_one_with_dags() -> None:
    """By default, Airflow reads no other file: a mistake in config/ would not be reported."""
    for text in (DAGS, CHECK):
        assert "airflow" in text
        assert "dag" in text.lower()  # as in Airflow's might_contain_dag_via_default_heuristic
