"""The commands about the configuration itself."""

import json

import click

from sluice.cli.options import config_option
from sluice.errors import ConfigError
from sluice.specs.project import Project, load
from sluice.specs.schema import json_schema


@click.command()
@config_option
def validate(config: str) -> None:
    """Check the configuration and show every mistake, each with file and line. Exit 2 if any."""
    project = load(config)
    mistakes = _expectation_mistakes(project)
    if mistakes:
        raise ConfigError(mistakes)
    tables = project.graph.tables.values()
    names = ", ".join(project.pipelines)
    click.echo(f"{len(project.pipelines)} pipeline(s) ({names}), {len(tables)} tables: no mistakes")


@click.command()
@click.argument("kind", type=click.Choice(["pipeline", "project"]), default="pipeline")
def schema(kind: str) -> None:
    """Print the JSON Schema of a pipeline's file, or of sluice.yaml (`project`)."""
    click.echo(json.dumps(json_schema("project" if kind == "project" else "pipeline"), indent=2))


def _expectation_mistakes(project: Project) -> list[str]:
    """Names and arguments that Great Expectations does not know, which only it can tell."""
    from sluice.quality.review import mistakes

    found = []
    for table in project.graph.tables.values():
        for expectation in getattr(table.spec, "expect", ()):
            says = mistakes(expectation, table.columns)
            found += [f"{table.id}: {expectation.type}: {mistake}" for mistake in says]
    return found
