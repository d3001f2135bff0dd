"""Files as suppliers break them: each is bad in one way, and knows the keys that it names.

A file holds four rows of `k STRING, n INT, d DATE, t STRING`, whose keys occur nowhere else.
"""

import datetime as dt
import gzip
import io
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

SCHEMA = "k STRING, n INT, d DATE, t STRING"
Row = dict[str, Any]
NO_INTEGERS = ("x", "1.5", "99999999999", "0x1F", "1,000", "NaN", "true", "--1", "1-", "٣x")
NO_DATES = (
    "2024-02-30",
    "31/01/2024",
    "20240101",
    "yesterday",
    "2024-13-01",
    "99999-01-01",
    "0000-01-01",
)
NO_TEXTS = (b"\xff", b"\xc3", b"\xe9t\xe9", b"\xf0\x28\x8c\xbc", b"\xed\xa0\x80")
FOREIGN = (
    b"<html><body>504</body></html>\n",
    b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
    b"PK\x03\x04" * 40,
)


@dataclass(frozen=True)
class Mutant:
    """A file's name and its bytes."""

    name: str
    content: bytes


def rows(mark: str) -> list[Row]:
    """Four good rows."""
    days = (dt.date(2024, 1, n + 1).isoformat() for n in range(4))
    return [{"k": f"{mark}r{n}", "n": n, "d": day, "t": f"text {n}"} for n, day in enumerate(days)]


def with_last(mark: str, **values: Any) -> list[Row]:
    """Good rows, and a last one that has these values."""
    *good, last = rows(mark)
    return [*good, {**last, **values}]


def csv(found: list[Row], separator: str = ",") -> bytes:
    lines = [separator.join(found[0]), *(separator.join(map(_cell, r.values())) for r in found)]
    return "".join(f"{line}\n" for line in lines).encode()


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    return f'"{text}"' if "," in text else text


def lines(found: list[Row]) -> bytes:
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in found).encode()


def parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="snappy")
    return sink.getvalue()


def arrow(mark: str, **columns: pa.Array) -> pa.Table:
    """Good rows as Arrow, some columns replaced."""
    found = pa.Table.from_pylist(rows(mark))
    typed = {"n": found["n"].cast("int32"), "d": found["d"].cast("date32"), **columns}
    return pa.table({c: found[c] for c in found.column_names} | typed)


def replaced(content: bytes, old: bytes, new: bytes) -> bytes:
    assert old in content
    return content.replace(old, new, 1)


Made = Iterator[tuple[str, bytes]]


def _texts(mark: Callable[[], str], written: Callable[[list[Row]], bytes]) -> Made:
    """What befalls both text formats."""
    for value in NO_INTEGERS:
        yield "integer", written(with_last(mark(), n=value))
    for value in NO_DATES:
        yield "date", written(with_last(mark(), d=value))
    for value in NO_TEXTS:
        yield "encoding", replaced(written(with_last(mark(), t="here")), b"here", value)
    for encoding in ("latin-1", "cp1252"):
        yield encoding, written(with_last(mark(), t="prés")).decode().encode(encoding)
    yield "key", written(with_last(mark(), k=None))
    yield "huge", written(with_last(mark(), n="9" * 1_000_000))
    yield "huge text of another type", written(with_last(mark(), d="y" * 1_000_000))
    for cut in (1, 20, 40):
        yield "truncated.gz", gzip.compress(written(rows(mark())), mtime=0)[:-cut]
    yield "plain.gz", written(rows(mark()))


def _csv(mark: Callable[[], str]) -> Made:
    yield from _texts(mark, csv)
    yield "empty", b""  # not a bad one in JSON: no lines, no rows
    for separator in (";", "|", "\t", ":", " "):
        yield "delimiter", csv(rows(mark()), separator)
    for end in range(1, 9):
        yield "truncated", csv(rows(mark()))[: -(7 + 3 * end // 2)]
    for header in (
        b"k,n,d\n",
        b"k,n,d,t,t\n",
        b"k,n,d,u\n",
        b"K,N,D,T\n",
        b"",
        b"\n",
        b'"k,n,d,t\n',
    ):
        yield "header", replaced(csv(rows(mark())), b"k,n,d,t\n", header)
    yield "wide", csv(rows(mark())) + b"k,1,2024-01-01,a,b\n"
    yield "very wide", csv(rows(mark())) + b"k" + b",x" * 30_000 + b"\n"
    yield "narrow", csv(rows(mark())) + b"k,1\n"
    yield "quote", replaced(csv(rows(mark())), b"text 1", b'"text 1')
    yield "quote", replaced(csv(rows(mark())), b"2024-01-02", b'"2024-01-02')
    yield "compressed", gzip.compress(csv(rows(mark())), mtime=0)
    for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32"):
        yield encoding, csv(rows(mark())).decode().encode(encoding)
    yield "json", lines(rows(mark()))
    yield "parquet", parquet(arrow(mark()))
    for content in FOREIGN:
        yield "foreign", content


def _json(mark: Callable[[], str]) -> Made:
    yield from _texts(mark, lines)
    for end in range(2, 10):
        yield "truncated", lines(rows(mark()))[: -4 * end]
    texts = ("5", '"a"', "null", "true", "{", "}", "[1]", '{"k":', "{'k' 1}", '{"k":"a" "n":1}')
    for text in (*texts, '{"k":"a",,}', "// note", "k,n,d,t", '{"k":"a"}{"k":"b"}', '{"k":"a"} x'):
        yield "line", lines(rows(mark())) + text.encode() + b"\n"
    for value in ({"a": 1}, [1, 2], "one", 1.5, 2**40, True, 10**400):
        yield "integer", lines(with_last(mark(), n=value))
    for value in ([], {"y": 2024}, 1.5, "1"):
        yield "date", lines(with_last(mark(), d=value))
    yield "no key", lines([*rows(mark()), {"n": 1}])
    yield "deep", lines(rows(mark())) + b'{"k":"deep","n":' + b"[" * 3000 + b"]" * 3000 + b"}\n"
    yield "digits", lines(rows(mark())) + b'{"k":"digits","n":' + b"1" * 3000 + b"}\n"
    yield "name", lines(rows(mark())) + b'{"' + b"n" * 100_000 + b'":1}\n'
    for encoding in ("utf-16", "utf-16-le", "utf-32"):
        yield encoding, lines(rows(mark())).decode().encode(encoding)
    yield "compressed", gzip.compress(lines(rows(mark())), mtime=0)
    yield "csv", csv(rows(mark()))
    yield "parquet", parquet(arrow(mark()))
    for content in FOREIGN:
        yield "foreign", content


def _parquet(mark: Callable[[], str]) -> Made:
    for part in range(1, 16):
        content = parquet(arrow(mark()))
        yield "truncated", content[: len(content) * part // 16]
    for place in range(12):
        content = bytearray(parquet(arrow(mark())))
        content[-9 - place] ^= 0xFF  # the end of the footer
        yield "footer", bytes(content[:-8]) + b"\xff\xff\xff\x7fPAR1"
    for end in (b"PAR2", b"PARE", b"", b"\0" * 4):
        yield "magic", parquet(arrow(mark()))[:-4] + end
    kinds = ("string", "bool", "date32", "binary", "list", "struct")
    for kind in kinds:
        yield "retyped", parquet(arrow(mark(), n=_other(kind)))
    for kind in ("int64", "bool", "float64"):
        yield "retyped", parquet(arrow(mark(), t=_other(kind), d=_other(kind)))
    for missing in ("k", "n", "d", "t"):
        yield "removed", parquet(arrow(mark()).drop_columns([missing]))
    yield "alike", parquet(arrow(mark(), N=_other("int64")))
    big, fractions = pa.array([1, 2**40, 3, 4]), pa.array([1.0, 2.5, float("nan"), 4])
    for numbers in (big, fractions, pa.array([1, 2**63, 3, 4], pa.uint64())):
        yield "integer", parquet(arrow(mark(), n=numbers))
    hours = pa.array([dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)] * 4)
    yield "date", parquet(arrow(mark(), d=hours))
    yield "encoding", parquet(arrow(mark(), t=pa.array([b"a", b"\xff", b"c", b"d"])))
    yield "key", parquet(arrow(mark(), k=pa.array([None, "b", "c", "d"])))
    yield "no type", parquet(arrow(mark(), n=pa.array([dt.time(1)] * 4)))
    yield "csv", csv(rows(mark()))
    yield "compressed", gzip.compress(parquet(arrow(mark())), mtime=0)
    yield "empty", b""
    for content in FOREIGN:
        yield "foreign", content


def _other(kind: str) -> pa.Array:
    values: Mapping[str, pa.Array] = {
        "string": pa.array(["a", "1", "2", "3"]),
        "bool": pa.array([True] * 4),
        "date32": pa.array([dt.date(2024, 1, 1)] * 4),
        "binary": pa.array([b"1"] * 4),
        "list": pa.array([[1]] * 4),
        "struct": pa.array([{"a": 1}] * 4),
        "int64": pa.array([1] * 4),
        "float64": pa.array([1.5] * 4),
    }
    return values[kind]


MAKERS = {"csv": _csv, "json": _json, "parquet": _parquet}


def mutants(format_: str) -> list[Mutant]:
    """Every bad file of that format, its rows marked with its number."""
    marks: list[str] = []

    def mark() -> str:
        marks.append(f"{format_[0]}{len(marks):03d}")
        return marks[-1]

    found = []
    for nth, (name, content) in enumerate(MAKERS[format_](mark)):
        stem, _, suffix = name.partition(".")
        ending = f"{format_}.{suffix}" if suffix else format_
        found.append(Mutant(f"{nth:03d}_{stem.replace(' ', '_')}.{ending}", content))
    return found
