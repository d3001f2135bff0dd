"""Page of a preview, in the quality report's style: counts of each table, and some changed rows."""

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sluice.gate.pages.report import environment, replace_file


def write_preview(path: Path, lake: str, results: Sequence[Any], now: dt.datetime) -> None:
    """Write the page of these results, which have the fields of a previewed table."""
    template = environment(now).get_template("preview.html.j2")
    replace_file(path, template.render(lake=lake, tables=results))
