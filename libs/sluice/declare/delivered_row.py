"""A delivered row: its own columns, plus what its reader knows of it.

The columns are STRING and may be missing. A row with a reason can't be used and is quarantined.
"""

REASON = "_sluice_reason"  # why the row can't be used; null if it can
RAW = "_sluice_raw"  # text that it was read from
FILE = "_sluice_file"  # file that it was read from
