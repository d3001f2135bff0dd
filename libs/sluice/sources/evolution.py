"""Columns that files bring beyond the declared ones, if a source takes them (`evolve: true`).

A column that was taken belongs to the table from then on. Rows delivered before are null in it; a
file that lacks it is read as one of nulls. A file with another kind of type stops the batch.
Parquet states a column's type; CSV and JSON bring texts. Views read only the columns that they
name, so a taken column does not affect them until it is declared.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from sluice.declare.declared import Column, Declared
from sluice.declare.table import Table
from sluice.delta.log.position import head
from sluice.delta.places.lake_layout import LakeLayout
from sluice.delta.writing.schema_evolution import add_columns, columns_at
from sluice.engine.planning.taken_columns import beyond, grown
from sluice.files.filehead import FileHead
from sluice.files.formats import json_lines
from sluice.files.json_texts import names_of_lines
from sluice.files.parquet_types import NANOS, VOID
from sluice.language.names import check_name
from sluice.language.typed.coercion import common
from sluice.language.typed.types import INTEGERS
from sluice.sources.spec import Source

IN_UTC = (NANOS, "TIMESTAMP_NTZ")


@dataclass(frozen=True)
class ExtraColumns:
    """Columns beyond the declared ones: those of the table, and those that are new to it."""

    known: tuple[Column, ...] = ()
    new: tuple[Column, ...] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.known, *self.new)

    @property
    def warnings(self) -> tuple[str, ...]:
        named = ", ".join(f"{c.name} {c.type}" for c in self.new)
        return (f"columns that `schema` lacks were added to the table: {named}",) if named else ()


def taken(
    session: SparkSession, spec: Declared, heads: Sequence[FileHead], stored: StructType
) -> ExtraColumns:
    """Return the columns that the source takes of these files. One Spark job, for JSON only."""
    known = tuple(beyond(spec.types, stored))
    if not isinstance(spec, Source) or not spec.evolve or not heads:
        return ExtraColumns(known)
    brought = _json(session, spec, heads) if spec.format == "json" else _typed(heads)
    have = {*spec.types, *spec.of_files, *(c.name for c in known)}
    new = (Column(name=n, type=t) for n, t in sorted(brought.items()) if n not in have)
    return ExtraColumns(known, tuple(new))


def grow(lake: LakeLayout, table: Table) -> Table:
    """Return the table as `grown` does, after adding the columns to its rows. Raises LostRace."""
    wide, before = grown(lake, table), head(lake.uri(table.id))
    if before and wide.taken:
        deliveries = columns_at(head(lake.uri(table.delivered_to)))
        add_columns(before, StructType([f for f in deliveries if f.name in wide.taken]))
    return wide


def _typed(heads: Sequence[FileHead]) -> dict[str, str]:
    """Return names with types; STRING if the files have none."""
    found: dict[str, str] = {}
    for one in heads:
        types = one.types or ("STRING",) * len(one.names)
        for name, type_ in zip(one.names, types, strict=True):
            if type_ and VOID not in type_ and _may_be_taken(name):
                plain = "TIMESTAMP" if type_ in IN_UTC else type_
                found[name] = _wider(found.get(name, plain), plain)
    return found


def _wider(left: str, right: str) -> str:
    """Return the type for both; DOUBLE for what pandas writes: integers, or floats beside nulls."""
    if {left, right} <= {*INTEGERS, "FLOAT", "DOUBLE"} and left != right:
        return common((left, right)) or "DOUBLE"
    return common((left, right)) or left


def _json(session: SparkSession, spec: Source, heads: Sequence[FileHead]) -> dict[str, str]:
    names = names_of_lines(json_lines(session, spec, heads), spec)
    return {name: "STRING" for name in names if _may_be_taken(name)}


def _may_be_taken(name: str) -> bool:
    """True if a table's column may have this name."""
    try:
        return bool(check_name(name))
    except ValueError:
        return False
