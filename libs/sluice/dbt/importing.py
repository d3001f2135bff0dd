"""Import of a dbt project: from its manifest to a pipeline's file."""

from collections.abc import Iterable
from pathlib import Path

from sluice.dbt.artifacts import COMPILE, DbtProject, read
from sluice.dbt.import_report import lines
from sluice.dbt.pipeline import Imported, finder
from sluice.dbt.pipeline_file import check_free, text_of, write
from sluice.dbt.selection import selected
from sluice.dbt.table_names import clean
from sluice.declare.resolution.scope import Review
from sluice.errors import UsageError
from sluice.language.names import check_name


def import_project(
    manifest: Path,
    catalog: Path | None,
    selectors: Iterable[str],
    target: tuple[Path, str],
    review: Review,
    *,
    force: bool,
) -> tuple[Path, Imported]:
    """Write the pipeline's file, and return it with its tables.

    `target`: the folder of the configuration, and the pipeline's name, '' for dbt's own. Raises
    UsageError, before anything is written, if the project can't be imported.
    """
    project = read(manifest, catalog or _beside(manifest))
    config, name = target[0], _name(target[1] or clean(project.name))
    file = config / "pipelines" / f"{name}.yaml"
    check_free(file, force=force)
    chosen = selected(project.nodes, selectors)
    _check_compiled(project, chosen, manifest)
    imported = Imported(project, name, finder(manifest, config.resolve().parent), review)
    imported.add(chosen)
    if not imported.report.views:
        why = "\n".join(lines(imported.report))
        raise UsageError(
            f"none of these models can be a view, so nothing was written\n{why}",
            hint="docs/from_dbt.md says what a model may have",
        )
    write(file, text_of(imported))
    return file, imported


def _beside(manifest: Path) -> Path | None:
    catalog = manifest.with_name("catalog.json")
    return catalog if catalog.exists() else None


def _name(name: str) -> str:
    try:
        return check_name(name)
    except ValueError as error:
        raise UsageError(f"--pipeline {error}") from None


def _check_compiled(project: DbtProject, chosen: list[str], manifest: Path) -> None:
    """Raise UsageError if no chosen model is there, or none is compiled."""
    models = [node for i in chosen if (node := project.nodes[i]).type == "model" and node.is_in_sql]
    if not models:
        raise UsageError(f"{manifest} has no model in SQL among those chosen", hint=COMPILE)
    if not any(model.sql.strip() for model in models):
        raise UsageError(
            f"{manifest} has no compiled SQL, as after `dbt parse`",
            hint=COMPILE,
        )
