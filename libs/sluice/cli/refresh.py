"""A run of some tables, or from their beginning, by the options of `spark-pipelines run`."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import click

from sluice.errors import UsageError


@dataclass(frozen=True)
class Refresh:
    """Names of tables to bring up to date, and of those to compute again; or all views again."""

    names: list[str]
    full: list[str]
    is_all: bool


def _split(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> list[str]:
    return [name.strip() for text in given for name in text.split(",") if name.strip()]


def refresh_options(
    instead: Callable[..., None],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add `--refresh`, `--full-refresh` and `--full-refresh-all`: they call `instead`."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @click.option(
            "--refresh",
            multiple=True,
            callback=_split,
            metavar="TABLES",
            help="Bring only these tables up to date (comma-separated).",
        )
        @click.option(
            "--full-refresh",
            multiple=True,
            callback=_split,
            metavar="TABLES",
            help="Compute only these tables again (comma-separated).",
        )
        @click.option("--full-refresh-all", is_flag=True, help="Compute every view again.")
        @wraps(command)
        def choosing(
            refresh: list[str], full_refresh: list[str], full_refresh_all: bool, **others: Any
        ) -> Any:
            if not (refresh or full_refresh or full_refresh_all):
                return command(**others)
            if full_refresh_all and (refresh or full_refresh):
                raise UsageError("--full-refresh-all names no tables: leave out the others")
            if any([others.pop("start"), others.pop("end"), others.pop("changed")]):
                raise UsageError("intervals go with a whole run: leave --refresh out")
            return instead(Refresh(refresh, full_refresh, full_refresh_all), **others)

        return choosing

    return add
