"""A stream's checkpoint, and whether the table beside it was filled by it.

Structured Streaming keeps in the checkpoint who the query is, and Delta's sink numbers its commits
under that name: that is what makes an append happen once. A checkpoint that the table has never
heard of is a new one, and would read everything again.
"""

import json

from deltalake import DeltaTable
from pyarrow.fs import FileSystem, LocalFileSystem


def query_id(uri: str) -> str | None:
    """Who the query of the checkpoint at `uri` is; None if there is none."""
    filesystem, path = LocalFileSystem(), uri
    if "://" in uri:
        filesystem, path = FileSystem.from_uri(uri)
    try:
        with filesystem.open_input_stream(f"{path}/metadata") as stream:
            found = json.loads(stream.read())
    except (FileNotFoundError, ValueError):
        return None
    return str(found["id"])


def has_written(table_uri: str, query: str) -> bool:
    """Whether that query's commits are in the table."""
    return DeltaTable(table_uri).transaction_version(query) is not None
