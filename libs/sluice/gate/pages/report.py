"""The quality report: a few HTML files that need nothing but a browser.

There is one overview and one page per table. They are self-contained: no script, and no font,
picture or link from elsewhere, which a content security policy in each page enforces. `render` is
pure. `write` replaces each file atomically, the overview last, so a reader never meets half a page
or a dead link.
"""

import datetime as dt
import os
import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from tempfile import NamedTemporaryFile

from jinja2 import Environment, PackageLoader, StrictUndefined

from sluice.gate.pages.charts import bars, curve, strip
from sluice.gate.pages.checks import State, moment_text
from sluice.gate.pages.summary import TableRecord, TableSummary, summary
from sluice.language.internal import QUALITY

FOLDER = f"{QUALITY}/report"
INDEX = "index.html"


def render(lake: str, tables: Sequence[TableRecord], now: dt.datetime) -> dict[str, str]:
    """Return file names and their HTML: the overview, and one page per table."""
    summaries = [summary(record) for record in tables]
    overview, page = (
        environment().get_template(f"{name}.html.j2") for name in ("overview", "table")
    )
    shown = {"lake": lake, "now": moment_text(now)}
    pages = {page_name(s): page.render(shown, table=s) for s in summaries}
    by_pipeline = groupby(
        sorted(summaries, key=lambda s: s.record.pipeline), lambda s: s.record.pipeline
    )
    pipelines = [(name, list(members)) for name, members in by_pipeline]
    return pages | {INDEX: overview.render(shown, tables=summaries, pipelines=pipelines)}


def write(folder: Path, pages: Mapping[str, str]) -> Path:
    """Write the pages as files of `folder`, and return the overview's path."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in sorted(pages, key=lambda name: name == INDEX):
        replace_file(folder / name, pages[name])
    return folder / INDEX


def page_name(table: TableSummary) -> str:
    """Return the file of a table's page."""
    return re.sub(r"[^a-z0-9_.]", "-", table.name.lower()) + ".html"


def figure(number: float) -> str:
    """Return a number for the end of a scale: short, and exact if it is small."""
    return f"{number:,.0f}" if abs(number) >= 1000 or number == int(number) else f"{number:.3g}"


@cache
def environment() -> Environment:
    """Return what renders the templates of all pages, which it compiles once."""
    made = Environment(
        loader=PackageLoader("sluice.gate.pages", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {"State": State, "strip": strip, "bars": bars}
    made.globals |= {"page_name": page_name, "moment_text": moment_text, "curve": curve}
    made.filters["figure"] = figure
    made.filters["count"] = lambda number: "–" if number is None else f"{number:,}"
    return made


def replace_file(path: Path, html: str) -> None:
    """Put a page in place of an earlier one of that name."""
    path.parent.mkdir(exist_ok=True)
    with NamedTemporaryFile(
        "w",
        encoding="utf-8",
        errors="backslashreplace",  # half of a surrogate pair, which JSON may hold
        dir=path.parent,
        prefix=f".{path.name}.",
        delete=False,
    ) as draft:
        draft.write(html)
        draft.flush()
        os.fsync(draft.fileno())
    Path(draft.name).chmod(0o644)
    Path(draft.name).replace(path)
