"""Checks of delivered rows: their key, order and change, and their columns' names in files."""

from sluice.declare.declared import Declared
from sluice.declare.resolution.scope import Scope, TableMistakes
from sluice.language.names import RESERVED_PREFIX, unknown
from sluice.language.typed.types import head


def check_columns(spec: Declared, report: TableMistakes) -> None:
    """Note columns that can't serve as key, sequence or change, or can't be found in files."""
    scope = Scope(spec.types)
    scope.check_key(spec.key, report, "key")
    scope.check_key(spec.sequence, report, "sequence")
    if spec.change:
        scope.check_names([spec.change.column], report, "change", "column")
        _check_change_column(spec.change.column, spec, report)
    _check_names(spec, report)


def _check_change_column(column: str, spec: Declared, report: TableMistakes) -> None:
    if column in (*spec.key, *spec.sequence):
        report.add(
            ("change", "column"), f"{column} holds the row's operation, so it can't be a key"
        )
    if head(spec.types.get(column, "STRING")) not in ("STRING", "CHAR", "VARCHAR"):
        type_ = spec.types[column]
        report.add(
            ("change", "column"), f"{column} is {type_}; the column of `change` must be a STRING"
        )


def _check_names(spec: Declared, report: TableMistakes) -> None:
    """Note names of no declared column, of no column in a file, and of one that has two names."""
    seen = {name: name for name in spec.types if name not in spec.names}
    for column, theirs in spec.names.items():
        if column not in spec.types:
            report.add(("names", column), unknown("column", column, spec.types))
            continue
        if not theirs or theirs.lower().startswith(RESERVED_PREFIX):
            report.add(("names", column), f"{theirs!r} can't be the name of a file's column")
        other = seen.setdefault(theirs.lower(), column)  # Spark does not distinguish capitals
        if other != column:
            report.add(("names", column), f"column {other} is read from {theirs!r} already")
    if spec.names and spec.format == "csv" and not _has_header(spec):
        report.add(
            ("names",), "a file without a header has no names: its columns are read in order"
        )


def _has_header(spec: Declared) -> bool:
    return spec.options.get("header", "true").lower() == "true"
