"""Commands on the configuration itself."""

import json

import click

from sluice.declare.project import load
from sluice.declare.schema import json_schema
from sluice.engine.nodes import nodes_of
from sluice.terminal.options import config_option
from sluice.terminal.output import counted


@click.command()
@config_option
def validate(config: str) -> None:
    """Check the configuration and show every mistake, each with file and line. Exit 2 if any."""
    from sluice.gate.review import mistakes

    project = load(config, review=mistakes)
    tables = project.graph.tables.values()
    for table in tables:
        nodes_of(table, project.graph)
    names = ", ".join(project.pipelines)
    pipelines = counted(len(project.pipelines), "pipeline")
    click.echo(f"{pipelines} ({names}), {counted(len(tables), 'table')}: no mistakes")


@click.command()
@click.argument("kind", type=click.Choice(["pipeline", "project"]), default="pipeline")
def schema(kind: str) -> None:
    """Print the JSON Schema of a pipeline's file, or of sluice.yaml (`project`)."""
    click.echo(json.dumps(json_schema("project" if kind == "project" else "pipeline"), indent=2))
