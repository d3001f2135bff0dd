"""The files that a version of a table consists of, as Arrow."""

import pyarrow as pa
from deltalake import DeltaTable


def active_files(table: DeltaTable) -> pa.Table:
    """Return a row for each file: `path`, `size_bytes`, `num_records`, and statistics by name.

    Names are those of deltalake's flattened actions: `min.<column>`, `partition.<column>`.
    """
    return as_table(table.get_add_actions(flatten=True))


def as_table(stream: object) -> pa.Table:
    """Return a table that another library hands over as a stream of Arrow.

    `pa.table` would import pandas, a third of a second, to see whether it was given one of its own.
    """
    return pa.RecordBatchReader.from_stream(stream).read_all()
