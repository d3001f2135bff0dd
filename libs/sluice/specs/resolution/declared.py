"""Sources and dimensions: what their tables look like."""

from sluice.specs.dimension import HISTORY_COLUMNS, Dimension
from sluice.specs.resolution.effect import check_effect
from sluice.specs.resolution.scope import Report, Scope
from sluice.specs.source import Source
from sluice.specs.table import HIDDEN_TYPES, INTERVAL, ROW_ID, Table
from sluice.specs.types import head


def resolve_source(spec: Source, report: Report) -> Table:
    """A source's table: its columns without the one that says what a row does."""
    check_effect(spec, report)
    _check_columns(spec, report)
    if spec.time:
        Scope(spec.types).check_time(spec.time, report, "time")
    key = spec.key or (INTERVAL, ROW_ID)
    hidden = {name: HIDDEN_TYPES[name] for name in key if name in HIDDEN_TYPES}
    return Table(spec.name, spec.pipeline, "source", _kept(spec), key, spec, hidden=hidden)


def resolve_dimension(spec: Dimension, report: Report) -> Table:
    """A dimension's table; with history, a row per version."""
    check_effect(spec, report)
    _check_columns(spec, report)
    if spec.valid_from:
        Scope(spec.types).check_time(spec.valid_from, report, "valid_from")
    if not spec.history:
        return Table(spec.name, spec.pipeline, "dimension", _kept(spec), spec.key, spec)
    _check_history(spec, report)
    columns = {**_kept(spec), **HISTORY_COLUMNS}
    return Table(spec.name, spec.pipeline, "dimension", columns, (*spec.key, "valid_from"), spec)


def _kept(spec: Source | Dimension) -> dict[str, str]:
    change = spec.change.column if spec.change else None
    return {name: type_ for name, type_ in spec.types.items() if name != change}


def _check_columns(spec: Source | Dimension, report: Report) -> None:
    scope = Scope(spec.types)
    scope.check_key(spec.key, report, "key")
    scope.check_key(spec.sequence, report, "sequence")
    if spec.change:
        scope.check_names([spec.change.column], report, "change", "column")
        _check_change_column(spec.change.column, spec, report)


def _check_change_column(column: str, spec: Source | Dimension, report: Report) -> None:
    if column in (*spec.key, *spec.sequence):
        report.add(("change", "column"), f"{column} says what a row does: it can't be a key too")
    if head(spec.types.get(column, "STRING")) not in ("STRING", "CHAR", "VARCHAR"):
        type_ = spec.types[column]
        report.add(("change", "column"), f"{column} is {type_}; the words of a change are a STRING")


def _check_history(spec: Dimension, report: Report) -> None:
    taken = [name for name in HISTORY_COLUMNS if name in spec.types and name != spec.valid_from]
    if taken:
        report.add(("schema",), f"history: true adds the columns {', '.join(taken)} itself")
