"""Sources and dimensions: what their tables look like."""

from sluice.specs.dimension import HISTORY_COLUMNS, Dimension
from sluice.specs.resolution.scope import Report, Scope
from sluice.specs.source import Source
from sluice.specs.table import HIDDEN_TYPES, INTERVAL, ROW_ID, Table


def resolve_source(spec: Source, report: Report) -> Table:
    """A source's table: its columns without the one that says what a row does."""
    _check_columns(spec, report)
    if spec.time:
        Scope(spec.types).check_time(spec.time, report, "time")
    key = spec.key or (INTERVAL, ROW_ID)
    hidden = {name: HIDDEN_TYPES[name] for name in key if name in HIDDEN_TYPES}
    return Table(spec.name, spec.pipeline, "source", _kept(spec), key, spec, hidden=hidden)


def resolve_dimension(spec: Dimension, report: Report) -> Table:
    """A dimension's table; with history, a row per version."""
    _check_columns(spec, report)
    if spec.valid_from:
        Scope(spec.types).check_time(spec.valid_from, report, "valid_from")
    history = HISTORY_COLUMNS if spec.history else {}
    key = (*spec.key, "valid_from") if spec.history else spec.key
    return Table(spec.name, spec.pipeline, "dimension", {**_kept(spec), **history}, key, spec)


def _kept(spec: Source | Dimension) -> dict[str, str]:
    change = spec.change.column if spec.change else None
    return {name: type_ for name, type_ in spec.types.items() if name != change}


def _check_columns(spec: Source | Dimension, report: Report) -> None:
    scope = Scope(spec.types)
    scope.check_names(spec.key, report, "key")
    scope.check_names(spec.sequence, report, "sequence")
    if spec.change:
        scope.check_names([spec.change.column], report, "change", "column")
