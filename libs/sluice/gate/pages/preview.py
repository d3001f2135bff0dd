"""Page of changes that were not committed, in the quality report's style: counts and rows."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Heading:
    """Top of the page; `counts`: fields of each result that its table shows."""

    title: str
    lake: str
    note: str
    counts: Sequence[str]


def write_preview(path: Path, heading: Heading, results: Sequence[Any], now: dt.datetime) -> None:
    """Write the page of results, which have `table`, `outcome`, `error`, `samples` and counts."""
    from sluice.gate.pages.checks import moment_text
    from sluice.gate.pages.report import environment, replace_file  # jinja, which few commands use

    template = environment().get_template("preview.html.j2")
    replace_file(path, template.render(heading=heading, tables=results, now=moment_text(now)))
