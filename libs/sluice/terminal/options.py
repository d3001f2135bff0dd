"""Options shared by commands."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

from sluice.terminal.output import Format

F = TypeVar("F", bound=Callable[..., Any])

version_option = click.option("--version", type=int, help="Read the table as of this version.")


def config_option(command: F) -> F:
    """Add `--config DIR`, as the argument `config`."""
    return click.option(
        "--config",
        envvar="SLUICE_CONFIG",
        default="config",
        show_default=True,
        metavar="DIR",
        help="The folder of the configuration (or SLUICE_CONFIG).",
    )(command)


def format_option(command: F) -> F:
    """Add `--format table|json|csv`, or `--json` for short, as the argument `format_`."""
    choice = click.option(
        "--format",
        "format_",
        type=click.Choice([f.value for f in Format]),
        default=Format.TABLE.value,
        show_default=True,
        callback=lambda _context, _option, value: Format(value),
        help="table for people, json (an object a line) and csv for programs.",
    )
    short = click.option("--json", "format_", flag_value="json", help="The same as --format json.")
    return short(choice(command))


def columns_option(command: F) -> F:
    """Add `--columns A,B`, as the argument `columns`: a list of names, or None."""
    return click.option(
        "--columns",
        multiple=True,
        metavar="A,B",
        callback=lambda _context, _option, value: _names(value),
        help="Only these columns, in this order; repeatable.",
    )(command)


def _names(given: Iterable[str]) -> list[str] | None:
    """Return each name once; None if there are none."""
    names = (name.strip() for text in given if text for name in text.split(","))
    return list(dict.fromkeys(names)) or None


def debug_option(command: F) -> F:
    """Add `--debug`, which shows the trace of a failure."""
    return click.option(
        "--debug", is_flag=True, expose_value=False, callback=_remember, help="Show error traces."
    )(command)


def wants_trace(context: click.Context) -> bool:
    """True if `--debug` was given, before or after the command's name."""
    return bool(context.find_root().meta.get("sluice.debug"))


def _remember(context: click.Context, _option: click.Parameter, value: bool) -> None:
    if value:
        context.find_root().meta["sluice.debug"] = True
