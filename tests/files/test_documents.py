"""Lines of JSON and files of CSV arrive as strict readers read them, or go to quarantine."""

import os
import time
from collections import Counter, defaultdict
from random import Random, SystemRandom
from typing import Any

from tests.files import documents
from tests.files.documents import CSV_SCHEMA, JSON_SCHEMA, Table, as_read, of_line, of_table
from tests.files.files import Files

SEED, LINES, TABLES, LOST = 25, 4_000, 150, "no row"
SECONDS = float(os.environ.get("SLUICE_VALUES_SECONDS", "240"))


def test_lines_of_json_by_chance(files: Files) -> None:
    for seed in seeds():
        assert lines_read_otherwise(files, seed, LINES) == [], f"seed {seed}"


def test_files_of_csv_by_chance(files: Files) -> None:
    for seed in seeds():
        assert tables_read_otherwise(files, seed, TABLES) == [], f"seed {seed}"


def seeds() -> Any:
    """One seed; with `HYPOTHESIS_PROFILE=deep`, others for so many seconds."""
    if os.environ.get("HYPOTHESIS_PROFILE") != "deep":
        yield SEED
        return
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        yield SystemRandom().randrange(10**9)


def lines_read_otherwise(files: Files, seed: int, count: int) -> list[Any]:
    """The first line that was read otherwise than the strict reader reads it, with both."""
    made = documents.lines(Random(seed), count)
    files.put(a_json="".join(f"{line}\n" for line in made))
    found = files.read("json", JSON_SCHEMA).rows.orderBy("_sluice_row").toArrow().to_pylist()
    read = iter([*(_row(row) for row in found), *([LOST] * count)])
    for line in made:
        wanted = of_line(line)
        got = [next(read) for _ in wanted]
        if repr(got) != repr([as_read(row) if row else None for row in wanted]):
            return [line, got, wanted]
    return []


def _row(row: dict[str, Any]) -> dict[str, Any] | None:
    own = {name: value for name, value in row.items() if not name.startswith("_sluice_")}
    return None if row["_sluice_reason"] else as_read(own)


def tables_read_otherwise(files: Files, seed: int, count: int) -> list[Any]:
    """Files that were read otherwise than the strict reader reads them, ten at most."""
    made = documents.tables(Random(seed), count)
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
    names = [str(files.folder / f"{nth}.csv") for nth in range(count)]
    read = [(text, Table(rows[name], others[name])) for name, text in zip(names, made, strict=True)]
    wanted = [(text, of_table(text)) for text in made]
    pairs = zip(read, wanted, strict=True)
    return [(a, b[1]) for a, b in pairs if not b[1].is_odd and a != b][:10]
