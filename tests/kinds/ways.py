"""Ways of a batch: the limits that it exceeds."""

from collections import deque

NONE = -1  # not even nothing is within the limit
NARROWED = {"read_here_bytes": NONE}  # without Spark
PICKED = {**NARROWED, "computed_here_bytes": NONE}
SCANNED = {  # begun without Spark, and left to it
    **NARROWED,
    "narrowed_bytes": NONE,
    **dict.fromkeys(("kept_bytes", "searched_bytes", "scanned_bytes", "matched_rows"), NONE),
    **dict.fromkeys(("few_tasks_bytes", "few_tasks_merge_bytes"), NONE),
    **dict.fromkeys(("uncounted_changelog_bytes", "counted_changelog_bytes"), NONE),
    **dict.fromkeys(("ranked_feed_bytes", "grouped_feed_bytes", "joined_uncounted_bytes"), NONE),
    **dict.fromkeys(("named_groups", "named_values"), 0),
    "broadcast_memory_share": 0,
}
FOUND_TO_BE_MANY = {
    **PICKED,
    **dict.fromkeys(("ranked_state_bytes", "handed_rows", "picked_groups"), NONE),
    **dict.fromkeys(("ranked_full_bytes", "ranked_full_share"), NONE),
    **dict.fromkeys(("counted_changelog_bytes", "held_changelog_bytes"), NONE),
    **dict.fromkeys(("spread_sample_rows", "least_ranges", "sampled_changelog_rows"), 1),
    **dict.fromkeys(("file_rows", "slice_rows", "slice_file_rows"), 1),
    **dict.fromkeys(("joined_keys", "joined_changed_share", "unordered_rows"), 0),
    "multiplied_rows": 0,
    "slice_files": 2,
}
MARKED = {**dict.fromkeys(("merged_bytes", "merged_slice_bytes"), NONE)}


MARKED |= {"marked_share": 1_000, "small_files": 2}


WAYS = deque([NARROWED, PICKED, SCANNED, FOUND_TO_BE_MANY, MARKED])
