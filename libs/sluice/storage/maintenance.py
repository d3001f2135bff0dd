"""Upkeep of a table that changes no row: many small files become few.

The commit carries the table's position on, so a batch that follows begins where it would have
begun; the change feed does not see it. A writer that comes in between wins, and the upkeep is
left for the next time.
"""

import uuid
from dataclasses import replace

from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import DeltaError

from sluice.storage.position import head_as_found

MANY_FILES = 32


def compact(uri: str, many: int = MANY_FILES) -> int:
    """How many files were replaced by larger ones; none if there are fewer than `many`."""
    before = head_as_found(uri)
    if before is None or before.position is None:
        return 0
    table = DeltaTable(uri, version=before.version)
    if len(table.file_uris()) < many:
        return 0
    attempt = uuid.uuid4().hex
    moved = replace(before.position, kind="compact", attempt=attempt, after=before.version)
    position = moved.without_change(before.data_version)
    metadata = {"userMetadata": position.to_json()}
    properties = CommitProperties(custom_metadata=metadata, max_commit_retries=0)
    try:
        done = table.optimize.compact(commit_properties=properties)
    except DeltaError:
        return 0
    return int(done["numFilesRemoved"])
