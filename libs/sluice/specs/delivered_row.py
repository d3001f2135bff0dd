"""A delivered row: beside its own columns, what its reader knows of it.

The columns are STRING and may be missing. A row with a reason can't be used and is quarantined.
"""

REASON = "_sluice_reason"  # why the row can't be used; null: it can
RAW = "_sluice_raw"  # the text that it was read from
FILE = "_sluice_file"  # the file that it lay in
