"""A delivered row: its own columns, plus what its reader knows of it.

The columns may be missing; all but CUT are STRING. A row with a reason can't be used and is
quarantined.
"""

REASON = "_sluice_reason"  # why the row can't be used; null if it can
RAW = "_sluice_raw"  # text that it was read from
FILE = "_sluice_file"  # file that it was read from
CUT = "_sluice_cut"  # number (INT) of its values that lost digits beyond a microsecond
