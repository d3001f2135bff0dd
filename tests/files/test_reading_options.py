"""Options of a file's reader: any case of their names, and those that would alter values."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.files.files import Files, source

from sluice.files.spelled import HAS_COMMA


def refused(format_: str, schema: str = "id INT", **options: str) -> str:
    with pytest.raises(ValueError, match=r".+") as caught:
        source(format_, schema, options=options)
    return str(caught.value)


@pytest.mark.usefixtures("real_spark")
def test_names_are_taken_in_any_case(files: Files) -> None:
    files.put(a_csv="1;2024-02-03;2024-07-01 10:00\n")
    options = {
        "Header": "false",
        "Sep": ";",
        "dateformat": "yyyy-dd-MM",
        "timezone": "America/New_York",
        "MODE": "DROPMALFORMED",
    }
    (row,) = files.good("csv", "id INT, d DATE, t TIMESTAMP", options=options)
    assert row[1].isoformat() == "2024-03-02"
    assert row[2] == datetime(2024, 7, 1, 14, tzinfo=UTC)
    files.put(a_csv="1;2024-02-03\n")
    assert files.bad("csv", "id INT, d DATE, t TIMESTAMP", options=options)


@pytest.mark.parametrize(
    ("format_", "options", "says"),
    [
        ("csv", {"encoding": "windows-1252"}, "encoding 'WINDOWS-1252': Spark reads US-ASCII,"),
        ("json", {"encoding": "utf-16le"}, "lines of JSON are read in ISO-8859-1, UTF-8"),
        ("csv", {"quote": "''"}, "quote \"''\": one character is expected, or none"),
        ("csv", {"sep": "\\"}, "sep '\\\\': neither a backslash nor the quote is taken"),
        ("csv", {"delimiter": "|", "quote": "|"}, "sep '|': neither a backslash nor the quote"),
        ("csv", {"comment": "//"}, "comment '//': one character is expected, or none"),
        ("csv", {"multiLine": "false"}, "multiLine: false would cut texts at line breaks"),
        ("csv", {"locale": "de_DE"}, "locale 'de_DE': a language and a country are wanted"),
        ("json", {"locale": "german"}, "such as de-DE"),
        ("csv", {"dateFormat": "%Y-%m-%d"}, "dateFormat '%Y-%m-%d': it knows no letter Y;"),
        ("json", {"timestampFormat": "DD/MM/YYYY"}, "it knows no letter Y; Spark's patterns"),
        ("csv", {"dateformat": "yyyy-mm-dd"}, "it has no month: m is a minute, M a month"),
        ("csv", {"dateFormat": "dd.MM."}, "it has no year"),
        ("json", {"timestampNTZFormat": "yyyy-MM-dd hh:mm"}, "h and K count to twelve"),
        ("csv", {"timestampFormat": "yyyy-MM-dd'T HH:mm"}, "a quote is not closed"),
        ("csv", {"timestampFormat": "yyyy-MM-dd HH:mm VV"}, "with V or z, Spark would move a time"),
        ("json", {"timestampFormat": "yyyy-MM-dd HH:mm z"}, "read EST in July as EDT"),
        ("parquet", {"pathGlobFilter": "*.csv"}, "pathGlobFilter: files would be skipped"),
        ("csv", {"modifiedafter": "2024-01-01"}, "modifiedAfter: files would be skipped"),
        ("parquet", {"ignoreCorruptFiles": "true"}, "name them in `path`"),
        ("csv", {"unescapedQuoteHandling": "SKIP_VALUE"}, "rows would be lost or altered"),
        ("json", {"allowBackslashEscapingAnyCharacter": "true"}, "leave it out"),
        ("json", {"encoding": "ascii"}, "lines of JSON are read in ISO-8859-1, UTF-8 only"),
        ("csv", {"timeZone": "Mars/Phobos"}, "timeZone 'Mars/Phobos': a region such as"),
        ("csv", {"timeZone": "PST"}, "or an offset is expected"),
        ("csv", {"header": "yes"}, "header 'yes': true or false is expected"),
        ("json", {"allowComments": "true"}, "allowComments: numbers in such JSON would change"),
        ("json", {"ALLOWSINGLEQUOTES": "true"}, "allowSingleQuotes: numbers in such JSON"),
    ],
)
def test_options_that_alter_are_refused(format_: str, options: dict[str, str], says: str) -> None:
    assert says in refused(format_, **options)


def test_options_that_alter_nothing_are_taken() -> None:
    for format_, options in (
        ("parquet", {"ignoreCorruptFiles": "false", "mergeSchema": "true"}),
        ("csv", {"timeZone": "+02:00", "header": "FALSE", "locale": "zh-Hans-CN"}),
        ("json", {"timeZone": "EST5EDT", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSS]XXX"}),
    ):
        source(format_, "id INT", options=options)


@pytest.mark.usefixtures("real_spark")
def test_a_quote_of_ones_own_is_doubled_inside_itself(files: Files) -> None:
    files.put(a_csv="id,t\n1,'it''s'\n2,'a,b'\n")
    found = files.good("csv", "id INT, t STRING", options={"quote": "'"})
    assert found == [(1, "it's"), (2, "a,b")]


@pytest.mark.usefixtures("real_spark")
@pytest.mark.parametrize("zone", ["CET", "Europe/Berlin"])
@pytest.mark.parametrize("pattern", ["", "yyyy-MM-dd HH:mm", "yyyy-MM-dd HH:mm['Z, or x']"])
def test_a_time_that_any_zone_skips_is_quarantined(files: Files, zone: str, pattern: str) -> None:
    files.put(a_csv="t\n2024-03-31 02:30\n2024-03-31 03:30\n")
    options = {"timeZone": zone} | ({"timestampFormat": pattern} if pattern else {})
    rows, bad = files.rows("csv", "t TIMESTAMP", options=options)
    assert rows == [(datetime(2024, 3, 31, 1, 30, tzinfo=UTC),)]
    assert len(bad) == 1


def test_a_locale_groups_every_number(files: Files) -> None:
    files.put(a_csv="n;f;d\n1.000;1.234,5;1.234\n2;NaN;-inf\n3,0;-,5;1.5\n")
    options = {"sep": ";", "locale": "de-DE"}
    rows, bad = files.rows("csv", "n INT, f DOUBLE, d FLOAT", options=options)
    assert [repr(row) for row in rows] == ["(1000, 1234.5, 1234.0)", "(2, nan, -inf)"]
    assert [reason for reason, _ in bad] == ["column d: 1.5 is not a valid FLOAT"]


@pytest.mark.usefixtures("real_spark")
def test_the_points_of_common_locales_are_javas(spark: SparkSession) -> None:
    cell, number = "'\"1,5\"'", "'v DECIMAL(3, 1)'"
    asked = (
        f"coalesce(from_csv({cell}, {number}, map('locale', '{tag}')).v = 1.5BD, false) AS `{tag}`"
        for tag in HAS_COMMA
    )
    (row,) = spark.sql(f"SELECT {', '.join(asked)}").collect()
    assert {tag: str(is_comma).lower() for tag, is_comma in row.asDict().items()} == HAS_COMMA


def test_one_option_has_one_spelling() -> None:
    assert "one option is given in two spellings" in refused("csv", sep=";", Sep=",")


@pytest.mark.usefixtures("real_spark")
def test_numbers_without_digits_may_be_refused(files: Files) -> None:
    lines = ('"x":NaN', '"d":Infinity', '"l":[-Infinity]', '"d":1.50', '"d":"NaN"', '"l":[2e1]')
    files.put(a_json="".join(f"{{{line}}}\n" for line in lines))
    options = {"allownonnumericnumbers": "false"}
    rows, bad = files.rows("json", "d DOUBLE, l ARRAY<INT>", options=options)
    assert repr(rows) == "[(1.5, None), (None, [20]), (nan, None)]"
    assert sorted(raw for _, raw in bad) == sorted(f"{{{line}}}" for line in lines[:3])


def test_a_nested_field_may_have_a_dot_in_its_name(files: Files) -> None:
    files.put(a_json='{"s":{"a.b":1,"it`s":[2.5]}}\n{"s":{"a.b":"x"}}\n')
    rows, bad = files.rows("json", "s STRUCT<`a.b`: INT, `it``s`: ARRAY<DOUBLE>>")
    assert rows == [({"a.b": 1, "it`s": [2.5]},)]
    assert len(bad) == 1


@pytest.mark.usefixtures("real_spark")
def test_encodings_have_other_names(files: Files) -> None:
    files.put(a_csv="id,t\n1,é\n".encode("latin-1"))
    assert files.good("csv", "id INT, t STRING", options={"encoding": "latin-1"}) == [(1, "é")]


@pytest.mark.parametrize("before", ["\n", "\r\n", "\t", " \n "])
def test_a_list_may_begin_after_a_line_break(files: Files, before: str) -> None:
    files.put(a_json=f'{before}[{{"id": 1}}, {{"id": 2}}]\n')
    assert files.good("json", "id INT", options={"multiLine": "true"}) == [(1,), (2,)]


def test_a_document_of_several_lines_is_read_whole(files: Files) -> None:
    files.put(a_json='[\n {"id": 1},\n {"id": 2}\n]\n', b_json='{\n "id":\n 3\n}\n')
    assert files.good("json", "id INT", options={"multiLine": "true"}) == [(1,), (2,), (3,)]


@pytest.mark.usefixtures("real_spark")
@pytest.mark.parametrize("format_", ["csv", "json"])
def test_a_time_that_the_zone_skips_has_no_pattern_either(files: Files, format_: str) -> None:
    times = ["2024-03-31 02:30:00", "2024-03-31 03:30:00", "2024-10-27 02:30:00"]
    files.put(a_csv="t\n" + "\n".join(times), b_json="".join(f'{{"t":"{t}"}}\n' for t in times))
    (files.folder / {"csv": "b.json", "json": "a.csv"}[format_]).unlink()
    options = {"timestampFormat": "yyyy-MM-dd HH:mm:ss", "timeZone": "Europe/Berlin"}
    rows, bad = files.rows(format_, "t TIMESTAMP", options=options)
    assert sorted(r[0].isoformat() for r in rows) == [
        "2024-03-31T01:30:00+00:00",
        "2024-10-27T00:30:00+00:00",
    ]
    assert [reason for reason, _ in bad] == [f"column t: {times[0]} is not a valid TIMESTAMP"]


@pytest.mark.usefixtures("real_spark")
def test_a_text_that_is_too_long_for_the_parser_goes_to_quarantine(files: Files) -> None:
    files.put(a_json='{"id":1,"t":"' + "x" * 2_000 + '"}\n{"id":2,"t":"y"}\n')
    rows, bad = files.rows("json", "id INT, t STRING", options={"maxStringLen": "1000"})
    assert rows == [(2, "y")]
    assert [reason for reason, _ in bad] == ["does not parse as the declared schema"]


@pytest.mark.usefixtures("real_spark")
def test_texts_of_parquet_that_are_no_utf8_go_to_quarantine(files: Files) -> None:
    raw = pa.array([b"ok", b"\xff\xfe"]).cast(pa.string(), safe=False)
    nested = pa.ListArray.from_arrays([0, 1, 2], raw.take([1, 0]))
    files.put(a_parquet=pa.table({"id": [1, 2], "t": raw, "n": nested}))
    rows, bad = files.rows("parquet", "id INT, t STRING, n ARRAY<STRING>")
    assert rows == []
    assert [reason.partition(":")[0] for reason, _ in bad] == ["column n", "column t"]


def test_columns_without_a_value_are_null(files: Files) -> None:
    files.put(a_parquet=pa.table({"id": pa.nulls(2), "t": pa.nulls(2)}))
    assert files.good("parquet", "id INT, t STRING") == [(None, None), (None, None)]
