"""The quality report: a few HTML files that need nothing but a browser.

There is one overview and one page per table. `render` is pure. `write` replaces the overview last,
so a reader never meets a dead link.

Geometry of the report's small pictures; the templates only draw it.

A strip is one cell per check; both height and colour show the state. Bars are rows per interval,
accepted below and quarantined on top, where even a single quarantined row is visible. A curve shows
the numbers that one expectation observed.
"""

import datetime as dt
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from sluice.delta.intervals import NO_INTERVAL
from sluice.gate.anomalies import LEAST_HISTORY
from sluice.gate.counts import KeptCounts
from sluice.language.names import INTERVAL, QUALITY, Row
from sluice.pages import (
    Box,
    Card,
    Cards,
    Chapter,
    Content,
    Details,
    Entry,
    Listing,
    Page,
    Picture,
    Properties,
    Text,
    cell,
    data,
    html,
    moment,
    pluralize,
    tile,
)
from sluice.report import INDEX
from sluice.report.health import FAILED, WHOLE, chapter, columns, failure, replace_page
from sluice.report.summary import (
    Check,
    ExpectationSummary,
    State,
    TableRecord,
    TableSummary,
    summary,
)

COUNTS = ("read", "accepted", "quarantined")
CELL, GAP, STRIP_HEIGHT = 7, 2, 22
BAR_HEIGHT, LEAST_SEEN, MARK = 84, 2.5, 6
CELL_HEIGHTS = {
    State.PASSED: 10,
    State.QUARANTINED: 16,
    State.WARNED: 16,
    State.STOPPED: STRIP_HEIGHT,
}


def strip(checks: Sequence[Check], shown: int, label: str = "") -> Picture:
    """Return the last `shown` checks, oldest first, the newest at the right edge."""
    last = checks[-shown:]
    first = shown - len(last)
    boxes = []
    for nth, check in enumerate(last, first):
        height = CELL_HEIGHTS[check.state]
        boxes.append(_box(nth * (CELL + GAP), STRIP_HEIGHT - height, CELL, height, check))
    return Picture(label, shown * (CELL + GAP) - GAP, STRIP_HEIGHT, boxes)


def _box(x: float, y: float, width: float, height: float, check: Check) -> Box:
    return Box(x, y, width, height, check.state.look, f"{check.when}: {check.observed}")


def bars(
    intervals: Sequence[Row],
    width: float = 720,
    height: float = BAR_HEIGHT,
    label: str = "",
    below: Sequence[str] = (),
) -> Picture:
    """Return the rows per interval as bars, scaled to the largest."""
    most = max((i["rows_read"] for i in intervals), default=0) or 1
    step = min(width / max(len(intervals), 1), 44)
    boxes = [
        box
        for nth, interval in enumerate(intervals)
        for box in _bar(nth * step, step * 0.78, interval, height / most, height)
    ]
    return Picture(label, round(step * len(intervals), 1), height, boxes, below=below)


def _bar(x: float, width: float, interval: Row, scale: float, height: float) -> list[Box]:
    read, accepted, apart = (interval[f"rows_{name}"] for name in COUNTS)
    bad = min(max(apart * scale, LEAST_SEEN), height) if apart else 0.0
    good = min(accepted * scale, height - bad)
    when = moment(interval["interval_start"])
    title = f"{when}: {read:,} read, {accepted:,} accepted, {apart:,} quarantined"
    parts = [(height - good, good, "bar"), (height - good - bad, bad, "quarantined")]
    left, wide = round(x, 1), round(width, 1)
    return [Box(left, round(y, 1), wide, round(h, 1), look, title) for y, h, look in parts if h > 0]


def curve(of: ExpectationSummary, height: float = 46) -> Picture:
    """Return the curve of observed numbers, each below its cell of the strip, in full height.

    A check without a number interrupts it. The newest check is a square, and so is each that needs
    attention.
    """
    numbers = [check.number for check in of.checks if check.number is not None]
    low, high = min(numbers, default=0.0), max(numbers, default=0.0)
    step, scale = CELL + GAP, (height - 2 * MARK) / ((high - low) or 1)
    path, marks, before = "", [], False
    for nth, check in enumerate(of.checks):
        if check.number is not None:
            x, y = nth * step + CELL / 2, round(height - MARK - (check.number - low) * scale, 1)
            path += f"{'L' if before else 'M'}{x} {y}"
            if check.state is not State.PASSED or check is of.latest:
                marks.append(_box(x - MARK / 2, y - MARK / 2, MARK, MARK, check))
        before = check.number is not None
    ends = f"{figure(low)} to {figure(high)} {of.unit}"
    width = len(of.checks) * step - GAP
    return Picture(f"observed: {of.says}", width, height, marks, path, below=[ends])


def figure(number: float) -> str:
    """Return a number for the end of a scale: short, and exact if it is small."""
    return f"{number:,.0f}" if abs(number) >= 1000 or number == int(number) else f"{number:.3g}"


FOLDER = f"{QUALITY}/report"
GAPS = Text("Incomplete deliveries", "warned")
UNUSUAL_SHOWN = 10
TEXT_SHOWN = 400  # characters of an unusable row
WRITTEN = (
    "Written {} UTC by Sluice. Intervals and times are UTC; expectations have Great Expectations'"
    " names and meaning."
)
COLORS = [
    Text("met", "key passed"),
    Text("rows quarantined", "key quarantined"),
    Text("warned", "key warned"),
    Text("stopped: nothing was committed", "key stopped"),
]
COLUMNS = (
    ("Table", ""),
    ("State", ""),
    ("Batches, newest at the right", "wide"),
    ("Rows by interval", ""),
    ("Updated", "small soft nowrap"),
)
UNEXPECTING: Content = [
    "Nothing is expected of this table. Add ",
    Text("expect:", "mono"),
    " to it to have its batches checked.",
]


def render(lake: str, tables: Sequence[TableRecord], now: dt.datetime) -> dict[str, str]:
    """Return file names and their HTML: the overview, and one page per table."""
    summaries, foot = [summary(record) for record in tables], WRITTEN.format(moment(now))
    pages = {page_name(one): html(table_page(one, foot)) for one in summaries}
    return pages | {INDEX: html(overview(lake, summaries, foot))}


def write(folder: Path, pages: Mapping[str, str]) -> Path:
    """Write the pages as files of `folder`, and return the overview's path."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in sorted(pages, key=lambda name: name == INDEX):
        replace_page(folder / name, pages[name])
    return folder / INDEX


def page_name(table: TableSummary) -> str:
    """Return the file of a table's page."""
    return re.sub(r"[^a-z0-9_.]", "-", table.record.table.id.lower()) + ".html"


def overview(lake: str, tables: Sequence[TableSummary], foot: str) -> Page:
    """Return the first page: what is wrong, then every table."""
    kept = [(t, t.record.status.failure) for t in tables]
    unmet = [
        Entry(e.says, _link(t), f"{e.latest.observed} · {e.latest.when}", e.latest.state.chip)
        for t in tables
        for e in t.failing
    ]
    by_pipeline: dict[str, list[Sequence[Content]]] = {}
    for one in tables:
        by_pipeline.setdefault(one.record.table.pipeline, []).append(_row(one))
    listed = [
        Chapter(name, [Listing(COLUMNS, rows, "stacked")])
        for name, rows in sorted(by_pipeline.items())
    ]
    return Page(
        f"Data quality of {lake}",
        "Data quality",
        [Text(lake, "line soft mono"), Cards(_tiles(tables))],
        [
            chapter(FAILED, (failure(failed, lead=_link(t)) for t, failed in kept if failed)),
            chapter(GAPS, (Entry(gap, _link(t)) for t in tables for gap in t.gaps)),
            chapter("Not met", unmet),
            chapter(WHOLE.capitalize(), (Entry(t.whole, _link(t)) for t in tables if t.whole)),
            listed or Text("No table has been checked yet.", "line soft"),
            COLORS,
        ],
        foot,
    )


def _tiles(tables: Sequence[TableSummary]) -> list[Card]:
    checked = [t for t in tables if t.expectations]
    expected, unmet = sum(len(t.expectations) for t in checked), sum(t.unmet for t in checked)
    read, bad = sum(t.read for t in tables), sum(t.quarantined for t in tables)
    share = f", {100 * bad / read:.3g}\N{NO-BREAK SPACE}% of those read" if read else ""
    stopped = sum(t.state is State.STOPPED for t in tables)
    return [
        tile(expected - unmet, "expectations met, newest batches", expected),
        tile(stopped, "tables stopped at their newest batch"),
        tile(bad, f"rows in quarantine{share}"),
        tile(sum(t.is_unusual for t in tables), "tables with an unusual newest batch"),
        tile(len(checked), "tables have expectations", len(tables)),
    ]


def _link(table: TableSummary) -> Content:
    of = table.record.table
    return [Text(of.name, "name", page_name(table)), Text(f" {of.pipeline}", "soft small")]


def _row(table: TableSummary) -> list[Content]:
    of, shown = table.record.table, table.intervals[-30:]
    version = table.record.status.version
    bad = Text(f"{table.quarantined:,} quarantined", "small soft")
    return [
        [Text(of.name, "name", page_name(table)), Text(f" {_kind(table)}", "soft small")],
        _chips(table),
        strip(table.batches, 30, f"states of the last batches of {of.id}") if table.batches else "",
        [
            bars(shown, 150, 26, f"rows of the last intervals of {of.id}") if shown else "",
            bad if table.quarantined else "",
        ],
        [_last_update(table), "" if version is None else Text(f" version {version}", "line")],
    ]


def _kind(table: TableSummary) -> str:
    return table.record.table.declared_kind.replace("_", " ")


def _last_update(table: TableSummary) -> str:
    last = table.record.status.last
    return moment(last.at) if last else "never"


def _chips(table: TableSummary) -> Content:
    state = table.state.chip if table.state else Text("no expectations", "chip none")
    is_blocked = bool(table.record.status.blocked_by) and table.state is not State.STOPPED
    marks = {
        "blocked": is_blocked,
        "incomplete": bool(table.gaps),
        "unusual batch": table.is_unusual,
    }
    chips = (Text(mark, "chip warned") for mark, has_it in marks.items() if has_it)
    return [state, *(part for chip in chips for part in (" ", chip))]


def table_page(table: TableSummary, foot: str) -> Page:
    """Return the page of one table."""
    record, of = table.record, table.record.table
    failed = record.status.failure
    return Page(
        f"{of.id}: data quality",
        [of.name, " ", _chips(table)],
        [Text(of.description, "line soft"), Properties(_properties(table))],
        [
            chapter(FAILED, [failure(failed)] if failed else []),
            chapter(GAPS, table.gaps),
            chapter(WHOLE.capitalize(), [table.whole] if table.whole else []),
            _unusual(record.batches),
            _intervals(table),
            _expectations(table),
            COLORS,
            _quarantine(table),
            columns(record.columns) if record.columns else "",
        ],
        foot,
        [Text("Data quality", href=INDEX), f" / {of.pipeline}"],
    )


def _properties(table: TableSummary) -> list[tuple[str, Content]]:
    stands, expected = table.record.status, len(table.expectations)
    behind = f"behind {', '.join(lag.input for lag in stands.lag)}" if stands.lag else ""
    return [
        ("Kind", _kind(table)),
        ("Rows", stands.rows),
        ("Version", stands.version),
        ("Updated", _last_update(table)),
        ("Inputs", behind or ("files" if table.record.table.is_delivered else "all read")),
        ("Expectations met", f"{expected - table.unmet} of {expected}"),
    ]


def _unusual(batches: Sequence[KeptCounts]) -> Content:
    newest = sorted(batches, key=lambda kept: kept.moment, reverse=True)
    found = [
        Entry(what.partition(": ")[2] or what, Text(moment(kept.moment), "warned"))
        for kept in newest
        for what in kept.unusual
    ]
    if found or not batches:
        return chapter("Unusual batches", found[:UNUSUAL_SHOWN])
    said = f"Nothing unusual in rows, nulls and keys among the last {len(batches)} batches."
    if len(batches) < LEAST_HISTORY:
        least = f"{len(batches)} of at least {LEAST_HISTORY}"
        said = f"Too few batches to say what is unusual: {least}."
    return Text(said, "line soft small")


def _intervals(table: TableSummary) -> Content:
    read, bad, shown = table.read, table.quarantined, table.intervals
    counts = f"{read - bad:,} accepted + {bad:,} quarantined"
    if not shown:
        return Text(f"Last load: {read:,} rows read = {counts}.", "line soft small") if read else ""
    first, last = (moment(row["interval_start"]) for row in (shown[0], shown[-1]))
    most = f"most: {max(row['rows_read'] for row in shown):,} rows"
    label = "rows read by interval, quarantined on top"
    total = f"read {read:,} = {counts}, {pluralize(len(table.record.intervals), 'interval')}"
    keys = [Text("accepted", "key bar"), Text("quarantined", "key quarantined")]
    drawn = bars(shown, 1100, 120, label, (first, most, last))
    entry = Entry("", parts=[drawn, [*keys, Text(total, "soft small")]])
    return Chapter("Rows by interval", [Card([entry])])


def _expectations(table: TableSummary) -> Chapter:
    file = table.record.data_docs
    named = Text("Data Docs of Great Expectations", href=file)
    docs: Content = [named, " (styled only with internet access)"]
    entries = [_expectation(each) for each in table.expectations] or [Entry(UNEXPECTING)]
    return Chapter("Expectations", [Text(docs if file else "", "line soft small"), Card(entries)])


def _expectation(found: ExpectationSummary) -> Entry:
    latest, names = found.latest, found.sample_columns
    past = strip(found.checks, len(found.checks), f"history of: {found.says}")
    parts: list[Content] = [past, curve(found) if found.varies else ""]
    if found.sample:
        sample = data(
            [dict.fromkeys(names) | {**row} for row in found.sample], names, found.suspects
        )
        is_open = latest.state is not State.PASSED
        parts.append(Details(f"rows that failed it on {found.sample_when}", sample, is_open))
    label = Text(found.label if found.label != found.says else "", "line")
    detail: Content = [label, f"{latest.observed} · {latest.when}"]
    tag = Text(f"on failure: {found.on_failure}", "soft small")
    return Entry(Text(found.says, "name"), "", detail, [tag, latest.state.chip], parts)


def _quarantine(table: TableSummary) -> Content:
    rows = table.record.quarantine
    count = max(table.record.status.quarantined, table.quarantined, len(rows))
    few = f"{len(rows)} of {count:,}, a few of each reason"
    fix = Text(f"sluice replay {table.record.table.name}", "mono")
    said = Text([f"{few}, newest first. After a fix: ", fix], "line soft small")
    found = list(reasons(rows, of_intervals=not table.record.table.is_loaded))
    return Chapter("Rows in quarantine", [said, Card(found)]) if rows else ""


def reasons(quarantine: Sequence[Row], *, of_intervals: bool = True) -> Iterator[Entry]:
    """Yield the rows in quarantine by reason, in their order."""
    by_reason: dict[str, list[Row]] = {}
    for row in quarantine:
        by_reason.setdefault(row["reason"] or "", []).append(row)
    for reason, rows in by_reason.items():
        many = Text(pluralize(len(rows), "row"), "soft small") if len(rows) > 1 else ""
        yield Entry(reason, marks=many, parts=[_unusable(rows, of_intervals=of_intervals)])


def _unusable(rows: Sequence[Row], *, of_intervals: bool) -> Listing:
    """Return rows with their fields if they parsed, else with their texts."""
    parsed = [_fields(row) for row in rows]
    names = list(dict.fromkeys(name for fields in parsed for name in fields))
    texts = [("Text", "mono text")] if not all(parsed) else []
    ends = [(name, "soft small nowrap") for name in ("Interval", "File")[not of_intervals :]]
    shown: list[list[Content]] = []
    for row, fields in zip(rows, parsed, strict=True):
        raw = row["raw"] or ""
        short = raw if len(raw) <= TEXT_SHOWN else f"{raw[: TEXT_SHOWN - 1]}…"
        text = "" if fields else short
        when = [moment(row[INTERVAL]) if row[INTERVAL] != NO_INTERVAL else ""]
        file = str(row["file"] or "").rpartition("/")[2]
        values = [cell(fields[name]) if name in fields else "" for name in names]
        shown.append([*values, *([text] if texts else []), *when[not of_intervals :], file])
    return Listing([*((name, "mono") for name in names), *texts, *ends], shown)


def _fields(row: Row) -> Row:
    try:
        fields = json.loads(row["raw"] or "")
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}
