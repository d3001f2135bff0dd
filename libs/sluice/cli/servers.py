"""Commands of servers on this machine: one of Spark Connect, and one of reads over HTTP."""

from typing import Any
from urllib.parse import urlsplit

import click

from sluice.declare.project import load, load_sound
from sluice.errors import UsageError
from sluice.extras import require
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


@click.command(short_help="Answer reads over HTTP, for applications.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8090,
    show_default=True,
    help="Port; 0 means any.",
)
@click.option(
    "--tokens",
    metavar="FILE",
    help="File of tokens, one a line: TOKEN, or TOKEN and pipelines (or SLUICE_SERVE_TOKENS).",
)
@click.option(
    "--rows", type=click.IntRange(1), default=1_000_000, show_default=True, help="Rows of a page."
)
@click.option(
    "--bytes",
    type=click.IntRange(1),
    default=32_000_000,
    show_default=True,
    help="Bytes after which a page ends.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0, min_open=True),
    default=30,
    show_default=True,
    help="Longest time of a request.",
)
@click.option(
    "--streams",
    type=click.IntRange(0),
    default=100,
    show_default=True,
    help="Streams of events at a time.",
)
@click.option("--access-log", is_flag=True, help="Log each request.")
@config_option
def serve(
    host: str, port: int, tokens: str | None, access_log: bool, config: str, **limits: Any
) -> None:
    """Answer reads of all tables over HTTP, until Ctrl-C. Nothing can be changed there.

    Without tokens, it listens on this machine alone.
    """
    require("serve", "the server")
    from sluice.serve.access import Access
    from sluice.serve.app import Listener, Served, Server
    from sluice.serve.questions import Limits

    access = Access.read(tokens)
    access.check_host(host)
    project, mistakes = load_sound(config)
    if mistakes:
        click.echo(f"warning: `sluice validate` finds mistakes; {mistakes.hint}", err=True)
    known = {*project.pipelines, *project.graph.broken.values()}
    for name in sorted(access.named - known):
        click.echo(f"warning: a token names {name!r}, which is no pipeline", err=True)
    server = Server(Served(config), access, Limits(**limits))
    log: dict[str, Any] = {
        "access_log": access_log,
        "log_level": "info" if access_log else "warning",
    }
    listener = Listener(server, host=host, port=port, timeout_graceful_shutdown=3, **log)
    port = listener.bind()  # so that who reads the line below is answered
    named = f"[{host}]" if ":" in host else host
    click.echo(f"http://{named}:{port}/v1/docs", err=True)
    listener.answer()
