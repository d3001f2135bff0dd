"""Progress of a run, and the summary at its end."""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from sluice.declare.project import Project
from sluice.declare.registry import kind
from sluice.declare.table import Table
from sluice.engine import BatchReport
from sluice.errors import UsageError
from sluice.language.interval import Interval, spans
from sluice.language.names import declared_id
from sluice.operate.preview import Preview, previewing
from sluice.terminal.output import Format, print_table, write_json, write_rows

if TYPE_CHECKING:
    from sluice.read.changelog import Sample
    from sluice.report.publish import Heading

COLUMNS = (
    *("table", "batches", "in", "inserted", "updated", "deleted"),
    *("quarantined", "expired", "seconds"),
)
LONG = 200  # steps from which a run without a terminal reports each tenth of its way
CSV_COLUMNS = (
    *("table", "outcome", "batch", "version", "strategy", "engine", "rows_in"),
    *("inserted", "updated", "deleted", "quarantined", "expired"),
    *("exit_code", "error"),
)


class Steps:
    """A progress bar on standard error; without a terminal, a line per tenth of a long run.

    Prints nothing unless `visible`.
    """

    def __init__(self, total: int, visible: bool):
        console = Console(stderr=True)
        self.reports: list[BatchReport] = []
        self._prints_tenths = visible and not console.is_terminal and total >= LONG
        self._count, self._total = 0, total
        self._progress = Progress(
            TextColumn("{task.description:<42}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            disable=not visible or not console.is_terminal,
        )
        self._task = self._progress.add_task("starting", total=total)

    def add(self, report: BatchReport) -> None:
        """Count a finished batch: an interval's delivery, or an updated view or dimension.

        The internal tables behind these don't count.
        """
        self.reports.append(report)
        day = f" {report.interval[0][:10]}" if report.interval else ""
        self._progress.update(self._task, description=report.table + day)
        is_internal = declared_id(report.table) != report.table
        if report.interval or not (is_internal or kind(report.kind).model.STEP == "ingest"):
            self._progress.advance(self._task)
            self._count += 1
            if self._prints_tenths and self._tenths(self._count) > self._tenths(self._count - 1):
                print(f"{self._count} of {self._total} steps: {report.table}{day}", file=sys.stderr)

    def _tenths(self, count: int) -> int:
        return count * 10 // self._total

    def stop(self) -> None:
        """Remove the bar, so that other output may follow."""
        self._progress.stop()

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()


def summary(reports: Iterable[BatchReport], format_: Format) -> None:
    """Print one row per table for people, one record per batch for programs."""
    done = list(reports)
    if format_ is Format.JSON:
        for report in done:
            write_json(report.to_dict())
    elif format_ is Format.CSV:
        write_rows([report.to_dict() for report in done], CSV_COLUMNS, format_)
    else:
        _print(done)


def _print(done: Sequence[BatchReport]) -> None:
    """Print a row per table, its internal tables included; none for a table without a new batch."""
    by_table: dict[str, list[BatchReport]] = defaultdict(list)
    for report in done:
        if report.outcome in ("committed", "position"):
            by_table[declared_id(report.table)].append(report)
    if by_table:
        print_table(COLUMNS, [_row(table, batches) for table, batches in by_table.items()])
    elif done and not any(report.outcome == "failed" for report in done):
        print("nothing was new")
    if left := _left_to_spark(done):
        print(f"left to Spark: {left}")
    print_notes(done)


def print_notes(done: Sequence[BatchReport]) -> None:
    """Print warnings of batches and undone work of a run on standard error."""
    warnings = (f"warning: {w}" for w in _warnings(done))
    for line in dict.fromkeys((*warnings, *map(not_done, done))):
        if line:
            Console(stderr=True).print(
                line, style="yellow", markup=False, highlight=False, soft_wrap=True
            )


def _warnings(done: Sequence[BatchReport]) -> Iterator[str]:
    """Yield the warnings in order; a table's intervals without files are one of them."""
    absent: dict[str, list[BatchReport]] = defaultdict(list)
    for report in done:
        if report.is_absent:
            absent[report.table].append(report)
    for report in done:
        same = absent.get(report.table, [])
        if len(same) < 2 or not report.is_absent:
            yield from report.warnings
        else:
            yield _without_files(same)
            yield from report.warnings[1:]


def _without_files(reports: Sequence[BatchReport]) -> str:
    """Return the warning about a table's intervals without files."""
    intervals = (Interval.parse(*report.interval) for report in reports if report.interval)
    when = ", ".join(map(str, spans(intervals, reports[0].timezone)))
    name = declared_id(reports[0].table)
    return f"{name}: nothing was delivered for {when}; these intervals have no rows"


def _left_to_spark(done: Sequence[BatchReport]) -> str:
    """Return the tables of which batches were left to Spark, each with the first reason."""
    reasons: dict[str, str] = {}
    for report in done:
        if reason := report.engine.partition(": ")[2]:
            reasons.setdefault(declared_id(report.table), reason)
    return "; ".join(f"{table} ({reason})" for table, reason in reasons.items())


def not_done(report: BatchReport) -> str:
    """Return a line on a run's undone work for a table; empty if there is none."""
    if report.outcome == "skipped":
        return f"skipped: {report.table}, because {', '.join(report.because)} failed"
    if report.undelivered:
        intervals = (Interval.parse(*bounds) for bounds in report.undelivered)
        left = spans(intervals, report.timezone)
        return f"not delivered: {report.table} {', '.join(map(str, left))}"
    return ""


def _row(table: str, reports: Sequence[BatchReport]) -> tuple[Any, ...]:
    """Return a table's row: what its first internal table read, what changed in the visible one."""
    first = [r.rows_in for r in reports if r.table == reports[0].table and r.rows_in is not None]
    visible = [r for r in reports if r.table == table]
    return (
        table,
        len(visible),
        sum(first) if first else None,
        *(sum(getattr(r, name) for r in visible) for name in ("inserted", "updated", "deleted")),
        sum(r.quarantined for r in reports),
        sum(r.expired for r in reports),
        f"{sum(s for r in reports for s in r.seconds.values()):.1f}",
    )


Show = Callable[[Iterable[BatchReport]], None]
COUNTS = ("rows_in", "inserted", "updated", "deleted", "quarantined", "expired")
CHANGE_COLUMNS = ("table", "outcome", "batches", *COUNTS)
SAMPLE = 3


@dataclass(frozen=True)
class PreviewOptions:
    """Options of a preview: up to `sample` changed rows of a table, and `html`, a file."""

    sample: int = SAMPLE
    html: Path | None = None


def preview_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--preview`, `--sample` and `--html` as argument `preview`; None without the first."""

    @click.option("--preview", is_flag=True, help="Show what would change; commit nothing.")
    @changes_options("that --preview shows", "what --preview shows")
    @wraps(command)
    def asking(preview: bool, sample: int | None, html: Path | None, **others: Any) -> Any:
        if not preview and (sample is not None or html):
            raise UsageError("--sample and --html go with --preview")
        asked = PreviewOptions(SAMPLE if sample is None else sample, html) if preview else None
        return command(preview=asked, **others)

    return asking


def changes_options(rows: str, shown: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add `--sample` and `--html`, as arguments of these names; both may be None."""
    sample = click.option(
        "--sample",
        type=click.IntRange(min=0),
        metavar="N",
        help=f"Changed rows of each table {rows} ({SAMPLE} if not given).",
    )
    html = click.option(
        "--html",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help=f"Write {shown} to a page.",
    )
    return lambda command: sample(html(command))


@contextmanager
def project_of(
    project: Project, tables: Sequence[Table], preview: PreviewOptions | None, format_: Format
) -> Iterator[tuple[Project, Show]]:
    """Yield the project to work on, and what shows the reports at the end.

    For a preview, its lake is one beside the real lake.
    """
    if preview is None:
        yield project, partial(summary, format_=format_)
        return
    with previewing(project, tables) as beside:
        yield beside.project, partial(_show, beside, preview, format_)


def _show(
    preview: Preview, asked: PreviewOptions, format_: Format, reports: Iterable[BatchReport]
) -> None:
    from sluice.report.publish import Heading

    done = list(reports)
    heading = Heading("Preview", preview.real, "Nothing of this was committed.", COUNTS)
    if format_ is Format.TABLE:
        click.echo("preview: nothing was committed")
    show_changes(heading, preview.results(done, asked.sample), CHANGE_COLUMNS, asked.html, format_)
    if format_ is Format.TABLE:
        print_notes([preview.as_real(report) for report in done])


def show_changes(
    heading: "Heading",
    results: Sequence[Any],
    columns: Sequence[str],
    html: Path | None,
    format_: Format,
) -> None:
    """Show the differences in each table, with samples, and write the page if requested."""
    if html:
        from sluice.report.publish import write_preview

        write_preview(html, heading, results, datetime.now(UTC))
    if format_ is Format.JSON:
        for result in results:
            write_json(asdict(result))
        return
    rows = [{name: getattr(result, name) for name in columns} for result in results]
    if format_ is Format.CSV:
        write_rows(rows, columns, format_)
        return
    print_table([c.replace("_", " ") for c in columns], [list(row.values()) for row in rows])
    for result in results:
        _show_samples(result.table, result.samples)


def _show_samples(table: str, samples: "Iterable[Sample]") -> None:
    """Print the changed rows of a table, removed ones with `-` and added ones with `+`."""
    lines = [
        (sign, row)
        for sample in samples
        for sign, row in (("-", sample.before), ("+", sample.after))
        if row is not None
    ]
    if lines:
        columns = list(dict.fromkeys(name for _, row in lines for name in row))
        values = [(sign, *(row.get(name) for name in columns)) for sign, row in lines]
        print_table(("", *columns), values, title=table)
