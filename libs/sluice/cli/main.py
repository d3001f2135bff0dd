"""Command `sluice`, which imports a command's module only when that command runs.

So `sluice --help` is quick, and a read starts neither Spark nor Airflow. Errors end with a message,
a hint and an exit code; `--debug` shows the trace.

Reads go without pandas, whose import takes longer than most of them. PyArrow imports it at its
first scalar, to find out whether it is there; in a process that only reads, it learns that in
advance. It still imports pandas if rows are converted to it.
"""

import os
import sys
from importlib import import_module
from typing import Any, NoReturn

import click

from sluice.declare.registry import commands_of_kinds
from sluice.errors import ExitCode, SluiceError
from sluice.extras import DISTRIBUTION
from sluice.terminal import run
from sluice.terminal.options import debug_option, env_option, wants_trace


class _Hidden:
    """A finder that reports pandas as not installed."""

    def find_spec(self, name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name=name)


def without_pandas() -> None:
    """Have PyArrow decide now that rows are not pandas objects, unless pandas was imported."""
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    hidden = _Hidden()
    sys.meta_path.insert(0, hidden)
    try:
        pa.scalar(True)
    finally:
        sys.meta_path.remove(hidden)


# A command's name, its location and its description.
COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("sluice.cli.configuration:init", "Create a project with tables for existing data."),
    "import": ("sluice.cli.configuration:import_", "Import a project of another tool: dbt."),
    "validate": (
        "sluice.cli.configuration:validate",
        "Check the configuration: every mistake at once.",
    ),
    "dry-run": (
        "sluice.cli.configuration:validate",
        "The same as validate, by its name in `spark-pipelines`.",
    ),
    "schema": (
        "sluice.cli.configuration:schema",
        "Print the configuration's JSON Schema, for editors.",
    ),
    "plan": ("sluice.cli.views:plan", "Show what a run would read, and how; nothing is run."),
    "run": ("sluice.cli.runs:run", "Run a pipeline: sources, then dimensions, then views."),
    "ingest": ("sluice.cli.runs:ingest", "Read a source's intervals."),
    "load": ("sluice.cli.runs:load", "Load a dimension."),
    "advance": ("sluice.cli.runs:advance", "Bring views up to their inputs."),
    "replay": ("sluice.cli.runs:replay", "Read intervals with quarantined rows again."),
    "sweep": ("sluice.cli.views:sweep", "Check expectations of whole tables."),
    "verify": ("sluice.cli.views:verify", "Recompute views and compare; exit 1 if they differ."),
    "rebuild": ("sluice.cli.views:rebuild", "Recompute a table and commit the difference."),
    "maintain": ("sluice.cli.views:maintain", "Merge small files; no row changes."),
    "forget": ("sluice.cli.tables:forget", "Remove a subject's rows from a source and all views."),
    "drop": ("sluice.cli.tables:drop", "Remove a table from the lake; kept for a week."),
    "env": ("sluice.cli.env:env", "Create, compare, promote and drop environments."),
    "rename": ("sluice.cli.tables:rename", "Give a table another name; its history stays."),
    "read": ("sluice.cli.reads:read", "Show any table's rows."),
    "changes": ("sluice.cli.reads:changes", "Show a table's changelog, or one run's part."),
    "get": ("sluice.cli.reads:get", "Show the row of one key."),
    "why": (
        "sluice.cli.why:why",
        "Show which commit last changed a row, and the rows it comes from.",
    ),
    "why-not": ("sluice.cli.why:why_not", "Show what keeps a row out, such as a condition."),
    "range": ("sluice.cli.reads:range_", "Show the rows of a range of keys, in order."),
    "connect": (
        "sluice.cli.servers:connect",
        "Start and stop a Spark Connect server on this machine.",
    ),
    "serve": ("sluice.cli.servers:serve", "Answer reads over HTTP, for applications."),
    "doctor": ("sluice.cli.views:doctor", "Check tables: logs, files, positions, retention."),
    "cost": ("sluice.cli.status:cost", "Add up the cost of batches: seconds, CPU, bytes."),
    "status": ("sluice.cli.status:status", "Show every table's version, rows, lag and last batch."),
}
READING = frozenset(
    {
        "read",
        "changes",
        "cost",
        "doctor",
        "env",
        "get",
        "range",
        "serve",
        "status",
        "why",
        "why-not",
    }
)


class LazyGroup(click.Group):
    """A group that imports its commands when they are called, and prints readable errors."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return [*COMMANDS, *commands_of_kinds()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name in READING or cmd_name in commands_of_kinds():
            without_pandas()
        command = _import(cmd_name)
        if command is None or any(parameter.name == "debug" for parameter in command.params):
            return command
        return debug_option(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            own = [(name, about) for name, (_, about) in COMMANDS.items()]
            found = {name: _import(name) for name in commands_of_kinds()}
            of_kinds = [(name, str(c.short_help)) for name, c in found.items() if c]
            formatter.write_dl([*own, *of_kinds])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except BrokenPipeError:  # its reader has gone, so nothing more is written, at exit neither
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except KeyboardInterrupt:
            click.echo("stopped", err=True)
            ctx.exit(130)
        except Exception as error:
            if wants_trace(ctx):
                raise
            _fail(ctx, error)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name=DISTRIBUTION, prog_name="sluice")
@env_option
@debug_option
def main() -> None:
    """Views on Delta Lake that are kept equal to their queries, batch by batch."""


def _import(name: str) -> click.Command | None:
    """Import a command, of Sluice or of a kind; None if there is none of that name."""
    of_kinds = commands_of_kinds()
    place = COMMANDS[name][0] if name in COMMANDS else of_kinds.get(name)
    if place is None:
        return None
    module, _, attribute = place.partition(":")
    command: click.Command = getattr(import_module(module), attribute)
    return command


def _fail(context: click.Context, error: Exception) -> NoReturn:
    """Report what happened in plain words, and exit with the error's code."""
    from sluice.delta.places.delta_rs import store_fault

    error = store_fault(error) or error
    if isinstance(error, SluiceError):
        click.echo(f"error: {error}", err=True)
        context.exit(int(error.exit_code))
    what = " ".join(f"{type(error).__name__}: {error}".split())
    click.echo(f"error: {what}\nhint: --debug shows the trace", err=True)
    context.exit(int(ExitCode.CONFIGURATION))


def program() -> NoReturn:
    """Run `sluice` as this process's program."""
    run(main)


if __name__ == "__main__":
    program()
