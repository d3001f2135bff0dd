"""A stream's checkpoint, and a test that it filled the table beside it.

Structured Streaming keeps the query's id in the checkpoint, and Delta's sink numbers its commits
under that id: so an append happens only once. A checkpoint whose id the table lacks is a new one,
and would read everything again.
"""

import json

from sluice.delta.places.stores import located, open_table


def query_id(uri: str) -> str | None:
    """Return the id of the query of the checkpoint at `uri`; None if there is none."""
    filesystem, path = located(uri)
    try:
        with filesystem.open_input_stream(f"{path}/metadata") as stream:
            found = json.loads(stream.read())
    except (FileNotFoundError, ValueError):
        return None
    return str(found["id"])


def has_written(table_uri: str, query: str) -> bool:
    """True if that query's commits are in the table."""
    return open_table(table_uri).transaction_version(query) is not None
