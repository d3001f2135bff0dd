"""Options shared by commands."""

import os
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from sluice.errors import UsageError
from sluice.terminal.output import Format, write_found

if TYPE_CHECKING:
    from sluice.declare.table import Graph
    from sluice.read.keyed import Rows

F = TypeVar("F", bound=Callable[..., Any])
CHOOSING = ("version", "to_version", "as_of")


def choose_once(context: click.Context, option: click.Parameter, value: Any) -> Any:
    """Refuse `--as-of` beside an option that names a version. For `callback` of each."""
    given = [n for n in CHOOSING if n != option.name and context.params.get(n) is not None]
    if value is None or not given:
        return value
    (by_number,) = {option.name, *given} - {"as_of"}
    raise UsageError(
        f"give either --as-of or --{str(by_number).replace('_', '-')}",
        hint="a time chooses the versions of all tables itself",
    )


def column_value(option: str, text: str) -> tuple[str, str]:
    """Return the column and the value that an option gives. Raises UsageError without a `=`."""
    column, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"{option} {text!r}: write column=value")
    return column, value


def named_key_option(argument: str) -> Callable[[F], F]:
    """Return the option that names a key's columns, as the argument of that name."""
    return click.option(
        "--key",
        argument,
        multiple=True,
        metavar="COLUMN=VALUE",
        help="The value of a key column, in any order; repeatable.",
    )


version_option = click.option(
    "--version", type=int, callback=choose_once, help="Read the table as of this version."
)


def lake_options(command: F) -> F:
    """Add `--as-of T` and `--config DIR`, which open the lake, as the argument `lake`.

    A line on standard error names the files of pipelines that were left out.
    """

    @wraps(command)
    def with_lake(*arguments: Any, config: str, as_of: str | None, **options: Any) -> Any:
        from sluice.read.lake import open_lake

        lake = open_lake(config, as_of)
        graph = lake.project.graph
        if graph.left_out:
            found = "`sluice validate` finds mistakes; " if graph.broken else ""
            click.echo(f"warning: {found}{graph.left_out.hint}", err=True)
        return command(*arguments, lake=lake, **options)

    by_time = click.option(
        "--as-of",
        metavar="T",
        callback=choose_once,
        help="Read the newest state that all tables had in common at T, UTC without a zone.",
    )
    return by_time(config_option(cast(F, with_lake)))


def warn_of_left_out(graph: "Graph") -> None:
    """Name on standard error each part of the configuration that is left out, and why."""
    for reason in graph.left_out.mistakes if graph.left_out else ():
        click.echo(f"left out: {reason}", err=True)


def config_option(command: F) -> F:
    """Add `--config DIR`, or `--spec FILE` for a spark-pipelines project, as `config`."""
    return click.option(
        "--config",
        "--spec",
        "config",
        envvar="SLUICE_CONFIG",
        default="config",
        show_default=True,
        metavar="DIR|SPEC",
        help="The folder of the configuration, or the spec of a spark-pipelines project (or "
        "SLUICE_CONFIG).",
    )(command)


def format_option(command: F) -> F:
    """Add `--format table|json|csv`, or `--json` for short, as the argument `format_`."""

    def read(_context: click.Context, _option: click.Parameter, value: Any) -> Any:
        return Format(value) if isinstance(value, str) else value  # of the option that is given

    choice = click.option(
        "--format",
        "format_",
        type=click.Choice([f.value for f in Format]),
        default=Format.TABLE.value,
        show_default=True,
        callback=read,
        help="table for people, json (an object a line) and csv for programs.",
    )
    short = click.option(
        "--json",
        "format_",
        flag_value="json",
        callback=read,
        help="The same as --format json.",
    )
    return short(choice(command))


def columns_option(command: F) -> F:
    """Add `--columns A,B`, as the argument `columns`: a list of names, or None."""
    return click.option(
        "--columns",
        multiple=True,
        metavar="A,B",
        callback=_split_names,
        help="Only these columns, in this order; repeatable.",
    )(command)


def _split_names(
    _context: click.Context, _option: click.Parameter, given: Iterable[str]
) -> list[str] | None:
    """Return each name once; None if there are none."""
    names = (name.strip() for text in given if text for name in text.split(","))
    return list(dict.fromkeys(names)) or None


def debug_option(command: F) -> F:
    """Add `--debug`, which shows the trace of a failure."""
    return click.option(
        "--debug", is_flag=True, expose_value=False, callback=_remember, help="Show error traces."
    )(command)


def env_option(command: F) -> F:
    """Add `--env NAME`, which chooses an environment for this command and what it starts."""
    return click.option(
        "--env",
        metavar="NAME",
        expose_value=False,
        callback=_choose_environment,
        help="Work in this environment of the lake (or SLUICE_ENV).",
    )(command)


def _choose_environment(context: click.Context, _option: click.Parameter, name: str | None) -> None:
    if name is not None:
        from sluice.declare.environment_folders import VARIABLE  # imports pydantic

        before = os.environ.get(VARIABLE, "")
        os.environ[VARIABLE] = name
        context.call_on_close(lambda: os.environ.update({VARIABLE: before}))


def wants_trace(context: click.Context) -> bool:
    """True if `--debug` was given, before or after the command's name."""
    return bool(context.find_root().meta.get("sluice.debug"))


def _remember(context: click.Context, _option: click.Parameter, value: bool) -> None:
    if value:
        context.find_root().meta["sluice.debug"] = True


limit_option = click.option("--limit", type=int, help="Largest number of rows.")
reverse_option = click.option("--reverse", is_flag=True, help="Last first.")
where_option = click.option("--where", metavar="E", help="Only rows that meet this condition.")
after_option = click.option(
    "--after",
    metavar="CURSOR",
    help="Continue after a page, by the cursor it printed.",
)
key_from_option = click.option(
    "--key-from", multiple=True, metavar="K", help="First key; once for each key column."
)
key_to_option = click.option(
    "--key-to", multiple=True, metavar="K", help="Last key, included; once for each key column."
)


def page_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of every read that goes page by page."""
    options = (reverse_option, where_option, columns_option, limit_option, after_option)
    for option in reversed((*options, version_option, format_option, lake_options)):
        command = option(command)
    return command


def write_page(
    rows: "Rows",
    limit: int | None,
    format_: Format,
    lead: Sequence[str],
    chosen: Sequence[str] | None,
) -> None:
    """Write the rows and, if there may be a next page, its cursor; for people and for programs."""
    page = rows if limit is None else list(rows)
    write_found(page, rows.schema.names, format_, lead, chosen)
    if limit and isinstance(page, list) and len(page) == limit and rows.cursor:
        click.echo(f"next page: --after {rows.cursor}", err=True)


# Of commands that do work, and of the jobs that do the same for a scheduler.
start_option = click.option(
    "--start",
    metavar="T",
    help="The first instant, e.g. 2017-05-08; without an offset, in the pipeline's timezone.",
)
end_option = click.option("--end", metavar="T", help="The instant after the last.")
changed_option = click.option(
    "--changed", is_flag=True, help="Deliver due intervals and changed files; no bounds."
)
empty_option = click.option(
    "--allow-empty",
    is_flag=True,
    help="Let an interval with rows become empty: no files, or no usable row.",
)
pin_option = click.option(
    "--pin",
    multiple=True,
    metavar="DIMENSION=VERSION",
    help="Look up this version, or a newer one that was used before.",
)


def check_bounds(start: str | None, end: str | None, *, changed: bool) -> None:
    """Raise UsageError for bounds beside `--changed`."""
    if changed and (start or end):
        raise UsageError("--changed finds its intervals itself: leave out --start and --end")


def read_pins(graph: "Graph", texts: Iterable[str]) -> dict[str, int]:
    """Return the version of each dimension, by its id. Raises UsageError for any other text."""
    found = {}
    for text in texts:
        name, _, version = text.rpartition("=")
        if not name or not version.isdigit():
            raise UsageError(f"--pin takes DIMENSION=VERSION, not {text!r}")
        found[graph.table(name).id] = int(version)
    return found
