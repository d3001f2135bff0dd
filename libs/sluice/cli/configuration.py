"""Commands on the configuration itself."""

import json
import sys
from pathlib import Path

import click

from sluice.declare.environment_folders import of_base
from sluice.declare.project import load
from sluice.declare.schema import json_schema
from sluice.errors import UsageError
from sluice.extras import DISTRIBUTION, is_installed
from sluice.language.names import listing
from sluice.starter import EXAMPLES, NEXT
from sluice.terminal.options import config_option, debug_option, warn_of_left_out
from sluice.terminal.output import pluralize


@click.command()
@config_option
def validate(config: str) -> None:
    """Check the configuration and show every mistake, each with file and line. Exit 2 if any."""
    from sluice.gate.review import mistakes

    project = load(config, review=mistakes)
    tables = project.graph.tables.values()
    names = ", ".join(project.pipelines)
    pipelines = pluralize(len(project.pipelines), "pipeline")
    click.echo(f"{pipelines} ({names}), {pluralize(len(tables), 'table')}: no mistakes")
    warn_of_left_out(project.graph)
    judged = [table.id for table in tables if table.expect]
    if judged and not is_installed("quality"):
        click.echo(
            f"warning: the expectations of {listing(judged)} were not checked, and a run stops at "
            "these tables: Great Expectations is not installed; "
            "run: pip install 'sluice-views[quality]'",
            err=True,
        )


@click.command()
@click.option(
    "--from",
    "patterns",
    multiple=True,
    metavar="FILES",
    help="Data files, folders or patterns, e.g. --from 'data/*.csv'; may be given again.",
)
@click.option(
    "--example",
    type=click.Choice(tuple(EXAMPLES)),
    help="Write this project, which has data of its own, instead.",
)
@click.option(
    "--airflow",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Copy this project's DAG files into the DAG folder of an Airflow that is there.",
)
@click.argument("more", nargs=-1, metavar="[FILES]...")
def init(
    patterns: tuple[str, ...], example: str | None, airflow: Path | None, more: tuple[str, ...]
) -> None:
    """Begin a project in this folder, with a table for each group of data files.

    Names, types, times and keys are taken from the data; look them over before the first run. Files
    with a time in every row become sources, others dimensions. Files with a date in their path are
    delivered by it.
    """
    from sluice.gate.review import mistakes
    from sluice.starter.new_project import add_dags, start, start_example

    folder, wanted = Path.cwd(), (*patterns, *more)
    if airflow:
        if example or wanted:
            raise UsageError(
                "--airflow copies the DAG files of a project that is there: init first"
            )
        for file in add_dags(folder, airflow):
            click.echo(f"wrote {file}")
        click.echo(f"next: set SLUICE_CONFIG={folder / 'config'} for all services of that Airflow")
        return
    if example and wanted:
        raise UsageError("--example brings its own data: leave out the files")
    editors = json.dumps(json_schema("pipeline"), indent=2) + "\n"
    written = start_example(folder, example, editors) if example else start(folder, wanted, editors)
    for file in written:
        click.echo(f"wrote {file.relative_to(folder)}")
    runs = [
        f"sluice run {name}"
        for name in load(folder / "config", environ=of_base(), review=mistakes).pipelines
    ]
    steps = NEXT[example] if example else ("sluice plan", *runs)
    click.echo(f"next: {', then '.join(f'`{step}`' for step in steps)}")
    if Path(sys.argv[0]).name == DISTRIBUTION:
        click.echo(f"by uvx, write `uvx {DISTRIBUTION}` for `sluice`, with the options given now")


@click.command()
@click.argument("kind", type=click.Choice(["pipeline", "project"]), default="pipeline")
def schema(kind: str) -> None:
    """Print the JSON Schema of a pipeline's file, or of sluice.yaml (`project`)."""
    click.echo(json.dumps(json_schema("project" if kind == "project" else "pipeline"), indent=2))


@click.group(name="import")
def import_() -> None:
    """Write a pipeline from a project of another tool, and report the result for each part."""


@import_.command()
@click.argument("manifest", type=click.Path(path_type=Path))
@click.option(
    "--select",
    "selectors",
    multiple=True,
    metavar="MODELS",
    help="Only these: name, +name, name+, tag:x, path:x; may be given again. All, if left out.",
)
@click.option(
    "--catalog",
    type=click.Path(path_type=Path),
    help="Columns' types, from `dbt docs generate`. [default: catalog.json beside the manifest]",
)
@click.option("--pipeline", default="", help="The pipeline's name. [default: the dbt project's]")
@click.option("--force", is_flag=True, help="Replace the pipeline's file.")
@config_option
@debug_option
def dbt(
    manifest: Path,
    selectors: tuple[str, ...],
    catalog: Path | None,
    pipeline: str,
    force: bool,
    config: str,
) -> None:
    """Write a pipeline with a view for each model of a dbt project.

    MANIFEST is target/manifest.json, as `dbt compile --full-refresh` writes it. The dbt project is
    not changed.
    """
    from sluice.dbt.importing import import_project
    from sluice.dbt.pipeline import lines
    from sluice.gate.review import mistakes

    target = (Path(config), pipeline)
    file, imported = import_project(manifest, catalog, selectors, target, mistakes, force=force)
    tables = (pluralize(len(t), name[:-1]) for name, t in imported.sections.items() if t)
    click.echo(f"wrote {file}: {', '.join(tables)}")
    for line in lines(imported.report):
        click.echo(line)
    click.echo(f"next: {imported.next_steps}")
