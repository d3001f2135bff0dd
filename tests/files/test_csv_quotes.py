"""A file of CSV ends within quotes, or it does not, however it is cut into chunks."""

import io

import pytest

from sluice.files import csv_quotes
from sluice.files.csv_quotes import Quotes

WHOLE = (
    *('2,"abc"', '2,a"b', '2,""', '2,"a\nb"', '2,5" pipe\n', '2,"a ""b"""\n', "", '""'),
    '"a","b"\r\n"c",""\n',
)
ODD = ('"a"b,c', '1,"a""b"c\n', '"a,1,2\n"b",3,4\n', '1,"a" b\n', '"a"b"c",1\n"d",2\n')
CUT = ('2,"abc', '2,"', '2,"a ""b""', '2,"a\nb', '2,"a\r\n', '"', '2,"x""', '1,5" pipe\n2,"b')


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
def test_a_quote_that_is_never_closed_is_found(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(csv_quotes, "CHUNK", size)
    quotes = Quotes.of({})
    assert [w for w in WHOLE if quotes.faults(io.BytesIO(w.encode())) != (False, False)] == []
    assert [c for c in CUT if not quotes.faults(io.BytesIO(c.encode()))[0]] == []
    assert [o for o in ODD if quotes.faults(io.BytesIO(o.encode())) != (False, True)] == []


def test_a_separator_of_several_characters_begins_a_text_only_whole() -> None:
    quotes = Quotes.of({"sep": "||"})
    assert quotes.faults(io.BytesIO(b'a|"b||c\n')) == (False, False)
    assert quotes.faults(io.BytesIO(b'a||"b||c\n')) == (True, False)


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_a_quote_may_be_escaped_as_options_say(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(csv_quotes, "CHUNK", size)
    quotes = Quotes.of({"escape": "\\", "sep": ";", "encoding": "utf-16-le"})
    ends = {'1;"a\\"b"\n': False, '1;"ab\\"\n': True, '1;"ab\\\\"\n': False, '1,"ab': False}
    assert {t: quotes.faults(io.BytesIO(t.encode("utf-16-le")))[0] for t in ends} == ends
