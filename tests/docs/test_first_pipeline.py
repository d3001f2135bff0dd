"""The page of the first pipeline is followed by the letter, in an empty folder."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "first_pipeline.md"
BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def steps() -> Iterator[tuple[str, str]]:
    """Commands, and what the last of them prints, if the page shows it."""
    blocks = [*BLOCK.findall(PAGE.read_text("utf-8")), ("sh", "")]
    for (kind, text), (next_kind, shown) in pairwise(blocks):
        if kind == "sh":
            yield text, shown if next_kind == "text" else ""


def test_what_the_page_shows_is_what_its_commands_print(tmp_path: Path, remote: str) -> None:
    folder = tmp_path / "shop"  # the page's first commands make it
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "SPARK_REMOTE": remote, "COLUMNS": "120"}
    for commands, shown in steps():
        done = subprocess.run(
            ["bash", "-euc", commands],
            cwd=folder if folder.exists() else tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.endswith(shown), done.stdout
