"""Resolution of dimensions."""

from collections.abc import Iterator, Mapping

from sluice.declare.resolution.declared import check_columns
from sluice.declare.resolution.scope import Report, Scope
from sluice.declare.table import Table
from sluice.declare.text.document import Where
from sluice.dimensions.spec import HISTORY_COLUMNS, Dimension

INSTEAD = (
    "use json, csv, parquet, delta, jdbc; or read the topic as a source with a `key`, and join it "
    "by a view of kind join"
)


def resolve(
    spec: Dimension,
    inputs: Mapping[Where, Table],  # noqa: ARG001
    report: Report,
) -> Table:
    """Return a dimension's table; with history, it has a row per version."""
    for where, message in _useless(spec):
        report.add(where, message)
    check_columns(spec, report)
    if spec.valid_from:
        Scope(spec.types).check_time(spec.valid_from, report, "valid_from")
    if not spec.history:
        return Table(spec.name, spec.pipeline, spec.KIND, spec.row_types, spec.key, spec)
    _check_history(spec, report)
    columns = {**spec.row_types, **HISTORY_COLUMNS}
    return Table(spec.name, spec.pipeline, spec.KIND, columns, (*spec.key, "valid_from"), spec)


def _useless(spec: Dimension) -> Iterator[tuple[Where, str]]:
    """Yield settings without effect, and unsupported formats."""
    if spec.format == "kafka":
        yield ("format",), f"a dimension is loaded whole, and a topic has no end: {INSTEAD}"
    elif spec.format == "jdbc" and spec.path:
        yield ("path",), "a database has no path: name its table in `options` (dbtable or query)"


def _check_history(spec: Dimension, report: Report) -> None:
    taken = [name for name in HISTORY_COLUMNS if name in spec.types and name != spec.valid_from]
    if taken:
        report.add(("schema",), f"history: true adds the columns {', '.join(taken)} itself")
