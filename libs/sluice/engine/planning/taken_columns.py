"""Columns of a table beyond the declared ones: its deliveries have taken them from files."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pyspark.sql.types import StructType

from sluice.declare.declared import Column, Declared
from sluice.declare.table import Table
from sluice.delta.log.position import head
from sluice.delta.places.lake_layout import LakeLayout
from sluice.delta.writing.schema_evolution import columns_at
from sluice.language.names import RESERVED_PREFIX


def grown(lake: LakeLayout, table: Table) -> Table:
    """Return the table with the columns that the deliveries kept beside it have taken."""
    if not isinstance(table.spec, Declared) or table.delivered_to == table.id:
        return table
    deliveries = columns_at(head(lake.uri(table.delivered_to)))
    return widened(table, beyond(table.spec.types, deliveries))


def widened(table: Table, columns: Iterable[Column]) -> Table:
    """Return the table with further columns."""
    more = {c.name: c.type for c in columns}
    return replace(table, columns={**table.columns, **more}, taken=frozenset(more))


def beyond(declared: Mapping[str, str], stored: StructType) -> Iterable[Column]:
    """Yield the visible stored columns that are not declared."""
    for field in stored.fields:
        if field.name not in declared and not field.name.startswith(RESERVED_PREFIX):
            type_ = field.dataType.simpleString()
            yield Column(name=field.name, type=type_ if "<" in type_ else type_.upper())
