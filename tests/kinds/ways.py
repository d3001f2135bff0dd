"""Ways of a batch: the limits that it exceeds, and constants of small and large data."""

from collections import deque

NONE = -1  # not even nothing is within the limit
NARROWED = {"read_here_bytes": NONE}  # without Spark
PICKED = {**NARROWED, "computed_here_bytes": NONE}
SCANNED = {  # begun without Spark, and left to it
    **NARROWED,
    **dict.fromkeys(("held_bytes", "searched_bytes", "handed_rows"), NONE),
    **dict.fromkeys(("few_tasks_bytes", "collected_bytes"), NONE),
}
FOUND_TO_BE_MANY = {
    **PICKED,
    **dict.fromkeys(("handed_rows", "collected_bytes", "held_bytes"), NONE),
    **dict.fromkeys(("file_rows", "large_file_rows", "slice_file_rows"), 1),
}
MARKED = {"merged_bytes": NONE, "marked_share": 1_000, "small_files": 2}


WAYS = deque([NARROWED, PICKED, SCANNED, FOUND_TO_BE_MANY, MARKED])

CONSTANTS = {
    "sluice.delta.reading.local.KEPT_BYTES": NONE,
    "sluice.delta.writing.filing.Slice.unordered_rows": 0,
    "sluice.engine.committing.SAMPLED_ROWS": 1,
    "sluice.engine.rows.NAMED_GROUPS": 0,
    "sluice.engine.rows.NAMED_VALUES": 0,
    "sluice.kinds.cogroup.batch.LEAST_RANGES": 1,
    "sluice.kinds.cogroup.batch.SPREAD_SAMPLE_ROWS": 1,
    "sluice.kinds.join.operator.MULTIPLIED_ROWS": 0,
    "sluice.kinds.lookup.batch.CHANGED_SHARE": 0,
    "sluice.kinds.lookup.batch.BROADCAST_SHARE": 0,
    "sluice.kinds.over.operator.LEAST_ROWS": 0,
    "sluice.kinds.over.operator.ROOM": 1,
    "sluice.kinds.topk.batch.FULL_BYTES": NONE,
    "sluice.kinds.topk.batch.FULL_SHARE": NONE,
    "sluice.kinds.window_store.operator.StoreKept.slice_files": 2,
    "sluice.kinds.window_store.operator.StoreKept.tidied_rows": 1,
}
