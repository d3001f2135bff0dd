"""A lake with rows of people who are to be forgotten, and a search for them by brute force."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pyarrow.parquet as pq
from tests.cli.trips import Project

from sluice.read.lake import open_lake
from sluice.terminal.output import to_json

ANNA, BOB, EVE = "Anna Kowalska", "Bob Marley", "Eve O'Neil"
PEOPLE = {471004711: ANNA, 471004712: BOB, 471004713: EVE}


def rows(project: Project, *tables: str) -> dict[str, list[str]]:
    lake = open_lake(project.folder / "config")
    return {t: sorted(map(to_json, lake.table(t).read())) for t in tables}


def places(project: Project, name: str) -> Iterator[str]:
    """Files of the lake that hold a word, by brute force: their bytes and all their values."""
    word = re.compile(re.escape(name), re.IGNORECASE)
    for path in (project.folder / "lake").rglob("*"):
        if path.is_file():
            text = path.read_bytes().decode(errors="replace")
            if path.suffix == ".parquet":
                text += json.dumps(pq.ParquetFile(path).read().to_pylist(), default=str)
            if word.search(text):
                yield str(path.relative_to(project.folder))


def forgotten(project: Project, *arguments: str, code: int = 0) -> dict[str, Any]:
    """The receipt of a command that ends with this code: 1 if another source has the subject."""
    done = project.sluice("forget", *arguments, "--json")
    assert done.code == code, done.err + done.out
    return json.loads(done.out)
