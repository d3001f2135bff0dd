"""Commands on the environments of a lake: make, list, compare, promote and drop them."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from sluice.cli.progress import (
    SAMPLE,
    PreviewOptions,
    changes_options,
    preview_option,
    show_changes,
)
from sluice.cli.runs import do, name_run
from sluice.declare.environment_folders import of_base
from sluice.declare.project import Project, load
from sluice.declare.table import Table
from sluice.delta.places import overlay
from sluice.delta.places.lake_layout import layout
from sluice.errors import Differs, UsageError
from sluice.language.interval import Duration
from sluice.language.names import declared_id
from sluice.operate.promotion import DIFFERS, Agreement, Beside
from sluice.operate.rebuild import Computed, bring, to_bring
from sluice.report.publish import Heading
from sluice.spark.session import with_spark
from sluice.terminal.options import config_option, format_option
from sluice.terminal.output import Format, pluralize, print_table, show_time, write_rows

COUNTS = ("inserted", "updated", "deleted")
COLUMNS = ("table", "outcome", "since", "version", *COUNTS, "moved_on", "reason")
KEPT = "7 days"


@dataclass(frozen=True)
class EnvironmentSummary:
    """One environment: `own`, the tables that it changed; `moved_on`, those of the lake."""

    environment: str
    created: datetime
    expires: datetime
    tables: int
    own: int
    moved_on: int


def expires_option(default: str | None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add `--expires LENGTH`, as the argument `expires`: the moment after that time from now."""
    return click.option(
        "--expires",
        metavar="LENGTH",
        default=default,
        required=default is None,
        show_default=True,
        callback=lambda _context, _option, value: _moment(value),
        help="Time from now until `sluice maintain` removes it, such as '30 days'.",
    )


@click.group()
def env() -> None:
    """Environments: separate lakes beside the lake, which share its tables' files.

    `sluice --env NAME COMMAND`, or SLUICE_ENV, runs any command in one.
    """


@env.command(short_help="Create an environment with all tables of the lake.")
@click.argument("name")
@expires_option(KEPT)
@config_option
def create(name: str, expires: datetime, config: str) -> None:
    """Make the environment NAME, with all tables of the lake as they are now."""
    project = _base(config)
    made = overlay.create(layout(project), name, _now(), expires)
    shared = pluralize(len({*map(declared_id, made.tables)}), "table")
    click.echo(f"environment {name}: {shared}, expires {show_time(made.expires)}")
    if differ := to_bring(project.within(name)):
        names = ", ".join(table.id for table in differ)
        click.echo(f"next: `sluice --env {name} rebuild --changed` brings {names}")


@env.command("list", short_help="Show environments, their times and changed tables.")
@format_option
@config_option
def list_(format_: Format, config: str) -> None:
    """Show every environment: its times, its own tables, and those that moved on in the lake."""
    project = _base(config)
    found = [_summarize(project, one) for one in overlay.list_environments(layout(project))]
    if found or format_ is not Format.TABLE:
        write_rows(
            [asdict(one) for one in found], [f.name for f in fields(EnvironmentSummary)], format_
        )
    else:
        click.echo(f"{project.lake} has no environments; `sluice env create NAME` makes one")


@env.command(short_help="Change when an environment expires.")
@click.argument("name")
@expires_option(None)
@config_option
def keep(name: str, expires: datetime, config: str) -> None:
    """Change the time at which the environment NAME expires."""
    overlay.keep(layout(_base(config)), name, expires)
    click.echo(f"environment {name} expires {show_time(expires)}")


@env.command(short_help="Compare its tables with their first versions.")
@click.argument("name")
@click.argument("tables", nargs=-1)
@changes_options("to show", "the difference")
@format_option
@config_option
def diff(
    name: str,
    tables: tuple[str, ...],
    sample: int | None,
    html: Path | None,
    format_: Format,
    config: str,
) -> None:
    """Compare TABLES (or all) of the environment NAME with those that it began with."""
    project = _base(config)
    beside, graph = Beside.of(project, name), project.graph
    chosen = [graph.table(table) for table in tables] or list(graph.tables.values())
    asked = PreviewOptions(SAMPLE if sample is None else sample, html)
    found = with_spark(
        project.spark, lambda spark: list(beside.standings(spark, chosen, asked.sample))
    )
    found += [] if tables else beside.find_undeclared()
    at = beside.began.created
    note = f"Compared with {project.lake} as of {show_time(at)}."
    heading = Heading(f"Environment {name}", beside.env.lake, note, COUNTS)
    show_changes(heading, found, COLUMNS, asked.html, format_)


@env.command(short_help="Rebuild the lake's tables as in the environment.")
@click.argument("name")
@preview_option
@format_option
@config_option
def promote(name: str, preview: PreviewOptions | None, format_: Format, config: str) -> None:
    """Rebuild the lake's tables as the environment NAME has them; only differences are committed.

    The definitions are those of the configuration. Rows that the environment has computed from the
    same inputs are taken over. Both are then compared, table by table.
    """
    project = _base(config)
    beside = Beside.of(project, name)
    beside.check_built()
    own = {*beside.own()}
    chosen = [table for table in to_bring(project) if table.id in own]
    if not chosen and format_ is Format.TABLE:
        click.echo("nothing to promote: the lake has every table by the configuration's definition")
        return
    run = name_run("promote")
    computed = Computed(beside.env)
    do(
        project,
        chosen,
        run,
        lambda s, p, t: bring(s, p, t, run, computed),
        format_,
        preview=preview,
    )
    if not preview:
        compared = [t for t in project.graph.tables.values() if t.id in own and t.is_view]
        _show_agreements(beside, compared, format_)


@env.command(short_help="Remove an environment.")
@click.argument("name")
@config_option
def drop(name: str, config: str) -> None:
    """Remove the environment NAME at once. The lake stays as it is."""
    overlay.drop(layout(_base(config)), name)
    click.echo(f"dropped environment {name}")


def _base(config: str) -> Project:
    """Return the project with the lake of its settings, whatever SLUICE_ENV says."""
    return load(config, environ=of_base())


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def _moment(length: str) -> datetime:
    try:
        return Duration(length).after(_now())
    except ValueError as error:
        raise UsageError(f"--expires: {error}") from None


def _summarize(project: Project, one: overlay.Environment) -> EnvironmentSummary:
    beside = Beside.of(project, one.name)
    visible = [name for name in one.tables if declared_id(name) == name]
    moved = [name for name in visible if beside.moved_on(name)]
    return EnvironmentSummary(
        one.name, one.created, one.expires, len(visible), len(beside.own()), len(moved)
    )


def _show_agreements(beside: Beside, tables: list[Table], format_: Format) -> None:
    found = with_spark(beside.base.spark, lambda spark: beside.agreements(spark, tables))
    columns = [field.name for field in fields(Agreement)]
    if format_ is Format.TABLE:
        print_table(columns, [list(asdict(one).values()) for one in found])
    else:
        write_rows([asdict(one) for one in found], columns, format_)
    if wrong := [one.table for one in found if one.outcome == DIFFERS]:
        raise Differs(
            f"{', '.join(wrong)}: the lake differs from environment {beside.env.environment!r}",
            hint="`sluice verify` says which of the two is wrong; keep its output",
        )
