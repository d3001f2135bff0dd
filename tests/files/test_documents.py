"""Lines of JSON and files of CSV arrive as strict readers read them, or go to quarantine."""

from collections import Counter, defaultdict
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.files import documents
from tests.files.chance import read_here, seeds
from tests.files.documents import (
    CSV_SCHEMA,
    JSON_SCHEMA,
    Table,
    as_read,
    is_written,
    of_line,
    of_table,
)
from tests.files.files import Files

LINES, TABLES, HERE_LINES, HERE_TABLES, LOST = 4_000, 150, 200, 100, "no row"


def test_lines_of_json_by_chance(files: Files) -> None:
    for seed in seeds():
        made = documents.lines(Random(seed), LINES)
        assert lines_read_otherwise(files, made) == [], f"seed {seed}"


@pytest.mark.usefixtures("real_spark")
def test_files_of_csv_by_chance(files: Files) -> None:
    for seed in seeds():
        made = documents.tables(Random(seed), TABLES)
        assert tables_read_otherwise(files, made) == [], f"seed {seed}"


def test_lines_of_json_by_chance_without_spark(tmp_path: Path) -> None:
    for seed in seeds():
        made = documents.lines(Random(seed), HERE_LINES)
        told = read_here(tmp_path, made, lines_read_otherwise)
        assert told.wrong == [], f"seed {seed}"
        assert told.read > 0.1 * len(made)


def test_files_of_csv_by_chance_without_spark(tmp_path: Path) -> None:
    for seed in seeds():
        made = documents.tables(Random(seed), HERE_TABLES)
        told = read_here(tmp_path, made, tables_read_otherwise)
        assert told.wrong == [], f"seed {seed}"
        assert told.read


def lines_read_otherwise(files: Files, made: list[str]) -> list[Any]:
    """The first line that was read otherwise than the strict reader reads it, with both."""
    files.put(a_json="".join(f"{line}\n" for line in made))
    found = files.read("json", JSON_SCHEMA).rows.orderBy("_sluice_row").toArrow().to_pylist()
    read = iter([*(_row(row) for row in found), *([LOST] * len(made))])
    for line in made:
        wanted = of_line(line)
        got = [next(read) for _ in wanted]
        if repr(got) != repr([as_read(row) if row else None for row in wanted]):
            return [line, got, wanted]
    return []


def _row(row: dict[str, Any]) -> dict[str, Any] | None:
    own = {name: value for name, value in row.items() if not name.startswith("_sluice_")}
    return None if row["_sluice_reason"] else as_read(own)


def tables_read_otherwise(files: Files, made: list[str]) -> list[Any]:
    """Files that were read otherwise than the strict reader reads them, ten at most."""
    for old in files.folder.iterdir():
        old.unlink()
    for nth, text in enumerate(made):
        (files.folder / f"{nth}.csv").write_text(text, newline="")
    found = files.read("csv", CSV_SCHEMA).rows.orderBy("_sluice_row").toArrow().to_pylist()
    rows: dict[str, list[Any]] = defaultdict(list)
    others: Counter[str] = Counter()
    for row in found:
        if row["_sluice_reason"]:
            others[row["_sluice_file"]] += 1
        else:
            rows[row["_sluice_file"]].append((row["i"], row["t"], row["u"]))
    names = [str(files.folder / f"{nth}.csv") for nth in range(len(made))]
    read = [(text, Table(rows[name], others[name])) for name, text in zip(names, made, strict=True)]
    wanted = [(text, of_table(text)) for text in made]
    pairs = zip(read, wanted, strict=True)
    altered = [
        (text, row) for text, found in read for row in found.rows if not is_written(text, row)
    ]
    return [*altered, *((a, b[1]) for a, b in pairs if not b[1].is_odd and a != b)][:10]
