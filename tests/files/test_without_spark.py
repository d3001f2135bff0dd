"""Broken files are read without Spark as by Spark: the same rows, reasons and texts."""

from collections.abc import Iterator
from datetime import date
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.files import documents
from tests.files.chance import PARTS, seeds
from tests.files.documents import CSV_SCHEMA, JSON_SCHEMA
from tests.files.files import Files, source
from tests.files.mutants import SCHEMA, Mutant, mutants

from sluice.delta.reading.landing import list_files
from sluice.engine.retries import naming_faults
from sluice.errors import QualityStop
from sluice.files.reading import read_files
from sluice.interpreter import UnsupportedLocally
from sluice.interpreter.local_session import Session, interpreting
from sluice.limits import Limits
from sluice.sources import Source

LEFT_TO_SPARK = {
    "very_wide.csv": "CSV with more than 20,480 columns",
    "encoding.parquet": "a cast to string of bytes that are not UTF-8",
}
LINES, TABLES, TIMES = 600, 200, 60
PATTERNS = {
    "yyyy-MM-dd": "2024-03-05",
    "dd.MM.yyyy": "29.02.2024",
    "yyyyMMdd": "20240305",
    "ddMMyyyy HHmmss": "05032024 101112",
    "M/d/yyyy H:mm": "3/5/2024 9:07",
    "yyyy-MM-dd'T'HH:mm:ss.SSS": "2024-03-05T10:11:12.5",
    "yyyy-MM-dd HH:mm:ss,SSSSSS": "2024-03-05 23:59:59,123456",
    "dd-MM-yyyy HH 'Uhr'": "05-03-2024 10 uhr",
    "d.M.yyyy H:m:s": "05.003.2024 0:0:0",
    "MM/yyyy": "03/2024",
    "yyyy": "2024",
    "s:m:H d_M_yyyy": "1:2:3 4_5_2024",
}
LEFT_PATTERNS = (
    *("yyyyMd", "yyyyMMddHHmmssSSS", "yy-MM-dd", "MMM d yyyy", "yyyy-MM-dd[ HH:mm]", "yyyy-dd"),
    *("yyyy-MM-dd HH:mm:ss.SSSSSSSSS", "yyyy-MM-dd HH:mmXXX", "yyyy-MM-dd hh:mm a", "yyyy-DDD"),
    *("yyyy'5'MM", "yyyy''MM", "yyyy/MM/dd yyyy", "yyyy-MM-dd HH:ss"),
)
ODD_LINES = (
    *("[1]", "[]", "[null]", '[{"i":1.5},{"i":2}]', '[{"t":"\\""},5, 1.5]', "NaN", "-0", "1.5"),
    *('[{"i":1,"i":2},null]', '{"a":""}', '{"a":[[1.5]]}', '{"m":[1.5]}', '{"s":"x\\u001f"}'),
    *('{"t":["\\u001f\\u007f\\/\\b",1.50,{"x":1,"x":2}]}', '{"m":{"k":1,"k":2}}', "\ufeff\ufeff{}"),
    *('{"a":1.50}', '{"s":[1,2.50]}', '{"m":true,"a":{"b":"\\""}}', '{"t":"\u2028\U0001f600"}'),
    *('{"i":1}\r{"i":2}\r\n{"i":3}', '{"i":1,}', "{'i':1}", '{"t":"a\tb"}', '{"t":"\x7f"}', "\0"),
    *('{"t":{"\U0001f600":"\U00010000"}}', '[{"t":"\U0001f600","i":1.5}]', '{"i":["\U0001f600"]}'),
    *('{"i":01}', '{"i":1.}', '{"i":-}', '{"i":+1}', '{"i":-Infinity}', '{"i":INF}', '{"é":1}'),
)


@pytest.mark.parametrize("format_", ["csv", "json", "parquet"])
def test_every_broken_file_is_read_alike(files: Files, format_: str) -> None:
    """Those that are refused by themselves, all others at once."""
    left, wrong, kept = {}, [], list[tuple[Mutant, Any]]()
    for mutant in mutants(format_):
        _put(files.folder, mutant)
        try:
            here = _read_here(files.folder, format_, SCHEMA)
        except UnsupportedLocally as reason:
            left[mutant.name.partition("_")[2]] = str(reason)
            continue
        if not isinstance(here, str):
            kept.append((mutant, here))
        elif here != (sparks := _read(files, format_, SCHEMA)):
            wrong.append((mutant.name, here, sparks))
    assert wrong == []
    _put(files.folder, *(mutant for mutant, _ in kept))
    rows = sorted(row for _, (_, rows) in kept for row in rows)
    here = _read_here(files.folder, format_, SCHEMA)
    assert here[1] == rows
    assert here == _read(files, format_, SCHEMA)
    assert left == {name: why for name, why in LEFT_TO_SPARK.items() if name.endswith(format_)}


def test_lines_of_json_are_read_alike(files: Files) -> None:
    for seed in seeds():
        made = [*ODD_LINES, *documents.lines(Random(seed), LINES)]
        _compare(files, "json", JSON_SCHEMA, [line.encode() for line in made], seed)


def test_lines_of_json_without_nested_columns_are_read_alike(files: Files) -> None:
    for seed in seeds():
        made = [*ODD_LINES, *documents.lines(Random(seed + 1), LINES)]
        _compare(files, "json", "i INT, t STRING, a STRING, m DOUBLE", _encoded(made, seed), seed)


def test_files_of_csv_are_read_alike(files: Files) -> None:
    odd = [f"i,t,u\n{end}" for end in ('1,2,"', '"', '1,2,"\r', '1,2," ', '1,2,"""')]
    for seed in seeds():
        made = odd + documents.tables(Random(seed), TABLES)
        _compare(files, "csv", CSV_SCHEMA, _encoded(made, seed), seed)


def test_files_of_csv_with_a_null_of_their_own_are_read_alike(files: Files) -> None:
    made = _encoded(documents.tables(Random(7), TABLES), 7)
    _compare(files, "csv", CSV_SCHEMA, made, 7, nullValue="a")


def test_documents_of_json_are_read_alike(files: Files) -> None:
    lines = documents.lines(Random(8), LINES // 4)
    made = [f"[{a},\n {b}]\n" if n % 2 else f" {a}\n" for n, (a, b) in enumerate(pairwise(lines))]
    _compare(files, "json", JSON_SCHEMA, _encoded(made, 8), 8, multiLine="true")


@pytest.mark.parametrize("pattern", PATTERNS)
def test_dates_and_times_of_a_pattern_are_read_alike(files: Files, pattern: str) -> None:
    chance = Random(pattern)
    texts = [PATTERNS[pattern], *(_misspelt(chance, PATTERNS[pattern]) for _ in range(TIMES))]
    schema = "d DATE, t TIMESTAMP, n TIMESTAMP_NTZ"
    made = [f'd,t,n\n"{text}","{text}","{text}"\n'.encode() for text in texts]
    _compare(files, "csv", schema, made, 0, **_by(pattern))


def test_times_of_a_pattern_in_json_are_read_alike(files: Files) -> None:
    chance, pattern = Random(3), "yyyyMMdd"
    texts = ["20240305", "20241305", *(_misspelt(chance, "20240305") for _ in range(TIMES))]
    written = [t if t.isdigit() and t[0] != "0" else f'"{t}"' for t in texts]
    made = [f'{{"d":{t},"a":[{t}],"t":{t}}}'.encode() for t in written]
    _compare(files, "json", "d DATE, a ARRAY<DATE>, t TIMESTAMP", made, 3, **_by(pattern))


def test_dates_and_times_of_a_pattern_need_no_spark(tmp_path: Path) -> None:
    days = ["29.02.2024", "29.02.2023", "9.2.2024", "29.02.2024 ", "29.02.24"]
    (tmp_path / "a.csv").write_text("\n".join(["d", *days]))
    _, found = _read_here(tmp_path, "csv", "d DATE", dateFormat="dd.MM.yyyy")
    assert "datetime.date(2024, 2, 29)" in found[-1][0]
    reasons = sorted(cell for row in found for cell in row if " is not a valid " in cell)
    assert reasons == [f"'column d: {day} is not a valid DATE'" for day in sorted(days[1:])]


def test_a_broken_line_is_kept_without_the_carriage_return_that_ends_it(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"a,b\r1,2\r3\r4,5\r")
    _, found = _read_here(tmp_path, "csv", "a INT, b INT")
    assert ["'does not parse as 2 values'", "'3'"] in [row[:2] for row in found]


@pytest.mark.parametrize("pattern", LEFT_PATTERNS)
def test_other_patterns_are_left_to_spark(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "a.csv").write_text("t\n2024-03-05\n")
    with pytest.raises(UnsupportedLocally, match=r"the pattern|from_csv"):
        _read_here(tmp_path, "csv", "t TIMESTAMP", timestampFormat=pattern)


@pytest.mark.parametrize(
    ("format_", "options", "what"),
    [
        ("csv", {"header": "true", "quote": "'", "escape": "'"}, "CSV with `escape`, `quote`"),
        ("csv", {"header": "false"}, "CSV without a header that begins with a byte order mark"),
        ("csv", {"sep": "::"}, "CSV with a `sep` of several characters"),
        (
            "json",
            {"multiLine": "true", "primitivesAsString": "true"},
            "JSON with `primitivesAsString`",
        ),
    ],
)
def test_options_left_to_spark(
    tmp_path: Path, format_: str, options: dict[str, str], what: str
) -> None:
    (tmp_path / "a").write_text("\ufefft\n")
    with pytest.raises(UnsupportedLocally, match=f"^{what}$"):
        _read_here(tmp_path, format_, "t STRING", **options)


def test_a_file_of_nothing_but_a_byte_order_mark_is_empty(tmp_path: Path) -> None:
    """Spark makes a row of it, with a zero."""
    (tmp_path / "a.csv").write_text("\ufeff")
    _, found = _read_here(tmp_path, "csv", "t BINARY", header="false")
    assert ["the file can't be read: it is empty" in row[0] for row in found] == [True]


OLD = {"org.apache.spark.version": "2.4.8"}
JULIAN = {"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyINT96": ""}


@pytest.mark.parametrize(
    ("notes", "written", "options", "what"),
    [
        (OLD, {}, {}, "Parquet with dates or times written by Spark before 3.1"),
        (JULIAN, {}, {}, "Parquet with dates or times written by Spark before 3.1"),
        ({}, {}, {"datetimeRebaseMode": "LEGACY"}, "Parquet with `datetimeRebaseMode`"),
        ({}, {"compression": "brotli"}, {}, "Parquet with BROTLI or BYTE_STREAM_SPLIT"),
        (
            {},
            {"use_dictionary": False, "column_encoding": {"f": "BYTE_STREAM_SPLIT"}},
            {},
            "Parquet with BROTLI or BYTE_STREAM_SPLIT",
        ),
    ],
)
def test_parquet_that_spark_reads_otherwise_or_not_at_all_is_left_to_it(
    tmp_path: Path, notes: dict[str, str], written: Any, options: dict[str, str], what: str
) -> None:
    days = pa.array([date(1200, 1, 1), date(2024, 1, 1)])
    table = pa.table({"d": days, "f": [0.5, 1.5]}).replace_schema_metadata(notes)
    pq.write_table(table, tmp_path / "a.parquet", **written)
    with pytest.raises(UnsupportedLocally, match=f"^{what}$"):
        _read_here(tmp_path, "parquet", "d DATE, f DOUBLE", **options)


def test_numbers_that_an_old_spark_has_written_need_no_spark(tmp_path: Path) -> None:
    table = pa.table({"n": [1, 2]}).replace_schema_metadata(OLD)
    pq.write_table(table, tmp_path / "a.parquet")
    _, found = _read_here(tmp_path, "parquet", "n BIGINT")
    assert [row[0] for row in found] == ["1", "2"]


def test_structs_within_structs_of_parquet_need_no_spark(tmp_path: Path) -> None:
    rows = [{"n": {"a": "x", "m": 2}, "i": [{"b": 1}]}, {"n": None, "i": None}, None]
    pq.write_table(pa.table({"s": rows}), tmp_path / "a.parquet")
    declared = "s STRUCT<n: STRUCT<a: STRING, m: BIGINT>, i: ARRAY<STRUCT<b: BIGINT>>>"
    _, found = _read_here(tmp_path, "parquet", declared)
    assert [row[0] for row in found] == sorted(map(repr, rows))


def test_times_of_int96_far_away_are_read_alike(files: Files) -> None:
    """Nanoseconds since 1970 have no room for them."""
    days = [date(1600, 2, 29), date(2262, 4, 12), date(9999, 12, 31), None]
    times = pa.table({"t": pa.array(days).cast(pa.timestamp("us"))})
    pq.write_table(times, files.folder / "a.parquet", use_deprecated_int96_timestamps=True)
    here = _read_here(files.folder, "parquet", "t TIMESTAMP")
    assert here == _read(files, "parquet", "t TIMESTAMP")
    assert len(here[1]) == len(days)


def _put(folder: Path, *files: Mutant) -> None:
    """Leave these files in the folder and no other."""
    for old in folder.iterdir():
        old.unlink()
    for file in files:
        (folder / file.name).write_bytes(file.content)


def _by(pattern: str) -> dict[str, str]:
    return dict.fromkeys(("dateFormat", "timestampFormat", "timestampNTZFormat"), pattern)


def _misspelt(chance: Random, text: str) -> str:
    """The text with another character, one more or one fewer."""
    at, new = chance.randrange(len(text)), chance.choice("0123456789 :-.T")
    return text[:at] + chance.choice(("", new, new, new + text[at])) + text[at + 1 :]


def _encoded(made: list[str], seed: int) -> list[bytes]:
    """The texts as bytes, some with a few bytes that are no UTF-8 in them."""
    chance, bad = Random(seed), (b"\xff", b"\xc3", b"\xe2\x82", b"\xed\xa0\x80", b"\xf0\x9f")
    found = []
    for text in made:
        data, at = text.encode(), chance.randrange(6, len(text) + 7)
        is_bad = chance.random() < 0.1
        found.append(data[:at] + chance.choice(bad) + data[at:] if is_bad else data)
    return found


def _compare(
    files: Files, format_: str, schema: str, made: list[bytes], seed: int, **options: str
) -> None:
    """Read each text as a file of its own."""
    for nth, content in enumerate(made):
        (files.folder / f"{nth}.{format_}").write_bytes(content)
    left = list(
        _left_to_spark(source(format_, schema, options=options), sorted(files.folder.iterdir()))
    )
    leaves_broken = options.keys() & {"nullValue", "multiLine"}
    assert len(left) < (0.6 if leaves_broken else 0.1) * len(made)
    for path in left:
        path.unlink()
    here = _read_here(files.folder, format_, schema, **options)
    sparks = _read(files, format_, schema, **options)
    assert here[0] == sparks[0], f"seed {seed}"
    ours = [row for row in here[1] if row not in sparks[1]]
    theirs = [row for row in sparks[1] if row not in here[1]]
    assert (ours[:3], theirs[:3]) == ([], []), f"seed {seed}"
    assert len(here[1]) == len(sparks[1])


def _left_to_spark(spec: Source, part: list[Path]) -> Iterator[Path]:
    """Yield the files that are refused, each by itself."""
    landed = [file for path in part for file in list_files(str(path))]
    with interpreting(Session()) as session:
        try:
            read_files(session, spec, landed, Limits()).rows.toArrow()  # type: ignore[arg-type]
            return
        except UnsupportedLocally:
            if len(part) == 1:
                yield part[0]
                return
    for nth in range(PARTS):
        yield from _left_to_spark(spec, part[nth::PARTS])


def _read_here(folder: Path, format_: str, schema: str, **options: str) -> Any:
    with interpreting(Session()) as session:
        return _read(Files(session, folder), format_, schema, **options)  # type: ignore[arg-type]


def _read(files: Files, format_: str, schema: str, **options: str) -> Any:
    """All that is read, or the refusal."""
    try:
        with naming_faults("shop.events"):
            read = files.read(format_, schema, options=options)
            rows = read.rows.toArrow().to_pylist()
    except QualityStop as stop:
        return stop.message
    columns = [c for c in (rows or [{}])[0] if c not in ("_sluice_block", "_sluice_row")]
    is_bad = "_sluice_reason"
    shown = (
        [repr(row[c]) for c in columns if not row[is_bad] or c.startswith("_sluice_")]
        for row in rows
    )
    return read.warnings, sorted(shown)
