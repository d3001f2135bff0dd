"""Page of changes that were not committed: counts and rows."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sluice.pages import Chapter, Listing, Page, Text, cell, moment
from sluice.report.health import replace_page


@dataclass(frozen=True)
class Heading:
    """Top of the page; `counts`: fields of each result that its table shows."""

    title: str
    lake: str
    note: str
    counts: Sequence[str]


def write_preview(path: Path, heading: Heading, results: Sequence[Any], now: dt.datetime) -> None:
    """Write the page of results, which have `table`, `outcome`, `error`, `samples` and counts."""
    from sluice.pages import html  # jinja, which few commands use

    counts = [(n.replace("_", " ").capitalize(), "number") for n in heading.counts]
    rows = [
        [one.table, [one.outcome, " ", Text(one.error, "line soft small")]]
        + [getattr(one, name) for name in heading.counts]
        for one in results
    ]
    page = Page(
        f"{heading.title} of {heading.lake}",
        heading.title,
        [Text(heading.lake, "line soft mono"), Text(heading.note, "line soft")],
        [
            Listing([("Table", "name"), ("Outcome", ""), *counts], rows, "stacked"),
            *(Chapter(one.table, [_list_changes(one.samples)]) for one in results if one.samples),
        ],
        f"Written {moment(now)} UTC by Sluice.",
    )
    replace_page(path, html(page))


def _list_changes(samples: Sequence[Any]) -> Listing:
    """Return changed rows, what is gone with − and what is new with +."""
    names = list(samples[0].after or samples[0].before)
    signed = [
        (sign, row) for s in samples for sign, row in (("−", s.before), ("+", s.after)) if row
    ]
    columns = [("", ""), *((name, "mono") for name in names)]
    return Listing(columns, [[sign, *(cell(row[n]) for n in names)] for sign, row in signed])
