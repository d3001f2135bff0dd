"""Commands of a Spark Connect server on this machine."""

from urllib.parse import urlsplit

import click

from sluice.declare.project import load
from sluice.errors import UsageError
from sluice.spark.connect_server import ConnectServer
from sluice.spark.starting import PORT
from sluice.terminal.options import config_option

LOOPBACK = ("127.0.0.1", "localhost", "::1")
port_option = click.option("--port", type=int, help="Its port, by default that of spark.remote.")


@click.group()
def connect() -> None:
    """Start and stop a Spark Connect server, which commands and tasks share.

    It listens on the loopback address only, because the protocol has no login.
    """


@connect.command(short_help="Start a server with the project's settings.")
@port_option
@click.option("--foreground", is_flag=True, help="Stay in this process, e.g. for systemd.")
@config_option
def start(port: int | None, config: str, *, foreground: bool) -> None:
    """Start a server with the project's settings, and return when it answers.

    If its Java ends, it is started again. Do nothing if it runs already.
    """
    server, settings = _server(port, config), load(config).spark
    if foreground:
        click.get_current_context().exit(server.serve(settings))
    pid = server.keeper()
    if pid is None:
        server.start(settings)
    click.echo(f"{server.remote} runs already" if pid else f"{server.remote} runs")
    if settings.engine != "connect" or urlsplit(settings.remote).port != server.port:
        click.echo(f"next: set spark: {{engine: connect, remote: {server.remote}}} in sluice.yaml")


@connect.command(short_help="Stop the server.")
@port_option
@config_option
def stop(port: int | None, config: str) -> None:
    """Stop the server. Safe to repeat."""
    server = _server(port, config)
    was_running = server.stop()
    click.echo(f"{server.remote} has stopped" if was_running else f"{server.remote} does not run")


@connect.command(short_help="Show whether the server runs.")
@port_option
@config_option
def status(port: int | None, config: str) -> None:
    """Show whether the server runs, and its log. Exit 1 if it does not."""
    server = _server(port, config)
    pid = server.keeper()
    if pid is None:
        click.echo(f"{server.remote} does not run")
        click.get_current_context().exit(1)
    click.echo(f"{server.remote} runs, kept by process {pid}; its log is {server.log}")


def _server(port: int | None, config: str) -> ConnectServer:
    """Return the server on that port, by default the project's."""
    if port:
        return ConnectServer(port)
    settings = load(config).spark
    remote = urlsplit(settings.remote)
    if remote.hostname not in LOOPBACK:
        raise UsageError(
            f"spark.remote is {settings.remote}, which is not this machine",
            hint="run this there, with --port, or change spark.remote",
        )
    return ConnectServer(remote.port or PORT)
