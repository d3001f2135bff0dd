"""Checks of delivered rows: their key, their order, and the column that says what a row does."""

from sluice.declare.declared import Declared
from sluice.declare.resolution.scope import Report, Scope
from sluice.language.types import head


def check_columns(spec: Declared, report: Report) -> None:
    """Note columns that can't serve as key, sequence or change."""
    scope = Scope(spec.types)
    scope.check_key(spec.key, report, "key")
    scope.check_key(spec.sequence, report, "sequence")
    if spec.change:
        scope.check_names([spec.change.column], report, "change", "column")
        _check_change_column(spec.change.column, spec, report)


def _check_change_column(column: str, spec: Declared, report: Report) -> None:
    if column in (*spec.key, *spec.sequence):
        report.add(("change", "column"), f"{column} says what a row does: it can't be a key too")
    if head(spec.types.get(column, "STRING")) not in ("STRING", "CHAR", "VARCHAR"):
        type_ = spec.types[column]
        report.add(("change", "column"), f"{column} is {type_}; the words of a change are a STRING")
