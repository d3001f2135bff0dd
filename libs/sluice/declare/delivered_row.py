"""A delivered row: its own columns, plus those that its reader adds.

The columns may be missing; all but CUT are STRING. A row with a reason can't be used and is
quarantined. Expectations don't apply to a row that deletes: it need not hold more than its key.
"""

REASON = "_sluice_reason"  # why the row can't be used; null if it can
RAW = "_sluice_raw"  # text that it was read from
FILE = "_sluice_file"  # file that it was read from
KEPT = "_sluice_kept"  # text that the quarantine keeps of it, instead of RAW or its columns
OP = "_sluice_op"  # `insert` or `delete`: what it does to its table
CUT = "_sluice_cut"  # number (INT) of its values that lost digits beyond a microsecond
