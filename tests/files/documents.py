"""Lines of JSON and files of CSV by chance, and what they hold: readers written from the docs.

Python's own parser of JSON decides what RFC 8259 accepts; RFC 4180 is read character by character.
"""

import json
import re
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.files.strict import NotTaken, value

Row = dict[str, Any]
SCALARS = {"i": "INT", "t": "STRING", "d": "DECIMAL(10, 2)", "b": "BOOLEAN", "f": "DOUBLE"}
JSON_SCHEMA = (
    "i INT, t STRING, d DECIMAL(10, 2), b BOOLEAN, f DOUBLE, a ARRAY<INT>, "
    "s STRUCT<x: INT, y: STRING>, m MAP<STRING, DECIMAL(10, 2)>"
)
SNIPPETS = (
    *('"', "\\", "\\\\", '\\"', "{", "}", "[", "]", ":", ",", " ", "\t", "\x01", "1", "-", ".5"),
    *("e1", '"i":2', "\\u0041", "\\ud800", "\\ud83d\\ude00", "\\n", "\\/", "null", "true", "0"),
    *("é", '"x":1,', '{"a":1}', "#", "'", "//", "/*", "NaN", "\u2028", "\ufeff", "\\x"),
)  # fmt: skip
TOKENS = (
    *("1", "-2", "2.50", "1e1", "1.5", "true", "false", "null", '"3"', '"1.50"', '"true"', '"x"'),
    *('""', '" 4 "', '"a\\"b"', '"\\\\"', '"\\u00e9 #1# "', "[1, 2]", '["1", null]', "[]", "{}"),
    *('{"x": 1.0, "y": "z"}', '{"y": 2.50}', '{"k": "1.5", "l": 2}', '[{"x":1}]', "12345678901"),
)
FITTING = {
    "i": ("1", "-2", '"3"', "1e1", '" 4 "', "2.0", "null"),
    "t": ("1", "2.50", "true", '""', '"a\\"b"', '"\\u00e9 #1# "', '"#1.5# 1.50"', '"1.50"'),
    "d": ("1", "2.50", "1e1", '"1.50"', "12345678.9", "-0", "null"),
    "b": ("true", "false", '"true"', '"n"', "1"),
    "f": ("1", "2.50", "1e1", '"1.5"', "NaN", "-0.0", "1e-400"),
    "a": ("[1, 2]", '["1", null]', "[]", "null", "[1.0 ,2e0]"),
    "s": ("{}", '{"x": 1.0, "y": "z"}', '{"y": 2.50}', '{"x":"7","z":[1]}', "null"),
    "m": ("{}", '{"k": "1.5", "l": 2}', '{"k":null}', '{"\\u006b": 1.50, "": 0.1}'),
    "z": ("1.50", "[]", '{"a":[]}', "null"),
}


class Number(str):
    """A number as it is written."""

    __slots__ = ()


def lines(chance: Random, count: int) -> list[str]:
    """So many lines of JSON: of half, all values fit; of the others, most are changed somewhere."""
    return [
        _changed(chance, _object(chance, TOKENS), SNIPPETS) if nth % 2 else _object(chance)
        for nth in range(count)
    ]


def _object(chance: Random, tokens: tuple[str, ...] = ()) -> str:
    names = [n for n in (*"itdbfasm", "z") if chance.random() < 0.5]
    each = (f"{chance.choice(('', ' '))}{chance.choice(tokens or FITTING[n])}" for n in names)
    fields = (f'"{n}":{value}' for n, value in zip(names, each, strict=True))
    return "{" + chance.choice((",", ", ")).join(fields) + "}"


def _changed(chance: Random, text: str, snippets: tuple[str, ...]) -> str:
    for _ in range(chance.choice((0, 1, 1, 2, 3))):
        at = chance.randrange(len(text) + 1)
        text = text[:at] + chance.choice(("", *snippets)) + text[at + chance.choice((0, 1)) :]
    return text


def of_line(line: str) -> list[Row | None]:
    """The rows of a line; None for what is not accepted."""
    try:
        found = json.loads(line.removeprefix("\ufeff"), **HOOKS)
        json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return [None] if line.strip(" \t\r\n") else []
    return [_row(one) for one in (found if isinstance(found, list) else [found])]


def _without_repeats(pairs: list[tuple[str, Any]]) -> Row:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a field is repeated")
    return dict(pairs)


HOOKS: Row = {
    "object_pairs_hook": _without_repeats,
    "parse_constant": Number,
    "parse_int": Number,
    "parse_float": Number,
}


def _row(found: Any) -> Row | None:
    try:
        return _typed_row(found) if isinstance(found, dict) else None
    except NotTaken:
        return None


def _typed_row(found: Row) -> Row:
    scalars = {name: _scalar(found.get(name), type_) for name, type_ in SCALARS.items()}
    a, s, m = (found.get(name) for name in "asm")
    _demand((a, list), (s, dict), (m, dict))
    fields = {"x": "INT", "y": "STRING"}
    return {
        **scalars,
        "a": a if a is None else [_scalar(one, "INT") for one in a],
        "s": s if s is None else {n: _scalar(s.get(n), t) for n, t in fields.items()},
        "m": m if m is None else [(k, _scalar(v, "DECIMAL(10, 2)")) for k, v in m.items()],
    }


def _demand(*pairs: tuple[Any, type]) -> None:
    if not all(found is None or isinstance(found, type_) for found, type_ in pairs):
        raise NotTaken


def _scalar(found: Any, type_: str) -> Any:
    if found is None:
        return None
    if isinstance(found, (list, dict)):
        if type_ != "STRING":
            raise NotTaken
        return found
    written = str(found).lower() if isinstance(found, bool) else str(found)
    return value(written, type_, "json")


def as_read(row: Row) -> Row:
    """A row that was read, with the JSON in its texts parsed where it has to be equal as JSON."""
    texts = {**row, "s": row["s"] and dict(row["s"])}
    texts["t"] = _parsed(row["t"])
    if texts["s"]:
        texts["s"]["y"] = _parsed(texts["s"]["y"])
    return texts


def _parsed(text: Any) -> Any:
    if not isinstance(text, str) or text[:1] not in ("{", "["):
        return text
    try:
        return json.loads(text, **HOOKS)
    except ValueError:
        return text


# CSV

CSV_SCHEMA = "i INT, t STRING, u STRING"
CELLS = (
    "",
    "a",
    " b ",
    '""',
    '"c"',
    '"d,e"',
    '"f ""g"" h"',
    '"i\nj"',
    '"k\r\nl"',
    'm"n',
    "'",
    "é",
    "\\",
)
CSV_SNIPPETS = (
    *('"', '""', ",", "\n", "\r\n", "x", " ", "\\", ',"', '",', "\n\n", '"\n'),
    *("\0", '"\x01', "\x0b"),
)


@dataclass(frozen=True)
class Table:
    """What a file of CSV holds: rows that are accepted, and how many are not.

    `is_odd`: a quoted text goes on behind its closing quote, or begins behind a carriage return, of
    which RFC 4180 says nothing; or there are zeros. What arrives of it must still be written there.
    """

    rows: list[tuple[Any, ...]]
    others: int
    is_odd: bool = False


def tables(chance: Random, count: int) -> list[str]:
    """So many files of CSV, most of them changed in some places behind their header."""
    return [_table(chance) for _ in range(count)]


def _table(chance: Random) -> str:
    end = chance.choice(("\n", "\n", "\r\n"))
    rows = (_cells(chance, nth) for nth in range(chance.randrange(1, 6)))
    body = _changed(chance, end.join(rows) + chance.choice((end, "")), CSV_SNIPPETS)
    return f"i,t,u{end}{body}"


def _cells(chance: Random, nth: int) -> str:
    return ",".join((str(nth), chance.choice(CELLS), chance.choice(CELLS)))


def of_table(text: str) -> Table:
    """What a file holds, by RFC 4180 and docs/values.md."""
    records, is_odd = _records(text)
    rows, others = [], 0
    for cells in records[1:]:
        try:
            rows.append(_typed(cells))
        except NotTaken:
            others += 1
    return Table(rows, others, is_odd)


def is_written(text: str, row: tuple[Any, ...]) -> bool:
    """True if a file has the texts of that row behind a number, quoted or not."""
    cells = ",".join([r"[^,\n]*", *map(_spelt, row[1:])])
    return bool(re.search(rf"[\r\n]{cells}(?=[\r\n]|\Z)", text))


def _spelt(cell: str | None) -> str:
    if cell is None:
        return r'(?:|""[ \t]*)'
    quoted = re.escape(cell.replace('"', '""')) + r'\r?"[ \t]*'
    return f'(?:"{quoted}|{re.escape(cell)})' if cell[0] != '"' else f'"{quoted}'


def _typed(cells: list[str | None]) -> tuple[Any, ...]:
    if len(cells) != 3 or None in cells or any(map(_looks_like_rows, cells)):
        raise NotTaken
    number, *texts = (str(cell) for cell in cells)
    return (value(number, "INT", "csv"), *(text or None for text in texts))


def _looks_like_rows(cell: str | None) -> bool:
    return bool(re.search(r"\n([^\n]*,){2}", cell or ""))


def _records(text: str) -> tuple[list[list[str | None]], bool]:
    """Records with their cells; the last cell is None if its quote is never closed."""
    records: list[list[str | None]] = []
    cells: list[str | None] = []
    at, is_odd = 0, bool(re.search(r'\r"|\0', text))
    while at <= len(text):
        is_quoted = text[at : at + 1] == '"'
        cell, at = _quoted(text, at) if is_quoted else _bare(text, at)
        cells.append(cell)
        if text[at : at + 1] == ",":
            at += 1
            continue
        end = re.compile(r"\r?\n|\r?\Z").match(text, at)
        if end is None:
            return records, True
        if cells[1:] or cell is None or cell.strip("\r") or is_quoted:
            is_left = is_quoted and not end[0].startswith("\r")
            records.append([*cells[:-1], cell.removesuffix("\r") if cell and is_left else cell])
        cells, at = [], end.end() if end[0] else len(text) + 1
    return records, is_odd


def _quoted(text: str, at: int) -> tuple[str | None, int]:
    found = re.compile(r'"((?:[^"]|"")*)("?)').match(text, at)
    assert found is not None
    return (found[1].replace('""', '"') if found[2] else None), found.end()


def _bare(text: str, at: int) -> tuple[str, int]:
    found = re.compile(r"[^,\n]*?(?=,|\r?\n|\r?\Z)").match(text, at)
    assert found is not None
    return found[0], found.end()
