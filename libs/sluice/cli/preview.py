"""Option `--preview` of commands that do work, and what it shows."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial, wraps
from pathlib import Path
from typing import Any

import click

from sluice.cli.progress import print_notes, summary
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.engine.batch_report import BatchReport
from sluice.errors import UsageError
from sluice.operate.preview import Preview, previewing
from sluice.read.samples import Sample
from sluice.report.preview_page import Heading, write_preview
from sluice.terminal.output import Format, print_table, write_json, write_rows

Show = Callable[[Iterable[BatchReport]], None]
COUNTS = ("rows_in", "inserted", "updated", "deleted", "quarantined", "expired")
COLUMNS = ("table", "outcome", "batches", *COUNTS)
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
    done = list(reports)
    heading = Heading("Preview", preview.real, "Nothing of this was committed.", COUNTS)
    if format_ is Format.TABLE:
        click.echo("preview: nothing was committed")
    show_changes(heading, preview.results(done, asked.sample), COLUMNS, asked.html, format_)
    if format_ is Format.TABLE:
        print_notes([preview.as_real(report) for report in done])


def show_changes(
    heading: Heading,
    results: Sequence[Any],
    columns: Sequence[str],
    html: Path | None,
    format_: Format,
) -> None:
    """Show the differences in each table, with samples, and write the page if requested."""
    if html:
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


def _show_samples(table: str, samples: Iterable[Sample]) -> None:
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
