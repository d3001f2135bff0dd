"""Files of text become rows of the declared columns, or rows with a reason: whatever is in them."""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from tests.files.files import Files, source

from sluice.delta.places.folders import LandedFile
from sluice.engine.retries import naming_faults
from sluice.errors import ConfigError, QualityStop, Retryable
from sluice.files.reading import read_files
from sluice.limits import Limits

# CSV


def test_csv_has_quotes_doubled_inside_quotes_and_line_breaks_in_fields(files: Files) -> None:
    files.put(a_csv='id,t,d\r\n1,"say ""hi"", x",1\r\n2,"two\nlines",2\r\n3,5" pipe,3\r\n')
    assert files.good("csv") == [
        (1, 'say "hi", x', Decimal("1.00")),
        (2, "two\nlines", Decimal("2.00")),
        (3, '5" pipe', Decimal("3.00")),
    ]


def test_csv_columns_are_found_by_their_header_in_each_file(files: Files) -> None:
    files.put(
        a_csv="id,t,d\n1,a,1\n",
        b_csv="d,id,more,t\n2,2,x,b\n",
        c_csv=b"\xef\xbb\xbft,d,id\nc,3,3\n",
    )
    reading = files.read("csv")
    assert files.good("csv") == [
        (1, "a", Decimal("1.00")),
        (2, "b", Decimal("2.00")),
        (3, "c", Decimal("3.00")),
    ]
    assert reading.warnings == ("shop.events: columns that `schema` lacks are ignored: more",)


def test_csv_rows_of_another_width_keep_their_text(files: Files) -> None:
    files.put(a_csv="id,t,d\n1,a\n2,b,2,9\n3,c,3\n")
    rows, bad = files.rows("csv")
    assert rows == [(3, "c", Decimal("3.00"))]
    assert bad == [("does not parse as 3 values", "1,a"), ("does not parse as 3 values", "2,b,2,9")]


def test_csv_values_of_a_wrong_type_are_named_in_the_reason(files: Files) -> None:
    files.put(a_csv='id,t,d\nx,a,1\n1,b,12345.67\n2,c,"1,5"\n99999999999,d,1\n3,e,NaN\n4,f,\n')
    rows, bad = files.rows("csv")
    assert rows == [(4, "f", None)]
    assert [reason for reason, _ in bad] == [
        "column d: 1,5 is not a valid DECIMAL(6, 2)",
        "column d: 12345.67 is not a valid DECIMAL(6, 2)",
        "column d: NaN is not a valid DECIMAL(6, 2)",
        "column id: 99999999999 is not a valid INT",
        "column id: x is not a valid INT",
    ]
    assert '{"id":"x","t":"a","d":"1"}' in [raw for _, raw in bad]


def test_csv_dates_have_a_calendar_day_and_four_digit_year(files: Files) -> None:
    days = ["2024-02-29", "2024-02-30", "0000-01-01", "99999-01-01", "20240101", "01/02/2024"]
    times = ["2024-01-01 04:05:06.123456", "2024-01-01T04:05:06+02:00", "04:05", "1700000000"]
    files.put(
        a_csv="on,at\n" + "".join(f"{d},\n" for d in days) + "".join(f",{t}\n" for t in times)
    )
    rows, bad = files.rows("csv", "on DATE, at TIMESTAMP")
    assert rows == [
        (None, datetime(2024, 1, 1, 2, 5, 6, tzinfo=UTC)),
        (None, datetime(2024, 1, 1, 4, 5, 6, 123456, tzinfo=UTC)),
        (date(2024, 2, 29), None),
    ]
    assert len(bad) == len(days) + len(times) - 3
    assert ("column at: 04:05 is not a valid TIMESTAMP", '{"on":null,"at":"04:05"}') in bad


def test_a_format_of_dates_may_be_given(files: Files) -> None:
    files.put(a_csv="on,n\n01.02.2024,1\n2024-02-01,2\n")
    rows, bad = files.rows("csv", "on DATE, n INT", options={"dateFormat": "dd.MM.yyyy"})
    assert rows == [(date(2024, 2, 1), 1)]
    assert len(bad) == 1


def test_csv_without_a_header_has_the_columns_in_their_order(files: Files) -> None:
    files.put(a_csv="1|a|1\n2|b|2\n")
    options = {"header": "false", "sep": "|"}
    assert files.good("csv", options=options) == [
        (1, "a", Decimal("1.00")),
        (2, "b", Decimal("2.00")),
    ]


@pytest.mark.usefixtures("real_spark")
def test_bytes_of_another_encoding_are_quarantined_unless_it_is_declared(files: Files) -> None:
    files.put(a_csv="id,t,d\n1,é,1\n2,e,2\n".encode("latin-1"))
    rows, bad = files.rows("csv")
    assert rows == [(2, "e", Decimal("2.00"))]
    assert [reason for reason, _ in bad] == ["column t has bytes that are invalid in the encoding"]
    options = {"encoding": "ISO-8859-1"}
    assert files.good("csv", options=options) == [
        (1, "é", Decimal("1.00")),
        (2, "e", Decimal("2.00")),
    ]


def test_a_quote_that_is_not_closed_swallows_no_rows_unseen(files: Files) -> None:
    files.put(a_csv='id,d,t\n1,1,a\n2,2,"b\n3,3,c\n4,4,d\n')
    rows, bad = files.rows("csv")
    assert rows == [(1, "a", Decimal("1.00"))]
    ((reason, raw),) = bad
    assert reason == "a quote is not closed: its value continues into the next rows"
    assert "4,4,d" in raw


def test_the_wrong_delimiter_and_the_wrong_header_name_the_file(files: Files) -> None:
    files.put(a_csv="id;t;d\n1;a;1\n")
    with pytest.raises(
        QualityStop, match=r"a\.csv lacks the declared column.* id, t, d; it has id;t;d"
    ):
        files.read("csv")
    files.put(a_csv="id,t,d,t\n1,a,1,b\n")
    with pytest.raises(QualityStop, match=r"a\.csv has more than one column named t"):
        files.read("csv")


def test_an_empty_file_is_reported_and_a_header_alone_holds_no_rows(files: Files) -> None:
    files.put(a_csv="", b_csv="id,t,d\n", c_csv="id,t,d\n1,a,1\n")
    rows, bad = files.rows("csv")
    assert rows == [(1, "a", Decimal("1.00"))]
    assert bad == [("the file can't be read: it is empty", None)]


def test_a_file_of_no_lines_of_json_holds_no_rows(files: Files) -> None:
    files.put(a_json="", b_json='{"id": 1, "t": "a", "d": 1}\n')
    assert files.rows("json") == ([(1, "a", Decimal("1.00"))], [])


def test_csv_holds_no_nested_values(files: Files) -> None:
    with pytest.raises(ConfigError, match="CSV holds no nested values: tags"):
        files.put(a_csv="tags\n1\n").read("csv", "tags ARRAY<INT>")


# JSON lines


def test_json_lines_that_do_not_parse_keep_their_text(files: Files) -> None:
    texts = ['{"id":1', "5", '"a"', "null", "\x00\x01"]
    files.put(a_json="\n".join([*texts, "", '{"id":7,"t":"good"}']) + "\n")
    rows, bad = files.rows("json")
    assert rows == [(7, "good", None)]
    assert sorted(raw for _, raw in bad) == sorted(texts)
    assert {reason for reason, _ in bad} == {"does not parse as the declared schema"}


def test_json_values_of_a_wrong_type_are_named_in_the_reason(files: Files) -> None:
    texts = ['{"id":"x"}', '{"id":1.5}', '{"d":12345.67}', '{"t":"a","id":[1]}']
    files.put(a_json="\n".join(texts) + "\n")
    assert files.bad("json") == [
        ("column d: 12345.67 is not a valid DECIMAL(6, 2)", '{"d":12345.67}'),
        ("column id: 1.5 is not a valid INT", '{"id":1.5}'),
        ("column id: [1] is not a valid INT", '{"t":"a","id":[1]}'),
        ("column id: x is not a valid INT", '{"id":"x"}'),
    ]


def test_an_array_on_a_line_is_its_objects_each_judged_by_itself(files: Files) -> None:
    files.put(a_json='[{"id":1},{"id":2}]\n', b_json='[{"id":3},{"id":"x"}]\n', c_json="[]\n")
    files.put(d_json='[{"id":4},5]\n', e_json='["{\\"id\\":6}"]\n')
    rows, bad = files.rows("json")
    assert [r[0] for r in rows] == [1, 2, 3]
    assert bad == [
        ("column id: x is not a valid INT", '{"id":"x"}'),
        ("does not parse as the declared schema", '["{\\"id\\":6}"]'),
        ("does not parse as the declared schema", '[{"id":4},5]'),
    ]


def test_a_line_that_goes_on_behind_its_first_object_goes_to_quarantine(files: Files) -> None:
    behind = ['{"id":1,"t":"} {"}{"id":2}', '{"id":4} x', '{"id":5},', '{"id":6} ]', '{"id":7}}']
    behind += ['{"id":8} , word', '{"id":9}, {"id":10}', '{"id":11}]}', '{"id":1.50} ,2']
    files.put(a_json="\n".join([*behind, '{"id":3,"t":"a} {\\"b"}', '{"id":12}  \t']))
    rows, bad = files.rows("json")
    assert [r[0] for r in rows] == [12, 3]
    assert bad == sorted(("only the first object of this line could be read", b) for b in behind)


def test_what_stands_beside_a_null_is_shown_as_it_was_written(files: Files) -> None:
    files.put(a_json='[null,{"id":"x"}]\n', b_json='{"l":[null,{"a":1.50}]}\n{"l":[2.50,null]}\n')
    assert files.bad("json", "id INT, l ARRAY<INT>") == [
        ("column id: x is not a valid INT", '{"id":"x"}'),
        ("column l: [2.50,null] is not a valid ARRAY<INT>", '{"l":[2.50,null]}'),
        ('column l: [null,"{\\"a\\":1.50}"] is not a valid ARRAY<INT>', '{"l":[null,{"a":1.50}]}'),
        ("does not parse as the declared schema", "null"),
    ]


def test_fields_of_json_that_are_not_declared_are_reported(files: Files) -> None:
    files.put(a_json='{"id":1,"more":2}\n')
    assert files.read("json").warnings == (
        "shop.events: columns that `schema` lacks are ignored: more",
    )


def test_a_long_field_is_a_field(files: Files) -> None:
    text = "y" * 3_000_000
    files.put(a_json=[{"id": 1, "t": text}])
    assert files.good("json") == [(1, text, None)]
    (files.folder / "a.json").unlink()
    files.put(a_csv=f"id,t,d\n1,{text},\n")
    assert files.good("csv") == [(1, text, None)]


def test_years_beyond_four_digits_are_out_of_range_in_json(files: Files) -> None:
    files.put(a_json='{"on":"99999-01-01"}\n{"on":"2024-01-01"}\n{"at":1700000000000}\n')
    rows, bad = files.rows("json", "on DATE, at TIMESTAMP")
    assert rows == [(date(2024, 1, 1), None)]
    assert len(bad) == 2


# What breaks off in the middle, and keys


@pytest.mark.usefixtures("real_spark")
def test_files_that_break_off_refuse_the_delivery(files: Files, tmp_path: Path) -> None:
    files.put(a_csv="id,t,d\n1,a,1\n2" + ",x" * 30_000 + "\n")
    told = pytest.raises(QualityStop, match=r"shop\.events: \[FAILED_READ_FILE.*a\.csv")
    with told, naming_faults("shop.events"):
        files.read("csv").rows.collect()


def test_a_file_that_went_away_is_worth_a_retry(files: Files) -> None:
    gone = [LandedFile(str(files.folder / "gone.parquet"), 1, 1)]
    with pytest.raises(Retryable, match=r"gone\.parquet: it disappeared"):
        read_files(files.spark, source("parquet"), gone, Limits())


def test_a_null_key_is_a_reason(files: Files) -> None:
    files.put(a_json='{"id":1,"t":"a"}\n{"id":2}\n')
    rows, bad = files.rows("json", key=("id", "t"))
    assert [r[:2] for r in rows] == [(1, "a")]
    assert [reason for reason, _ in bad] == ["key column t is null"]


def test_texts_of_declared_length_are_texts(files: Files) -> None:
    files.put(a_csv="id,t\n1,abc\n")
    assert files.good("csv", "id INT, t VARCHAR(2)") == [(1, "abc")]
