"""CSV files as Arrow reads them, but for numbers that begin with a zero: 00017 is a text."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
from pyarrow.compute import match_substring_regex

PADDED = r"^[+-]?0\d"


def read_csv(file: Path, *, convert_options: pc.ConvertOptions, **how: Any) -> pa.Table:
    """Read a file; a column of whole numbers, some of which begin with a zero, is text."""
    rows = pc.read_csv(file, convert_options=convert_options, **how)
    names = rows.column_names
    able = [field.name for field in rows.schema if pa.types.is_integer(field.type)]
    if able:
        convert_options.include_columns = able
        convert_options.column_types = dict.fromkeys(able, pa.string())
        texts = pc.read_csv(file, convert_options=convert_options, **how)
        for name in able:
            if True in match_substring_regex(texts[name], PADDED).unique().to_pylist():
                rows = rows.set_column(names.index(name), name, texts[name])
    return rows
