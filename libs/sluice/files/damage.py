"""Damaged files: those whose head can be read, but not all of their rows.

Only reading a file to its end shows that. So nothing is checked in advance: a batch that meets such
a file looks for all of them here, and begins again with their faults.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow.parquet as pq
from pyarrow.fs import FileSystem

from sluice.declare.declared import Declared
from sluice.delta.places.landed_files import LandedFile
from sluice.files.filehead import Unreadable, opened

ROWS = 65_536
UNKNOWN = "not yet implemented"  # in a file that Arrow can't read, but perhaps Spark


def with_faults(spec: Declared, files: Sequence[LandedFile]) -> tuple[LandedFile, ...]:
    """Return the files, the damaged ones with their faults."""
    if spec.format != "parquet":
        return tuple(files)
    return tuple(file if file.fault else replace(file, fault=_fault(spec, file)) for file in files)


def _fault(spec: Declared, file: LandedFile) -> str:
    """Read the declared columns to their end; return why that fails, '' if it does not."""

    def read(filesystem: FileSystem, path: Any) -> None:
        with filesystem.open_input_file(path) as found:
            parquet = pq.ParquetFile(found)
            names = [name for name in spec.of_files if name in parquet.schema_arrow.names]
            for batch in parquet.iter_batches(ROWS, columns=names):
                batch.validate(full=True)

    try:
        opened(file, read)
    except Unreadable as error:
        return "" if UNKNOWN in str(error).lower() else str(error)
    return ""
