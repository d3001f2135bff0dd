"""Tables for people, JSON lines and CSV for programs."""

import csv
import io
import json
import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pyarrow.csv
import pytest

from sluice.terminal.output import Format, to_json, write_record, write_rows

ROWS = [
    {"name": 'a "quoted", one', "money": Decimal("1234.50"), "n": 7, "list": [1, {"x": None}]},
    {"name": None, "money": None, "n": None, "list": []},
]


def written(capsys, rows, format_):
    write_rows(rows, list(ROWS[0]), format_)
    return capsys.readouterr().out


def test_json_has_one_object_a_line_and_exact_decimals(capsys):
    lines = written(capsys, ROWS, Format.JSON).splitlines()
    first = json.loads(lines[0], parse_float=Decimal)
    assert first == ROWS[0]
    assert '"money": 1234.50' in lines[0]
    assert json.loads(lines[1]) == {"name": None, "money": None, "n": None, "list": []}


def test_csv_is_rfc_4180(capsys):
    out = written(capsys, ROWS, Format.CSV)
    assert out.startswith("name,money,n,list\r\n")
    assert '"a ""quoted"", one",1234.50,7,' in out
    read = list(csv.DictReader(io.StringIO(out, newline="")))
    assert json.loads(read[0]["list"]) == [1, {"x": None}]
    assert read[1]["money"] == ""


def test_csv_distinguishes_an_empty_text_from_null(capsys):
    rows = [
        {"name": "", "money": None, "n": 7, "list": 'a,"b"\r\n'},
        {"name": None, "money": Decimal("1.5"), "n": None, "list": ""},
        {"name": "x", "money": None, "n": None, "list": "y"},
    ]
    out = written(capsys, rows, Format.CSV)
    options = pyarrow.csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False)
    parsing = pyarrow.csv.ParseOptions(newlines_in_values=True)
    source = io.BytesIO(out.encode())
    read = pyarrow.csv.read_csv(source, convert_options=options, parse_options=parsing)
    assert [(row["name"], row["list"]) for row in read.to_pylist()] == [
        ("", 'a,"b"\r\n'),
        (None, ""),
        ("x", "y"),
    ]
    write_rows([{"k": 1, "b": None}, {"k": 2, "b": b""}], ["k", "b"], Format.CSV)
    assert capsys.readouterr().out == 'k,b\r\n1,\r\n2,""\r\n'
    write_rows([{"k": None}, {"k": "a"}], ["k"], Format.CSV)
    assert capsys.readouterr().out == 'k\r\n""\r\na\r\n'


def test_tuples_in_csv_are_json_too(capsys):
    rows = [{"list": ({"input": "sales", "read": 9},)}, {"list": ()}]
    out = written(capsys, rows, Format.CSV)
    read = list(csv.DictReader(io.StringIO(out, newline="")))
    assert [json.loads(row["list"]) for row in read] == [[{"input": "sales", "read": 9}], []]


def test_csv_names_what_is_no_number(capsys):
    rows = [{"n": n} for n in (math.nan, math.inf, -math.inf, 1.5)]
    write_rows(rows, ["n"], Format.CSV)
    assert capsys.readouterr().out.split() == ["n", "NaN", "Infinity", "-Infinity", "1.5"]


def test_csv_names_what_is_no_number_within_a_list_too(capsys):
    nested = {"sizes": [math.nan, 1.5, None], "most": {"size": -math.inf, "price": Decimal("0.10")}}
    write_rows([nested], [*nested], Format.CSV)
    head, *rows = csv.reader(io.StringIO(capsys.readouterr().out))
    assert head == ["sizes", "most"]
    assert rows == [['["NaN", 1.5, null]', '{"size": "-Infinity", "price": 0.10}']]


def test_a_table_puts_numbers_right_and_names_null(capsys):
    lines = written(capsys, ROWS, Format.TABLE).splitlines()
    assert "│ 1234.50 │    7 │" in lines[3]
    assert lines[4].count("null") == 3


def test_a_table_without_rows_still_shows_its_columns(capsys):
    assert "money" in written(capsys, [], Format.TABLE)


def test_a_table_is_written_page_by_page(capsys):
    out = written(capsys, ({"n": i} for i in range(1_200)), Format.TABLE)
    assert out.count("money") == 3


def test_a_table_that_goes_to_a_file_is_never_cut(capsys):
    assert "x" * 500 in written(capsys, [{"name": "x" * 500}], Format.TABLE)


def test_one_record_stands_upright(capsys):
    write_record(ROWS[0], Format.TABLE)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("│")[1].strip() for line in lines[1:-1]] == list(ROWS[0])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal("1E+3"), "1000"),
        (Decimal("0.10"), "0.10"),
        (math.nan, "null"),
        (math.inf, "null"),
        (True, "true"),
        (date(2017, 1, 2), '"2017-01-02"'),
        (datetime(2017, 1, 2, 3, 4, 5, 6, tzinfo=UTC), '"2017-01-02T03:04:05.000006Z"'),
        (datetime(2017, 1, 2, 3, tzinfo=timezone(timedelta(hours=2))), '"2017-01-02T01:00:00Z"'),
        (b"\x00\xff", '"AP8="'),
        ({1: "é"}, '{"1": "é"}'),
        ((Decimal("1.5"), None), "[1.5, null]"),
    ],
)
def test_values_that_json_has_no_form_for(value, text):
    assert to_json(value) == text
