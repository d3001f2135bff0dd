"""CSV that Spark's parser takes otherwise than it is written: quarantined, or refused by name."""

import contextlib
import gzip
from collections.abc import Callable

import pyarrow as pa
import pytest
from tests.files.files import Files

from sluice.errors import QualityStop
from sluice.interpreter import UnsupportedLocally
from sluice.interpreter.local_session import Session, interpreting

ODD = "a value continues after its closing quote"
OPEN = "a quote is not closed: its value continues into the next rows"


@pytest.mark.parametrize(
    ("content", "schema", "good", "reasons"),
    [
        # In a column that is not declared, too.
        ('id,t,junk\n1,a,"x\n2,b,y\n3,c,"\n4,d,z\n', "id INT, t STRING", [(4, "d")], [OPEN]),
        ('t,u,v\n"a,1,2\n"b",3,4\n"c",5,6\n', "t STRING, u INT, v INT", [("c", 5, 6)], [ODD]),
        ('t\n"a\n"b"\n"c"\n', "t STRING", [("c",)], [ODD]),
        (
            'id,t\n1,"ab"c\n2,"a"b"c"\n3,"d"\n4,e"f\n',
            "id INT, t STRING",
            [(3, "d"), (4, 'e"f')],
            [ODD, ODD],
        ),
        ('id,t\n1,"""a"" b"\n', "id INT, t STRING", [(1, '"a" b')], []),
        # Carriage returns alone.
        ("id,t\r1,a\r2,c\r", "id INT, t STRING", [(1, "a"), (2, "c")], []),
        ('id,t\r1,"a\r2,b\r3,"\r4,d\r', "id INT, t STRING", [(4, "d")], [OPEN]),
        ('id,t\r1,"a\r"\r2,"\r"\r', "id INT, t STRING", [(1, "a\r"), (2, "\r")], []),
        # A row of nothing but a carriage return.
        ('t\na\n"\r"\nz\n', "t STRING", [("a",), ("z",), (None,)], []),
        ("id,t\r\n1,a\r\n\r\n2,b\r\n", "id INT, t STRING", [(1, "a"), (2, "b")], []),
        ("id,t\r\n1,a\r\n\r\r\n2,b\r\n", "id INT, t STRING", [(1, "a"), (2, "b")], []),
        ("id,t\n1,a\n\r\r\n\r\n2,b\n", "id INT, t STRING", [(1, "a"), (2, "b")], []),
        # Names that Spark or Sluice use themselves.
        ("id,_metadata,_sluice_raw\n1,x,y\n", "id INT", [(1,)], []),
    ],
)
def test_rows_that_quotes_may_have_altered(
    files: Files, content: str, schema: str, good: list[object], reasons: list[str]
) -> None:
    (files.folder / "a.csv").write_text(content, newline="")
    rows, bad = files.rows("csv", schema)
    assert (rows, [reason for reason, _ in bad]) == (good, reasons)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("id,t\r1,a\r2,c\r3,d\n", "its first line ends with a carriage return alone"),
        ('id,t\r1,"a\nb"\r2,c\r', "its first line ends with a carriage return alone"),
        ("id,t\r1,a\n2,c\n3,d\n", "its first line ends with a carriage return alone"),
        ("\r\nid,t\r\n1,b\r\n", "it begins with an empty line that has a carriage return"),
        ("\n", "it is empty"),
        ("\n\n\r\n", "it begins with an empty line that has a carriage return"),
        ("\ufeff", "it is empty"),
        ('id,t\n1,"ab"\x01\n2,c\n', "control characters at quotes would be lost, first in line 2"),
        ('id,t\n"1"\r,b\n', "control characters at quotes would be lost, first in line 2"),
        ('id,t\n1,a\n2,"a\0""b"\n', "control characters at quotes would be lost, first in line 3"),
    ],
)
def test_files_without_one_layout_are_named(files: Files, content: str, why: str) -> None:
    (files.folder / "a.csv").write_text(content, encoding="utf-8", newline="")
    (files.folder / "b.csv").write_text("id,t\n7,x\n")
    rows, bad = files.rows("csv", "id INT, t STRING")
    assert rows == [(7, "x")]
    ((reason, _),) = bad
    assert reason.startswith(f"the file can't be read: {why}")


def test_a_line_feed_is_found_however_late_it_comes(files: Files) -> None:
    files.put(a_csv="id,t\r" + "3,c\r" * 300_000 + "4,d\n")
    ((reason, _),) = files.bad("csv", "id INT, t STRING")
    assert reason.endswith("its first line ends with a carriage return alone, others do not")


def test_a_null_of_ones_own_is_null_in_the_last_column_of_any_line(files: Files) -> None:
    files.put(a_csv="id,t\r\n1,NA\r\n2,x\r\n", b_csv="id,t\n3,NA\n")
    found = files.good("csv", "id INT, t STRING", options={"nullValue": "NA"})
    assert found == [(1, None), (2, "x"), (3, None)]


@pytest.mark.parametrize("ending", [".lz4", ".snappy", ".deflate"])
def test_endings_of_formats_that_nobody_else_writes_mean_nothing(files: Files, ending: str) -> None:
    (files.folder / f"a.csv{ending}").write_text("id\n1\n")
    assert files.good("csv", "id INT") == [(1,)]


@pytest.mark.parametrize(
    ("ending", "pack"),
    [(".gzip", gzip.compress), (".zstd", lambda b: pa.compress(b, "zstd", asbytes=True))],
)
def test_codecs_have_longer_names(
    files: Files, ending: str, pack: Callable[[bytes], bytes]
) -> None:
    (files.folder / f"a.csv{ending}").write_bytes(pack(b"id\n1\n"))
    (files.folder / f"b.csv{ending}").write_bytes(b"id\n2\n")
    rows, bad = files.rows("csv", "id INT")
    assert rows == [(1,)]
    assert len(bad) == 1


@pytest.mark.usefixtures("real_spark")
def test_comments_are_no_rows_whatever_quotes_they_have(files: Files) -> None:
    files.put(a_csv='# a,"b\n\nid,t\n1,"#"\n# x,"y\n2,"c\n#d"\n', b_csv='#\r\nid,t\r\n3,x\r\n#"')
    files.put(c_csv="# nothing\n")
    rows, bad = files.rows("csv", "id INT, t STRING", options={"comment": "#"})
    assert rows == [(1, "#"), (2, "c\n#d"), (3, "x")]
    assert [reason for reason, _ in bad] == ["the file can't be read: it is empty"]
    files.put(a_csv='4,e\n#,"\n5,f\n', b_csv="", c_csv="# nothing\n")
    (files.folder / "b.csv").unlink()
    options = {"Comment": "#", "header": "false"}
    assert files.good("csv", "id INT, t STRING", options=options) == [(4, "e"), (5, "f")]


def test_names_that_nobody_declares_may_stand_twice(files: Files) -> None:
    files.put(a_csv="id,t,,,Note,note\n1,a,,,x,y\n")
    assert files.good("csv", "id INT, t STRING") == [(1, "a")]
    files.put(a_csv="id,t,T\n1,a,b\n")
    with pytest.raises(QualityStop, match="more than one column named t, T"):
        files.rows("csv", "id INT, t STRING")


@pytest.mark.usefixtures("real_spark")
def test_quotes_may_be_switched_off(files: Files) -> None:
    files.put(a_csv='id,t\n1,"a\n2,b"\n')
    found = files.good("csv", "id INT, t STRING", options={"quote": ""})
    assert found == [(1, '"a'), (2, 'b"')]
    files.put(a_csv='id,t\n1,"a"\n2,"b"\n')
    assert files.good("csv", "id INT, t STRING", options={"escape": ""}) == [(1, "a"), (2, "b")]


@pytest.mark.usefixtures("real_spark")
def test_text_behind_a_closing_quote_is_found_with_an_escape_of_ones_own(files: Files) -> None:
    texts = ('"b\\"c"', '"b""', '"b"c"', "d", 'e"f')
    files.put(
        a_csv="t,id\n" + "".join(f"{t},{nth}\n" for nth, t in enumerate(texts)),
        b_csv='t,id\n"g\\"h",5',
    )
    rows, bad = files.rows("csv", "t STRING, id INT", options={"escape": "\\"})
    assert rows == [("d", 3), ('g"h', 5)]
    assert [reason for reason, _ in bad] == [ODD] * 4


@pytest.mark.usefixtures("real_spark")
def test_a_quote_that_ends_a_file_is_not_doubled(files: Files) -> None:
    odd = 'id||t\n5||"e"|"\n6||f\n'
    files.put(a_csv='id||t\n1||"a"\n2||b"\n3||c"', b_csv='id||t\n4||"d"', c_csv=odd)
    rows, bad = files.rows("csv", "id INT, t STRING", options={"sep": "||"})
    assert rows == [(1, "a"), (2, 'b"'), (4, "d")]
    assert [reason for reason, _ in bad] == [
        "a quote is not closed before the end of the file",
        f"the file can't be read: {ODD}",
    ]


def test_many_separators_behind_a_line_break_take_no_time(files: Files) -> None:
    names = [f"c{n}" for n in range(60)]
    text = '"x\n' + "a," * 50 + '"'
    files.put(a_csv=",".join(names) + "\n" + ",".join([text, *["1"] * 59]) + "\n")
    assert files.good("csv", "c0 STRING, c1 INT") == [(text.strip('"'), 1)]


def test_a_carriage_return_begins_no_row_in_a_file_whose_lines_end_otherwise(files: Files) -> None:
    files.put(a_csv='id,t,u\r\n1,"\r,,e",x\r\n2,"\r\n,,e",x\r\n')
    assert files.rows("csv", "id INT, t STRING, u STRING")[0] == [(1, "\r,,e", "x")]
    files.put(a_csv='id,t,u\r1,"\r,,e",x\r2,"f",x\r')
    assert files.rows("csv", "id INT, t STRING, u STRING")[0] == [(2, "f", "x")]


@pytest.mark.parametrize("end", ["\r\r\n", "\r\n\r\n", "\r\n", "\n\r\n"])
def test_carriage_returns_at_row_ends_are_read_alike(files: Files, end: str) -> None:
    files.put(a_csv=f'id,t,u\r\n1,a,{end}2,"b",c{end}')
    read = files.rows("csv", "id INT, t STRING, u STRING")
    assert read[0][0] == (1, "a", "\r" if end == "\r\r\n" else None)
    with interpreting(Session()) as session, contextlib.suppress(UnsupportedLocally):
        here = Files(session, files.folder)  # type: ignore[arg-type]
        assert here.rows("csv", "id INT, t STRING, u STRING") == read
