"""The columns of a stored table; they are added by a separate commit that changes no row.

That commit repeats the table's position, so the next batch begins where it would have begun.
Readers of the change feed don't see it. Existing rows are null in a new column.
"""

import uuid
from dataclasses import replace

from deltalake import CommitProperties, Schema
from pyspark.sql.types import StructType

from sluice.delta.log.lost_race import lost_race_of
from sluice.delta.log.opened import opened
from sluice.delta.log.position import CREATE, Head, Position, head_of
from sluice.delta.places.delta_rs import open_table
from sluice.delta.places.failpoint import passing
from sluice.delta.reading.local import nullable, spark_schema

GROW = "grow"


def columns_at(before: Head | None) -> StructType:
    """Return the columns of a table as of its head; none if there is no table."""
    if before is None:
        return StructType()
    return spark_schema(opened(before.uri, before.version))


def add_columns(before: Head, wanted: StructType) -> Head:
    """Add those of these columns that the table lacks, and return its head. Raises LostRace."""
    had = columns_at(before).names
    missing = [field for field in nullable(wanted).fields if field.name not in had]
    if not missing:
        return before
    table = open_table(before.uri, version=before.version)
    fields = Schema.from_json(StructType(missing).json()).fields
    with lost_race_of(before.uri, before.version):
        table.alter.add_columns(fields, commit_properties=_properties(before))
    passing("grown", before.uri)
    return head_of(opened(before.uri), before.uri)


def _properties(before: Head) -> CommitProperties:
    moved = before.position or Position(0, "", CREATE)
    kind = GROW if before.is_filled else CREATE
    position = replace(moved, kind=kind, attempt=uuid.uuid4().hex, after=before.version)
    metadata = {"userMetadata": position.without_change(before.data_version).to_json()}
    return CommitProperties(custom_metadata=metadata, max_commit_retries=0)
