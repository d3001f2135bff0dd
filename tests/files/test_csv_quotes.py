"""A file of CSV ends within quotes, or it does not, however it is cut into chunks."""

import io

import pytest

from sluice.files import filehead
from sluice.files.filehead import Faults, Quotes

WHOLE = (
    *('2,"abc"', '2,a"b', '2,""', '2,"a\nb"', '2,5" pipe\n', '2,"a ""b"""\n', "", '""'),
    '"a","b"\r\n"c",""\n',
)
ODD = ('"a"b,c', '1,"a""b"c\n', '"a,1,2\n"b",3,4\n', '1,"a" b\n', '"a"b"c",1\n"d",2\n')
CUT = ('2,"abc', '2,"', '2,"a ""b""', '2,"a\nb', '2,"a\r\n', '"', '2,"x""', '1,5" pipe\n2,"b')


LOST = {
    '1,"a"\x01,b\n': 1,
    '"a"\n"b" \x00 \n"c"\x02\n': 2,
    '"x"\n"a\0b"\n': 2,
    '"\n\n\0': 1,
    '"a""\0""b"': 1,
    'a\n"b\nc"\x1f': 3,
    '1,"a"\r,b\n': 1,
}
COMMENTED = ('# a,"b\n1,2\n', '1,"#"\n#"', '1,"a\n#b"\n', '1,a# "b\n#,"', '"a"\n# "b"c,"d"e\n"f"')


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
def test_faults_are_found_wherever_a_chunk_ends(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(filehead, "CHUNK", size)
    assert {w: faults(w) for w in WHOLE} == dict.fromkeys(WHOLE, Faults())
    assert [c for c in CUT if not faults(c).is_cut] == []
    assert {o: faults(o) for o in ODD} == dict.fromkeys(ODD, Faults(has_odd=True))
    assert {text: faults(text).lost_in for text in LOST} == LOST
    of_comments = {c: faults(c, comment="#") for c in COMMENTED}
    assert of_comments == dict.fromkeys(COMMENTED, Faults())
    assert faults('#\n"a\n#"b', comment="#") == Faults(has_odd=True)
    assert faults('a||"b||c"||"d"\n', sep="||") == Faults()


def test_a_separator_of_several_characters_begins_a_text_only_whole() -> None:
    assert faults('a|"b||c\n', sep="||") == Faults()
    assert faults('a||"b\n', sep="||").is_cut
    assert faults('a||b"', sep="||").is_cut
    assert faults('a||b"\n"c"||"d"', sep="||") == Faults()


def test_a_carriage_return_begins_a_row_only_where_it_ends_one() -> None:
    assert faults('a\r"b\n') == Faults()
    assert Quotes.of({}, "\r").faults(io.BytesIO(b'a\r"b')).is_cut


def faults(text: str, **options: str) -> Faults:
    return Quotes.of(options).faults(io.BytesIO(text.encode()))
