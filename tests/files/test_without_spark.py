"""Broken files are read without Spark as by Spark: the same rows, reasons and texts."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from tests.files import documents
from tests.files.chance import PARTS, seeds
from tests.files.documents import CSV_SCHEMA, JSON_SCHEMA
from tests.files.files import Files, source
from tests.files.mutants import SCHEMA, mutants

from sluice.delta.reading.landing import list_files
from sluice.engine.retries import naming_faults
from sluice.errors import QualityStop
from sluice.files.reading import read
from sluice.interpreter.errors import NotHere
from sluice.interpreter.session import Session, interpreting
from sluice.sources.spec import Source

if TYPE_CHECKING:
    pass

LEFT_TO_SPARK = {
    "very_wide.csv": "more than 20480 columns",
    "encoding.parquet": "bytes that are no UTF-8, as a text",
}
LINES, TABLES = 600, 200
ODD_LINES = (
    *("[1]", "[]", "[null]", '[{"i":1.5},{"i":2}]', '[{"t":"\\""},5, 1.5]', "NaN", "-0", "1.5"),
    *('[{"i":1,"i":2},null]', '{"a":""}', '{"a":[[1.5]]}', '{"m":[1.5]}', '{"s":"x\\u001f"}'),
    *('{"t":["\\u001f\\u007f\\/\\b",1.50,{"x":1,"x":2}]}', '{"m":{"k":1,"k":2}}', "\ufeff\ufeff{}"),
    *('{"a":1.50}', '{"s":[1,2.50]}', '{"m":true,"a":{"b":"\\""}}', '{"t":"\u2028\U0001f600"}'),
    *('{"i":1}\r{"i":2}\r\n{"i":3}', '{"i":1,}', "{'i':1}", '{"t":"a\tb"}', '{"t":"\x7f"}', "\0"),
    *('{"i":01}', '{"i":1.}', '{"i":-}', '{"i":+1}', '{"i":-Infinity}', '{"i":INF}', '{"é":1}'),
)


@pytest.mark.parametrize("format_", ["csv", "json", "parquet"])
def test_every_broken_file_is_read_alike(files: Files, format_: str) -> None:
    left, wrong = {}, []
    for mutant in mutants(format_):
        for old in files.folder.iterdir():
            old.unlink()
        (files.folder / mutant.name).write_bytes(mutant.content)
        try:
            here = _read_here(files.folder, format_, SCHEMA)
        except NotHere as reason:
            left[mutant.name.partition("_")[2]] = str(reason)
            continue
        sparks = _read(files, format_, SCHEMA)
        if here != sparks:
            wrong.append((mutant.name, here, sparks))
    assert wrong == []
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
    for seed in seeds():
        made = documents.tables(Random(seed), TABLES)
        _compare(files, "csv", CSV_SCHEMA, _encoded(made, seed), seed)


def test_files_of_csv_with_a_null_of_their_own_are_read_alike(files: Files) -> None:
    made = _encoded(documents.tables(Random(7), TABLES), 7)
    _compare(files, "csv", CSV_SCHEMA, made, 7, nullValue="a")


def test_documents_of_json_are_read_alike(files: Files) -> None:
    lines = documents.lines(Random(8), LINES)
    made = [f"[{a},\n {b}]\n" if n % 2 else f" {a}\n" for n, (a, b) in enumerate(pairwise(lines))]
    _compare(files, "json", JSON_SCHEMA, _encoded(made, 8), 8, multiLine="true")


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
    assert len(left) < (0.9 if options else 0.1) * len(made)  # broken ones are left with options
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
            read(session, spec, landed).rows.toArrow()  # type: ignore[arg-type]
            return
        except NotHere:
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
