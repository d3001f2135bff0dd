"""A run of some tables, or from their beginning, by the options of `spark-pipelines run`."""

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import click

from sluice.declare.project import Project
from sluice.declare.project import load as load_project
from sluice.declare.table import Table
from sluice.engine.batch_report import BatchReport
from sluice.errors import UsageError
from sluice.operate.definitions.rebuild import rebuild
from sluice.operate.run import bring_up, deliver
from sluice.spark.session import Spark


def _split(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> list[str]:
    return [name.strip() for text in given for name in text.split(",") if name.strip()]


def refresh_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--refresh`, `--full-refresh` and `--full-refresh-all`, which run in its place."""

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
        if others["start"] or others["end"] or others["changed"]:
            raise UsageError("intervals go with a whole run: leave --refresh out")
        return _refresh(refresh, full_refresh, is_all=full_refresh_all, **others)

    return choosing


def _refresh(
    names: list[str], full: list[str], *, is_all: bool, pipeline: str | None, **others: Any
) -> None:
    from sluice.cli.runs import choose_pipeline, do, name_run, warn_of_left_out

    project = load_project(others["config"])
    every = project.graph.pipeline(choose_pipeline(project, pipeline).name)
    again = {project.graph.table(name).id for name in full}
    again |= {table.id for table in every if is_all and table.spec.STEP == "advance"}
    chosen = again | {project.graph.table(name).id for name in names}
    run = name_run("refresh", allow_empty=others["allow_empty"])

    def step(spark: Spark, project: Project, table: Table) -> Iterable[BatchReport]:
        if table.id in again:
            return rebuild(spark, project, table, run)
        if table.spec.STEP == "advance":
            return bring_up(spark, project, table, run)
        return deliver(spark, project, table, run, ())

    warn_of_left_out(project)
    tables = [table for table in every if table.id in chosen]
    do(project, tables, run, step, others["format_"], preview=others["preview"])
