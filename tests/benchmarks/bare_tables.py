"""Tables that are written without a pipeline: what storage costs by itself."""

import uuid
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, write_deltalake

from sluice.delta.log.actions import Log
from sluice.delta.log.position import Head, Position, head
from sluice.delta.reading.spark_reads import PROPERTIES
from sluice.delta.writing.statistics import writer_properties


def new_uri(folder: Path) -> str:
    """Where no table is yet."""
    return str(folder / uuid.uuid4().hex[:8])


def append(uri: str, rows: pa.Table, by: Sequence[str] = ()) -> None:
    """Write rows as one file a partition; the first rows make the table."""
    write_deltalake(
        uri,
        rows,
        mode="append",
        partition_by=list(by) or None,
        configuration=PROPERTIES,
        writer_properties=writer_properties(rows.schema),
        commit_properties=CommitProperties(custom_metadata={"userMetadata": position(1).to_json()}),
    )


def existing_head(uri: str) -> Head:
    """Where a table stands that is there."""
    found = head(uri)
    assert found is not None
    return found


def position(batch: int) -> Position:
    """Of a batch that no source takes part in."""
    return Position(batch, uuid.uuid4().hex, "ingest")


def megabytes(uri: str, version: int) -> float:
    """What a commit wrote: rows and change feed."""
    actions = Log(uri).actions(version)
    written = [action[kind] for action in actions for kind in ("add", "cdc") if kind in action]
    return float(sum(file["size"] for file in written)) / 1e6
