"""The command that serves a lake over HTTP."""

from typing import Any

import click

from sluice.declare.project import load_sound
from sluice.extras import require
from sluice.terminal.options import config_option


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
