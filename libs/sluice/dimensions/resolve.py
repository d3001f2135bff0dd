"""Resolution of dimensions."""

from collections.abc import Iterator, Mapping

from sluice.declare.resolution.delivered_columns import check_columns
from sluice.declare.resolution.scope import Scope, TableMistakes
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
    mistakes: TableMistakes,
) -> Table:
    """Return a dimension's table; with history, it has a row per version."""
    for where, message in _useless(spec):
        mistakes.add(where, message)
    check_columns(spec, mistakes)
    if spec.valid_from:
        Scope(spec.types).check_time(spec.valid_from, mistakes, "valid_from")
    if not spec.history:
        return Table(spec.name, spec.pipeline, spec.KIND, spec.row_types, spec.key, spec)
    _check_history(spec, mistakes)
    columns = {**spec.row_types, **HISTORY_COLUMNS}
    return Table(spec.name, spec.pipeline, spec.KIND, columns, (*spec.key, "valid_from"), spec)


def _useless(spec: Dimension) -> Iterator[tuple[Where, str]]:
    """Yield settings without effect, and unsupported formats."""
    if spec.format == "kafka":
        yield ("format",), f"a dimension is loaded whole, and a topic has no end: {INSTEAD}"
    elif spec.format == "jdbc" and spec.path:
        yield ("path",), "a database has no path: name its table in `options` (dbtable or query)"


def _check_history(spec: Dimension, mistakes: TableMistakes) -> None:
    taken = [name for name in HISTORY_COLUMNS if name in spec.types and name != spec.valid_from]
    if taken:
        mistakes.add(("schema",), f"history: true adds the columns {', '.join(taken)} itself")
