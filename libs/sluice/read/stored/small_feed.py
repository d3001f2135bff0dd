"""Small changes of a table between two versions, as Arrow and without Spark."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import DeltaError

from sluice.changes.feed_columns import CHANGE_TYPE, GOES
from sluice.delta.log.feed_size import feed_size
from sluice.delta.reading.feed import stream_feed
from sluice.limits import Limits
from sluice.read.stored.snapshot import open_delta


def small_feed(
    name: str, uri: str, after: int, upto: int, columns: Sequence[str], limits: Limits
) -> tuple[pa.Table, pa.Table] | None:
    """Return these columns of the rows removed and of the rows added in versions (after, upto].

    None if they are many, or can no longer be read.
    """
    fields = [pa.schema(open_delta(name, uri, upto).schema().to_arrow()).field(c) for c in columns]
    if after == upto:
        return pa.schema(fields).empty_table(), pa.schema(fields).empty_table()
    try:
        if feed_size(uri, after, upto).bytes > limits.swept_feed_bytes:
            return None
        delta = open_delta(name, uri, upto)
        changes = stream_feed(delta, after, upto, [CHANGE_TYPE, *columns]).read_all()
    except (DeltaError, pa.ArrowException, OSError, KeyError):
        return None
    kinds = changes[CHANGE_TYPE].cast(pa.string())
    went = pc.is_in(kinds, pa.array(GOES))
    rows = changes.select(columns).cast(pa.schema(fields))
    return rows.filter(went), rows.filter(pc.invert(went))
