"""Command `import`: take over a project of another tool."""

from pathlib import Path

import click

from sluice.dbt.import_report import lines
from sluice.dbt.importing import import_project
from sluice.terminal.options import config_option, debug_option
from sluice.terminal.output import counted


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
    from sluice.gate.review import mistakes

    target = (Path(config), pipeline)
    file, imported = import_project(manifest, catalog, selectors, target, mistakes, force=force)
    tables = (counted(len(t), name[:-1]) for name, t in imported.sections.items() if t)
    click.echo(f"wrote {file}: {', '.join(tables)}")
    for line in lines(imported.report):
        click.echo(line)
    click.echo(f"next: {imported.next_steps}")
