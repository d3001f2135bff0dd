"""The page of failures is followed by the letter: its commands fail, and mend, as it says."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "when_something_fails.md"
BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$|^## ([^\n]*)$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"exit code (\d)")


@dataclass(frozen=True)
class Step:
    """Commands, lines of what they print, and the exit code of the last of them."""

    commands: str
    shown: tuple[str, ...]
    code: int


def steps() -> Iterator[Step]:
    code = 0
    found = [*BLOCK.findall(PAGE.read_text("utf-8")), ("", "", "")]
    for (kind, text, heading), (next_kind, lines, _) in pairwise(found):
        if heading:
            code = int(said[1]) if (said := CODE.search(heading)) else 0
        if kind == "sh":
            yield Step(text, tuple(lines.splitlines()) if next_kind == "text" else (), code)
            code = 0  # what follows a failure mends it


def test_every_failing_section_begins_with_the_failure() -> None:
    assert [step.code for step in steps() if step.code] == [2, 2, 2, 4, 5]


def test_the_commands_fail_and_mend_as_the_page_says(tmp_path: Path, remote: str) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "SPARK_REMOTE": remote, "COLUMNS": "200"}
    for step in steps():
        done = subprocess.run(
            ["bash", "-euc", step.commands],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        said = (done.stdout + done.stderr).replace(str(folder), "/shop")
        assert done.returncode == step.code, f"{step.commands}\n{said}"
        for line in step.shown:
            assert line in said, f"{step.commands}\n{said}"
