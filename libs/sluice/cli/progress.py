"""What a run shows while it works, and what it sums up at its end."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from sluice.cli.output import Format, print_table, write_json
from sluice.runtime.report import BatchReport

COLUMNS = ("table", "batches", "in", "inserted", "updated", "deleted", "quarantined", "seconds")


class Steps:
    """A progress bar on standard error; quiet where that is no terminal, or not wanted."""

    def __init__(self, total: int, visible: bool):
        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description:<42}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            disable=not visible or not console.is_terminal,
        )
        self._task = self._progress.add_task("starting", total=total)

    def done(self, report: BatchReport) -> None:
        """A table was brought up to date; the internal tables behind it don't count."""
        shown = (
            report.table if report.interval is None else f"{report.table} {report.interval[0][:10]}"
        )
        self._progress.update(self._task, description=shown)
        if "__" not in report.table:
            self._progress.advance(self._task)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._progress.stop()


def summary(reports: Iterable[BatchReport], format_: Format) -> None:
    """One row a table for people, one JSON object a batch for programs."""
    done = list(reports)
    if format_ is not Format.TABLE:
        for report in done:
            write_json(report.to_dict())
        return
    by_table: dict[str, list[BatchReport]] = defaultdict(list)
    for report in done:
        by_table[report.table].append(report)
    print_table(COLUMNS, [_row(table, batches) for table, batches in by_table.items()])
    for warning in dict.fromkeys(w for report in done for w in report.warnings):
        Console(stderr=True).print(f"warning: {warning}", style="yellow", markup=False)


def _row(table: str, reports: Sequence[BatchReport]) -> tuple[object, ...]:
    committed = [r for r in reports if r.outcome in ("committed", "position")]
    rows_in = [r.rows_in for r in committed if r.rows_in is not None]
    return (
        table,
        len(committed),
        sum(rows_in) if rows_in else None,
        *(sum(getattr(r, field) for r in reports) for field in COLUMNS[3:7]),
        f"{sum(s for r in reports for s in r.seconds.values()):.1f}",
    )
