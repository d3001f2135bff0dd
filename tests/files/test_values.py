"""Every spelling arrives as docs/values.md has it, or its row goes to quarantine by its reason."""

import math
from datetime import UTC, date, datetime
from datetime import time as clock
from decimal import Decimal
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.files.cells import Cell, Layout, cells, schema, unnested, written
from tests.files.chance import IS_DEEP, read_here, seeds
from tests.files.files import Files
from tests.files.strict import NotTaken, value

from sluice.interpreter.local_session import Session, interpreting

COUNT, HERE_COUNT, DEEP_COUNT, DEEP_HERE_COUNT = 6_000, 180, 60_000, 3_000
LOST = object()


@pytest.mark.usefixtures("real_spark")
@pytest.mark.parametrize("format_", ["csv", "json"])
def test_every_spelling_by_chance_is_read_as_the_page_says(files: Files, format_: str) -> None:
    for seed in seeds():
        chance = Random(seed)
        made = cells(chance, format_, DEEP_COUNT if IS_DEEP else COUNT)
        layout = Layout.by_chance(chance)
        assert wrongly_read(files, made, format_, layout) == [], f"seed {seed}"


@pytest.mark.parametrize("format_", ["csv", "json"])
def test_spellings_by_chance_are_read_without_spark(tmp_path: Path, format_: str) -> None:
    for seed in seeds():
        chance = Random(seed)
        made = cells(chance, format_, DEEP_HERE_COUNT if IS_DEEP else HERE_COUNT)
        layout = Layout.by_chance(chance)
        by_column = sorted(made, key=lambda c: c.column)  # fewer columns at once
        differ = partial(wrongly_read, format_=format_, layout=layout)
        told = read_here(tmp_path, by_column, differ)
        assert told.wrong == [], f"seed {seed}"
        assert told.read > 4 * told.refused


def wrongly_read(files: Files, made: list[Cell], format_: str, layout: Layout) -> list[Any]:
    """Cells that were read otherwise than the strict reader reads them, twenty at most."""
    files.put(**{f"a_{format_}": written(format_, made, layout)})
    rows = files.read(
        format_, schema(made), options=layout.options if format_ == "csv" else {}
    ).rows
    told = {r["i"]: r for r in _read(rows, made)}
    assert len(told) == len(made)
    wrong = ((c, told[i], _strict(c, format_)) for i, c in enumerate(made))
    found = [(c, _shown(c, t), w) for c, t, w in wrong if not _agree(c, t, w)]
    return found[:20]


def _read(rows: Any, made: list[Cell]) -> list[dict[str, Any]]:
    """The rows with what their own column holds; nulls are most of a row."""
    found = rows.orderBy("i").toArrow()
    columns = {c.column for c in made}
    of = {name: found[name].to_pylist() for name in columns}
    reasons, numbers = found["_sluice_reason"].to_pylist(), found["i"].to_pylist()
    return [
        {"i": i, "value": of[made[i].column][at], "reason": reasons[at]}
        for at, i in enumerate(numbers)
    ]


def _strict(cell: Cell, format_: str) -> Any:
    try:
        return value(cell.text, cell.type, format_)
    except NotTaken:
        return LOST


def _agree(cell: Cell, told: dict[str, Any], wanted: Any) -> bool:
    if wanted is LOST:
        reason = told["reason"] or ""
        plain = f"column {cell.column}: {cell.text[:80]} is not a valid {cell.type}"
        is_named = reason.startswith(f"column {cell.column}: ") if cell.nested else reason == plain
        return told["value"] is None and is_named
    if wanted is None:
        return told["value"] is None and told["reason"] is None
    if told["reason"] is not None or told["value"] is None:
        return False
    found = unnested(cell, told["value"])
    if isinstance(wanted, float):
        both_nan = math.isnan(wanted) and math.isnan(found)
        return both_nan or (found == wanted and math.copysign(1, found) == math.copysign(1, wanted))
    return bool(type(found) is type(wanted) and found == wanted)


def _shown(cell: Cell, told: dict[str, Any]) -> Any:
    return told["reason"] or unnested(cell, told["value"])


# What was once taken and altered, each by itself.

AS_TEXT = {
    "DECIMAL(12, 2)": ("1,5", "12,50", "1,234.56"),
    "DECIMAL(38, 2)": ("1.005", "0.001", "1.00001", "1" * 30 + ".255"),
    "DATE": ("2024-03-05 garbage", "2024-03-05Tx", "2024-03-05T99:99", "2024-03-05 23:59:59"),
    "DOUBLE": ("1e400", "-1e400"),
    "FLOAT": ("1e39", "1" * 40),
    "TIMESTAMP": ("12:30", "T12:30:00", "2024-03-31 02:30:00 Europe/Berlin", "1700000000000"),
    "TIMESTAMP_NTZ": (
        "2024-03-05T10:00:00+05:00",
        "2024-03-05 10:00:00 America/New_York",
        "2024-03-05T10:00:00.1234567",
    ),
    "INT": ("240.5",),
}
ROWS = [(type_, one) for type_, texts in AS_TEXT.items() for one in texts]
ROWS += [("TIMESTAMP", "2024-03-05T10:00:00.1234567")]
NUMBER = ("DECIMAL", "DOUBLE", "FLOAT", "INT")


@pytest.mark.parametrize(("type_", "one"), ROWS)
def test_texts_of_no_value_go_to_quarantine(files: Files, type_: str, one: str) -> None:
    files.put(a_csv=f'id,v\n1,"{one}"\n')
    assert files.rows("csv", f"id INT, v {type_}")[0] == []
    tokens = [f'"{one}"', *([one] if type_.startswith(NUMBER) and "," not in one else [])]
    (files.folder / "a.csv").unlink()
    lines = [f'{{"id":1,"v":{token}}}' for token in tokens]
    files.put(a_json="\n".join(lines))
    reason = f"column v: {one} is not a valid {type_}"
    assert files.rows("json", f"id INT, v {type_}") == ([], sorted((reason, x) for x in lines))


def test_values_inside_nested_ones_go_to_quarantine_as_well(files: Files) -> None:
    nested = "v STRUCT<a: ARRAY<DECIMAL(38, 2)>, b: MAP<STRING, TIMESTAMP_NTZ>>"
    bad = ['{"v":{"a":[1.50,1.005]}}', '{"v":{"b":{"k":"2024-03-05T10:00:00Z"}}}']
    files.put(a_json="\n".join([*bad, '{"v":{"a":[1.50,"2"],"b":{"k":"2024-03-05"}}}']))
    rows, aside = files.rows("json", nested)
    day = datetime.combine(date(2024, 3, 5), clock())
    assert rows == [({"a": [Decimal("1.50"), Decimal("2.00")], "b": [("k", day)]},)]
    assert [raw for _, raw in aside] == bad
    assert aside[0][0].startswith('column v: {"a":[1.50,1.005]} is not a valid STRUCT<')


def test_reasons_show_nested_values_as_they_were_written_without_spark_too(files: Files) -> None:
    declared = "v STRUCT<a: ARRAY<DECIMAL(38, 2)>, b: MAP<STRING, TINYINT>, c: FLOAT>, t STRING"
    values = ('{"a":[1.50,1.005]}', '{"b":{"k":300}}', '{"a":["1,5"],"b":{"k":1e0}}', '{"c":1e39}')
    good = '{"v":{"a":[1.50],"b":{"k":7.0}},"t":1.50}'
    files.put(a_json="\n".join([*(f'{{"v":{v},"t":"#1.5#"}}' for v in values), good]))
    read = files.rows("json", declared)
    assert [reason.split(" is not a valid ")[0] for reason, _ in read[1]] == [
        'column v: {"a":["1,5"],"b":{"k":1e0}}',
        'column v: {"a":[1.50,1.005]}',
        'column v: {"b":{"k":300}}',
        'column v: {"c":1e39}',
    ]
    with interpreting(Session()) as session:
        assert Files(session, files.folder).rows("json", declared) == read  # type: ignore[arg-type]


def test_nested_values_of_another_shape_go_to_quarantine(files: Files) -> None:
    wrong = {"[1]": "STRUCT<a:INT>", "5": "ARRAY<INT>", '"[5]"': "ARRAY<INT>"}
    wrong |= {"1.50": "ARRAY<INT>", '{"x":-0}': "ARRAY<INT>"}
    for token, type_ in wrong.items():
        files.put(a_json=f'{{"v":{token}}}\n')
        ((reason, raw),) = files.bad("json", f"v {type_}")
        shown = token.strip('"')
        assert (reason, raw) == (
            f"column v: {shown} is not a valid {type_.upper()}",
            f'{{"v":{token}}}',
        )
    files.put(a_json='{"v":{"a":1,"a":2}}\n')
    for type_ in ("STRUCT<a: INT>", "MAP<STRING, INT>"):
        ((reason, _),) = files.bad("json", f"v {type_}")
        assert reason == "an object in it has a field twice, or is too large"


def test_texts_of_json_arrive_as_they_were_written(files: Files) -> None:
    texts = ["1.10", "1E2", "-0", "-0.0", "0.1234567890123456789", "1" * 50, "true", "NaN"]
    escapes = {
        '"\\\\ud800 \\u0022"': '\\ud800 "',
        '"\\ud83d\\ude00"': "\U0001f600",
        '"#1.5#"': "#1.5#",
    }
    nested = {'{"x": 1.10, "y":["a 1.50" , 2.50]}': '{"x":1.10,"y":["a 1.50",2.50]}'}
    tokens = {**{t: t for t in texts}, **escapes, **nested}
    files.put(a_json="".join(f'{{"n":{n},"t":{t}}}\n' for n, t in enumerate(tokens)))
    assert files.good("json", "n INT, t STRING") == sorted(enumerate(tokens.values()), key=repr)


def test_half_a_surrogate_pair_and_overlong_bytes_go_to_quarantine(files: Files) -> None:
    halves = ['{"t":"\\ud800"}', '{"t":"\\udc00x"}', '{"t":"\\ud83d\\ud83d\\ude00"}']
    files.put(a_json="\n".join(halves), b_json=b'{"t":"\xc0\xaf"}\n{"t":"\xed\xa0\x80"}\n')
    rows, bad = files.rows("json", "t STRING")
    assert rows == []
    reasons = ["has bytes that are invalid in the encoding"] * 2 + [
        "has half of a surrogate pair"
    ] * 3
    assert [reason for reason, _ in bad] == reasons


def test_a_field_that_stands_twice_goes_to_quarantine(files: Files) -> None:
    lines = ['{"id":1,"id":2}', '{"id":1,"\\u0069d":2}', '{"id":1,"x":0,"x":0}']
    files.put(a_json="\n".join(lines))
    assert files.bad("json") == [
        ("field id is repeated", lines[1]),
        ("field id is repeated", lines[0]),
        ("field x is repeated", lines[2]),
    ]


def test_a_quoted_text_that_the_end_of_the_file_cuts_off_goes_to_quarantine(files: Files) -> None:
    cut = ['2,"abc', '2,"', '2,"a ""b""', '2,"a\nb', '2,"a\r\n']
    for end in cut:
        files.put(a_csv=f'id,t\n1,"say ""hi"""\n{end}')
        rows, bad = files.rows("csv", "id INT, t STRING")
        assert rows == [(1, 'say "hi"')]
        assert [r for r, _ in bad] == ["a quote is not closed before the end of the file"], end
    for end in ('2,"abc"', '2,a"b', '2,""', '2,"a\nb"', '2,5" pipe\n', '2,"a ""b"""\n'):
        files.put(a_csv=f"id,t\n1,x\n{end}")
        assert [r[0] for r in files.good("csv", "id INT, t STRING")] == [1, 2]


def test_line_ends_of_csv_may_be_mixed_and_stay_as_they_are_inside_quotes(files: Files) -> None:
    lines = ["1,a\n", "2,b\r\n", '3,"c\r\nd"\r\n', '4,"e\nf"\n', "5,g\r\n", "6,\r\n", "7,h"]
    good = [(1, "a"), (2, "b"), (3, "c\r\nd"), (4, "e\nf"), (5, "g"), (6, None), (7, "h")]
    for header in ("id,t\n", "id,t\r\n"):
        files.put(a_csv=header + "".join(lines))
        assert files.good("csv", "id INT, t STRING") == good
    files.put(a_csv="id,t\r1,a\r2,b\r")
    assert files.good("csv", "id INT, t STRING") == [(1, "a"), (2, "b")]


def test_integral_numbers_with_a_point_are_integers(files: Files) -> None:
    files.put(a_json='{"n":240.0}\n{"n":"2.4e2"}\n{"n":240.5}\n')
    rows, bad = files.rows("json", "n INT")
    assert rows == [(240,), (240,)]
    assert bad == [("column n: 240.5 is not a valid INT", '{"n":240.5}')]


def test_a_locale_gives_the_point_of_a_decimal_in_csv(files: Files) -> None:
    files.put(a_csv="n;d\n1;1.234,56\n2;1,5\n3;1234,5\n4;1,234.56\n5;1.5\n6;12.34,5\n7;1,005\n")
    rows, bad = files.rows(
        "csv", "n INT, d DECIMAL(12, 2)", options={"sep": ";", "locale": "de-DE"}
    )
    assert rows == [(1, Decimal("1234.56")), (2, Decimal("1.50")), (3, Decimal("1234.50"))]
    assert len(bad) == 4


def test_a_locale_with_a_point_has_groups_of_its_own(files: Files) -> None:
    files.put(a_csv="n;d\n1;1’234.56\n2;1'234'567\n3;1,234.5\n4;1.234,56\n5;12’34\n")
    rows, bad = files.rows(
        "csv", "n INT, d DECIMAL(12, 2)", options={"sep": ";", "locale": "de-CH"}
    )
    assert rows == [(1, Decimal("1234.56")), (2, Decimal(1234567)), (3, Decimal("1234.50"))]
    assert len(bad) == 2


@pytest.mark.usefixtures("real_spark")
def test_formats_and_zones_of_times_may_be_given(files: Files) -> None:
    files.put(a_csv="d,t\n01.02.2024,2024-07-01 10:00\n01.02.2024x,\n,2024-03-31 02:30\n")
    options = {"dateFormat": "dd.MM.yyyy", "timeZone": "Europe/Berlin"}
    rows, bad = files.rows("csv", "d DATE, t TIMESTAMP", options=options)
    assert rows == [(date(2024, 2, 1), datetime(2024, 7, 1, 8, tzinfo=UTC))]
    assert [reason for reason, _ in bad] == [
        "column d: 01.02.2024x is not a valid DATE",
        "column t: 2024-03-31 02:30 is not a valid TIMESTAMP",
    ]
