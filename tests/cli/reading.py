"""Commands that read a small lake, in this process."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from sluice.cli.main import main


def asking(folder: Path) -> Callable[..., Result]:
    """Return what runs a command on the project in a folder."""
    return lambda *args: CliRunner().invoke(main, [*args, "--config", str(folder / "config")])


def rows(result: Result) -> list[dict[str, Any]]:
    """Return the lines of JSON that a command has written."""
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]
