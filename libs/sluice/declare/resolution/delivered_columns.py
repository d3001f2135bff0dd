"""Checks of delivered rows: their key, order and change, and their columns' names in files."""

from sluice.declare.declared import Declared
from sluice.declare.resolution.scope import Scope, TableMistakes
from sluice.language.names import RESERVED_PREFIX, unknown
from sluice.language.typed.types import base_name


def check_columns(spec: Declared, mistakes: TableMistakes) -> None:
    """Note columns that can't serve as key, sequence or change, or can't be found in files."""
    scope = Scope(spec.types)
    scope.check_key(spec.key, mistakes, "key")
    scope.check_key(spec.sequence, mistakes, "sequence")
    if spec.change:
        scope.check_names([spec.change.column], mistakes, "change", "column")
        _check_change_column(spec.change.column, spec, mistakes)
    _check_names(spec, mistakes)


def _check_change_column(column: str, spec: Declared, mistakes: TableMistakes) -> None:
    if column in (*spec.key, *spec.sequence):
        mistakes.add(
            ("change", "column"), f"{column} holds the row's operation, so it can't be a key"
        )
    if base_name(spec.types.get(column, "STRING")) not in ("STRING", "CHAR", "VARCHAR"):
        type_ = spec.types[column]
        mistakes.add(
            ("change", "column"), f"{column} is {type_}; the column of `change` must be a STRING"
        )


def _check_names(spec: Declared, mistakes: TableMistakes) -> None:
    """Note names of no declared column, of no column in a file, and of one that has two names."""
    seen = {name: name for name in spec.types if name not in spec.names}
    for column, theirs in spec.names.items():
        if column not in spec.types:
            mistakes.add(("names", column), unknown("column", column, spec.types))
            continue
        if not theirs or theirs.lower().startswith(RESERVED_PREFIX):
            mistakes.add(("names", column), f"{theirs!r} can't be the name of a file's column")
        other = seen.setdefault(theirs.lower(), column)  # Spark does not distinguish capitals
        if other != column:
            mistakes.add(("names", column), f"column {other} is read from {theirs!r} already")
    if spec.names and spec.format == "csv" and not _has_header(spec):
        mistakes.add(
            ("names",), "a file without a header has no names: its columns are read in order"
        )


def _has_header(spec: Declared) -> bool:
    return spec.options.get("header", "true").lower() == "true"
