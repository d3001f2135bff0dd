"""The files that a version of a table consists of, as Arrow."""

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable


def active_files(table: DeltaTable) -> pa.Table:
    """Return a row for each file: `path`, `size_bytes`, `num_records`, and statistics by name.

    Names are those of deltalake's flattened actions: `min.<column>`, `partition.<column>`. Bounds
    of dates are left out where Python has no such dates.
    """
    files = as_table(table.get_add_actions(flatten=True))
    return files.drop_columns([n for n in files.column_names if not _is_held(files[n])])


def _is_held(column: pa.ChunkedArray) -> bool:
    if not pa.types.is_temporal(column.type):
        return True
    try:
        pc.min_max(column).as_py()
    except OverflowError:
        return False
    return True


def as_table(stream: object) -> pa.Table:
    """Return a table that another library passes as a stream of Arrow.

    `pa.table` would import pandas, a third of a second, to check for its types.
    """
    return pa.RecordBatchReader.from_stream(stream).read_all()
