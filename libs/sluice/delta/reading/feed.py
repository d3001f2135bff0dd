"""The change feed of a table without Spark, as a stream of Arrow."""

from collections.abc import Sequence

import pyarrow as pa
from deltalake import DeltaTable


def stream_feed(
    table: DeltaTable, after: int, upto: int, columns: Sequence[str] | None = None
) -> pa.RecordBatchReader:
    """Return the feed of versions (after, upto], or these columns of it.

    Raises DeltaError, or one of Arrow's errors while it is read, if a part of it is gone.
    """
    named = None if columns is None else [*columns]
    found = table.load_cdf(after + 1, upto, columns=named, allow_out_of_range=True)
    return pa.RecordBatchReader.from_stream(found)
