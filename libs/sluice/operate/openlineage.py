"""OpenLineage's events: jobs are tables, runs are their batches, datasets are versions of tables.

Versions are those that a batch's commit records as its position, whoever has made the commit.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from importlib.metadata import version as version_of
from typing import Any

from openlineage.client import event_v2, set_producer
from openlineage.client import facet_v2 as facets

from sluice.declare.column_lineage import InputColumn, made_from
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.position import Position
from sluice.delta.places.lake_layout import layout
from sluice.engine import BatchReport
from sluice.extras import DISTRIBUTION
from sluice.language.names import declared_id
from sluice.operate.delivering import delivering
from sluice.read.commits import commit

PARENT = "OPENLINEAGE_PARENT_ID"  # namespace/job/run, as other integrations have it
set_producer(f"https://pypi.org/project/{DISTRIBUTION}/{version_of(DISTRIBUTION)}")


def start_event(project: Project, table: Table, run: str, at: datetime) -> event_v2.RunEvent:
    """Return the event of a batch that begins; which versions it reads is not known yet."""
    return _event("START", table, run, at, {}, **_unversioned(project, table))


def complete_event(
    project: Project,
    table: Table,
    run: str,
    at: datetime,
    report: BatchReport,
    behind: Sequence[BatchReport],
) -> event_v2.RunEvent:
    """Return the event of a finished batch; `behind`: those of the view's internal tables."""
    reports = [*behind, report]
    committed = [one for one in reports if one.outcome in ("committed", "position")]
    about = facets.nominal_time_run.NominalTimeRunFacet
    nominal = {"nominalTime": about(*report.interval)} if report.interval else {}
    inputs = list(_inputs(project, table, reports))
    outputs = [_output_of(project, table, report)] if committed else []
    return _event("COMPLETE", table, run, at, nominal, inputs=inputs, outputs=outputs)


def fail_event(
    project: Project, table: Table, run: str, at: datetime, error: str
) -> event_v2.RunEvent:
    """Return the event of a batch that failed."""
    message = facets.error_message_run.ErrorMessageRunFacet(error, "PYTHON")
    of_error = {"errorMessage": message}
    return _event("FAIL", table, run, at, of_error, **_unversioned(project, table))


def _unversioned(project: Project, table: Table) -> dict[str, Any]:
    """Return what a table reads and writes, without the versions of a commit."""
    inputs = [_dataset(project, name) for name in _list_stored_inputs(project, table)]
    return {"inputs": inputs, "outputs": [_output(project, table, table.id, {})]}


def _event(
    kind: str, table: Table, run: str, at: datetime, run_facets: Mapping[str, Any], **datasets: Any
) -> event_v2.RunEvent:
    namespace = os.environ.get("OPENLINEAGE_NAMESPACE", "default")
    engine = facets.processing_engine_run.ProcessingEngineRunFacet(
        version_of(DISTRIBUTION), "Sluice"
    )
    job_type = facets.job_type_job.JobTypeJobFacet("BATCH", "SLUICE", "TABLE")
    return event_v2.RunEvent(
        eventType=event_v2.RunState(kind),
        eventTime=at.isoformat(),
        run=event_v2.Run(run, {**run_facets, **_parent(), "processing_engine": engine}),
        job=event_v2.Job(namespace, table.id, {"jobType": job_type}),
        **datasets,
    )


def _parent() -> dict[str, Any]:
    """Return the task that has started the process, if known."""
    parts = os.environ.get(PARENT, "").rsplit("/", 2)
    if len(parts) < 3 or not all(parts):
        return {}
    namespace, name, run = parts
    parent = facets.parent_run
    return {"parent": parent.ParentRunFacet(parent.Run(run), parent.Job(namespace, name))}


def _list_stored_inputs(project: Project, table: Table) -> tuple[str, ...]:
    """Return the ids of the stored tables that a table reads, also through others."""
    return project.graph.stored(sorted(table.reads & project.graph.tables.keys()))


def _inputs(
    project: Project, table: Table, reports: Sequence[BatchReport]
) -> Iterator[event_v2.InputDataset]:
    """Yield the input versions that the last commit reflects; for a sole input, the rows read."""
    positions = list(_positions(project, table, reports[-1]))
    versions = {i: v for _, pins in positions for i, v in pins if not _is_own(table, i)}
    rows = next((one.rows_in for one in reports if one.rows_in is not None), None)
    for name in _list_stored_inputs(project, table):
        known = {"version": _version(versions[name])} if name in versions else {}
        count = facets.input_statistics_input_dataset.InputStatisticsInputDatasetFacet(rows)
        is_only = rows is not None and len(versions) == 1
        yield _dataset(project, name, known, {"inputStatistics": count} if is_only else {})
    if table.is_delivered and (outside := delivering(table).address(project, table)):
        count = facets.input_statistics_input_dataset.InputStatisticsInputDatasetFacet(rows)
        counted = {"inputStatistics": count} if rows is not None else {}
        places = (position.topic for position, _ in positions)
        read = next((place["versions"] for place in places if "versions" in place), None)
        known = {"version": _version(int(read[1]))} if read else {}  # of another's table
        yield event_v2.InputDataset(*_place(outside), facets=known, inputFacets=counted)


def _positions(
    project: Project, table: Table, report: BatchReport
) -> Iterator[tuple[Position, list[tuple[str, int]]]]:
    """Yield a commit's position with the versions that it pins; then those of internal tables."""
    waiting = [(report.table, report.version)]
    while waiting:
        name, version = waiting.pop()
        made = commit(layout(project).uri(name), version) if version is not None else None
        if made and made.position:
            both = (made.position.inputs, made.position.references)
            pins = [(one, pin.version) for some in both for one, pin in some.items()]
            waiting += [(one, at) for one, at in pins if _is_own(table, one)]
            yield made.position, pins


def _is_own(table: Table, name: str) -> bool:
    return name != declared_id(name) and declared_id(name) == table.id


def _output_of(project: Project, table: Table, report: BatchReport) -> event_v2.OutputDataset:
    """Return the version that a batch has made, with the rows of its changelog."""
    known, made = {}, None
    if report.version is not None:
        known = {"version": _version(report.version)}
        made = commit(layout(project).uri(report.table), report.version)
    statistics = facets.output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
        rowCount=report.rows_out, size=made.written if made else None
    )
    return _output(project, table, report.table, known, {"outputStatistics": statistics})


def _output(
    project: Project,
    table: Table,
    stored_as: str,
    known: Mapping[str, Any],
    counts: Mapping[str, Any] | None = None,
) -> event_v2.OutputDataset:
    found = {**known, **_about(table)}
    if lineage := _columns(project, table):
        found["columnLineage"] = lineage
    where = _place(layout(project).uri(stored_as))
    return event_v2.OutputDataset(*where, facets=found, outputFacets=dict(counts or {}))


def _dataset(
    project: Project,
    name: str,
    known: Mapping[str, Any] | None = None,
    counts: Mapping[str, Any] | None = None,
) -> event_v2.InputDataset:
    found = {**(known or {}), **_about(project.graph.tables[name])}
    where = _place(layout(project).uri(name))
    return event_v2.InputDataset(*where, facets=found, inputFacets=dict(counts or {}))


def _about(table: Table) -> dict[str, Any]:
    schema = facets.schema_dataset
    columns = [schema.SchemaDatasetFacetFields(n, t or None) for n, t in table.columns.items()]
    storage = facets.storage_dataset.StorageDatasetFacet("delta", "parquet")
    return {"schema": schema.SchemaDatasetFacet(columns), "storage": storage}


def _version(number: int) -> Any:
    return facets.dataset_version_dataset.DatasetVersionDatasetFacet(str(number))


def _columns(project: Project, table: Table) -> Any:
    """Return the input columns of each column, as far as its expressions show them."""
    lineage, made = facets.column_lineage_dataset, made_from(table, project.graph)
    fields = {
        name: lineage.Fields([_field(project, columns[place]) for place in sorted(columns)])
        for name in table.columns
        if (
            columns := {(c.table, c.column): c for c in _stored_behind(project, made.get(name, ()))}
        )
    }
    return lineage.ColumnLineageDatasetFacet(fields) if fields else None


def _stored_behind(project: Project, columns: Iterable[InputColumn]) -> Iterator[InputColumn]:
    """Yield the columns of stored tables that these come from."""
    for one in columns:
        table = project.graph.tables[one.table]
        if table.is_stored:
            yield one
            continue
        below = made_from(table, project.graph).get(one.column, ())
        same = (InputColumn(b.table, b.column, b.is_same and one.is_same) for b in below)
        yield from _stored_behind(project, same)


def _field(project: Project, one: InputColumn) -> Any:
    lineage = facets.column_lineage_dataset
    subtype = "IDENTITY" if one.is_same else "TRANSFORMATION"
    how = lineage.Transformation("DIRECT", subtype)
    return lineage.InputField(*_place(layout(project).uri(one.table)), one.column, [how])


def _place(uri: str) -> tuple[str, str]:
    scheme, separator, path = uri.partition("://")
    if not separator or scheme == "file":
        return "file", (path if separator else uri).rstrip("/")
    bucket, _, key = path.partition("/")
    return f"{scheme}://{bucket}", key.rstrip("/") or "/"
