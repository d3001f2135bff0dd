"""Two hundred broken files: each is refused by name or has quarantined rows; no key is lost."""

import json
import re
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from tests.files.mutants import SCHEMA, Mutant, mutants
from tests.support.landed import Landed, NewLanded, folder_of

from sluice.errors import QualityStop

KEY = re.compile(r"[cjp]\d{3}r\d")
FORMATS = ("csv", "json", "parquet")


class Delivered:
    """A folder of broken files, delivered until nothing is refused any more.

    What is refused must name a file, which is then taken away, as the message asks.
    """

    def __init__(self, lake: Landed, files: list[Mutant]) -> None:
        self.lake = lake
        self.folder = lake.landing / folder_of(0)
        self.folder.mkdir(parents=True)
        for file in files:
            (self.folder / file.name).write_bytes(file.content)
        self.refused: dict[str, str] = {}
        while (told := self._refusal()) is not None:
            (name,) = (f.name for f in files if f"/{f.name}" in told)
            self.refused[name] = told
            (self.folder / name).unlink()
        aside = lake.quarantine()
        self.aside = Counter(Path(row["file"]).name for row in aside)
        assert all(row["reason"] for row in aside)
        self.texts = "\n".join(row["raw"] or "" for row in aside)
        self.keys = {row["k"] for row in lake.rows("events")}

    def _refusal(self) -> str | None:
        try:
            self.lake.deliver()
        except QualityStop as stop:
            return stop.message
        return None


def declared(format_: str) -> str:
    path = "landing/{interval_start:%Y-%m-%d}/"
    return (
        f"sources:\n  events: {{path: '{path}', format: {format_}, schema: '{SCHEMA}', key: [k]}}\n"
    )


def test_there_are_two_hundred() -> None:
    assert sum(len(mutants(format_)) for format_ in FORMATS) >= 200


@pytest.mark.usefixtures("real_spark")
@pytest.mark.parametrize("format_", FORMATS)
def test_every_broken_file_is_refused_or_has_quarantined_rows_and_no_key_is_lost(
    new_landed: NewLanded, format_: str
) -> None:
    files = mutants(format_)
    done = Delivered(new_landed(declared(format_)), files)
    unnoticed = [f.name for f in files if f.name not in done.refused and not done.aside[f.name]]
    assert unnoticed == []
    (noted,) = done.lake.noted().values()
    assert noted[0] == noted[1] + noted[2]
    assert noted[2] == sum(done.aside.values())
    for file in files:
        named = set(KEY.findall(file.content.decode("latin-1")))
        whole = file.name in done.refused or (done.aside[file.name] == 1 and not named & done.keys)
        lost = {key for key in named - done.keys if key not in done.texts}
        assert whole or not lost, f"{file.name} lost {lost}"


@pytest.mark.parametrize("format_", FORMATS)
def test_repeated_dimension_keys_are_quarantined(new_landed: NewLanded, format_: str) -> None:
    declared = (
        f"things: {{path: landing/in/, format: {format_}, schema: 'k STRING, n INT', key: [k]}}"
    )
    lake = new_landed(f"dimensions:\n  {declared}\n")
    rows = [{"k": "a", "n": 1}, {"k": "a", "n": 2}, {"k": "b", "n": 3}]
    text = {
        "csv": "k,n\n" + "".join(f"{r['k']},{r['n']}\n" for r in rows),
        "json": "".join(f"{json.dumps(r)}\n" for r in rows),
    }
    lake.land("in", **{f"a_{format_}": text.get(format_, pa.Table.from_pylist(rows))})
    lake.load()
    (twice,) = lake.quarantine("things")
    assert (twice["reason"], json.loads(twice["raw"])["n"]) == (
        "another row has the same key (k)",
        2,
    )
