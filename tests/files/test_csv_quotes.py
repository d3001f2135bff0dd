"""A file of CSV ends within quotes, or it does not, however it is cut into chunks."""

import io

import pytest

from sluice.files import csv_quotes
from sluice.files.csv_quotes import Quotes

WHOLE = (
    *('2,"abc"', '2,a"b', '2,""', '2,"a\nb"', '2,5" pipe\n', '2,"a ""b"""\n', "", '""', '"a"b",c'),
    '"a","b"\r\n"c",""\n',
)
CUT = ('2,"abc', '2,"', '2,"a ""b""', '2,"a\nb', '2,"a\r\n', '"', '2,"x""', '1,5" pipe\n2,"b')


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
def test_a_quote_that_is_never_closed_is_found(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(csv_quotes, "CHUNK", size)
    quotes = Quotes.of({})
    assert [w for w in WHOLE if quotes.are_open_at_end(io.BytesIO(w.encode()))] == []
    assert [c for c in CUT if not quotes.are_open_at_end(io.BytesIO(c.encode()))] == []


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_a_quote_may_be_escaped_as_options_say(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(csv_quotes, "CHUNK", size)
    quotes = Quotes.of({"escape": "\\", "sep": ";", "encoding": "utf-16-le"})
    ends = {'1;"a\\"b"\n': False, '1;"ab\\"\n': True, '1;"ab\\\\"\n': False, '1,"ab': False}
    assert {t: quotes.are_open_at_end(io.BytesIO(t.encode("utf-16-le"))) for t in ends} == ends
