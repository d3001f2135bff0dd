"""The command `status`: where every table stands, told from the logs alone."""

from dataclasses import asdict
from datetime import datetime
from typing import Any

import click

from sluice.cli.options import config_option, format_option
from sluice.cli.output import Format, print_table, show_time, write_rows
from sluice.reporting.health import Health, health
from sluice.serving.status import Lag, TableStatus
from sluice.serving.status import status as statuses
from sluice.specs.project import load

COLUMNS = (
    *("table", "kind", "version", "rows", "behind"),
    *("last batch", "at", "run", "quarantined", "refills", "quality"),
)


@click.command()
@click.argument("tables", nargs=-1, metavar="[TABLE]...")
@format_option
@config_option
def status(tables: tuple[str, ...], format_: Format, config: str) -> None:
    """Show where every table stands, and how far behind its inputs it is."""
    project = load(config)
    chosen = [project.graph.table(name) for name in tables] or None
    found = statuses(project, chosen)
    quality = health(project, (project.graph.tables[one.table] for one in found))
    if format_ is not Format.TABLE:
        rows = [asdict(one) | {"quality": asdict(quality[one.table])} for one in found]
        write_rows(rows, [*TableStatus.__dataclass_fields__, "quality"], format_)
        return
    print_table(COLUMNS, [_status_row(one, quality[one.table]) for one in found])


def _status_row(one: TableStatus, quality: Health) -> tuple[Any, ...]:
    behind = one.problem or "\n".join(_lag_text(lag) for lag in one.lag)
    last = one.last
    behind = "not built" if one.version is None and not behind else behind
    batch = (last.number, _second(last.at), last.run) if last else (None, None, None)
    quarantined = one.quarantined if one.kind in ("source", "dimension") else None
    counts = quarantined, one.refills if one.kind == "topk" else None
    return one.table, one.kind, one.version, one.rows, behind, *batch, *counts, str(quality)


def _second(moment: datetime) -> str:
    return show_time(moment.replace(microsecond=0))


def _lag_text(lag: Lag) -> str:
    since = f" since {_second(lag.since)}" if lag.since else ""
    return f"{lag.input}: {lag.versions} version{'s' if lag.versions != 1 else ''}{since}"
