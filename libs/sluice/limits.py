"""Sizes at which work goes another way: read in this process or by Spark, here or by a scan.

No limit changes a row of any table. Each has one field, named for what it bounds, with its unit. A
project carries them from where it is loaded to all that asks; tests hand in others, so that small
data takes the ways of large data.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Up to these sizes, the amounts themselves included, the way of little data is taken."""

    read_here_bytes: int = 500_000
    """Of files of a table or a feed: this process reads them, Spark scans what has more."""

    kept_bytes: int = 24_000_000
    """Of one table in Arrow: what was read here is kept for other views of the run."""

    searched_bytes: int = 512_000_000
    """Of files of a large table that this process looks through for rows that match others."""

    matched_rows: int = 200_000
    """Of facts, or of rows found for them, that this process holds."""

    few_tasks_bytes: int = 8_000_000
    """Of files to read: a batch runs in few tasks."""

    few_tasks_merge_bytes: int = 4_000_000
    """Of changes to read, which a cogroup brings together with as many rows of its state."""

    uncounted_changelog_bytes: int = 8_000_000
    """Of files that were read, their rows unknown: the changelog comes to this process."""

    counted_changelog_bytes: int = 64_000_000
    """Of files that were read, their rows known to be few: the changelog comes to this process."""

    held_changelog_bytes: int = 256_000_000
    """Of a changelog in Arrow that comes to this process, once it has been counted."""

    sampled_changelog_rows: int = 10_000
    """Of a changelog: they are small, however wide; so many of more tell how wide those are."""

    topk_feed_bytes: int = 64_000_000
    """Of a top-k's feed that this process looks through for the rows that matter."""

    topk_state_bytes: int = 128_000_000
    """Of a top-k's kept rows, to be looked through here, and their last ones to be broadcast."""

    topk_handed_rows: int = 50_000
    """Of a top-k's feed that are handed to Spark."""

    topk_full_bytes: int = 8_000_000
    """Of a top-k's feed: above it, a feed that is most of the input gives way to all of it."""

    topk_full_share: float = 0.5
    """Of the input's bytes that a large feed of a top-k may have, before all of it is read."""

    cogroup_feed_bytes: int = 16_000_000
    """Of a cogroup's feeds that this process reads."""

    cogroup_state_bytes: int = 256_000_000
    """Of a cogroup's state in which this process picks the touched rows."""

    cogroup_input_bytes: int = 1_000_000_000
    """Of an input in which this process picks the rows of groups to be recomputed."""

    cogroup_handed_rows: int = 50_000
    """Of a cogroup's feeds, of its state, and of each input, that are handed to Spark."""

    spread_sample_rows: int = 50_000
    """Of a cogroup's first batch: a sample of so many tells whether groups have few rows each."""

    least_ranges: int = 4
    """Files that a cogroup's first batch fills: from so many on it is shuffled in ranges."""

    lookup_uncounted_bytes: int = 4_000_000
    """Of a lookup's feed whose rows are not counted: they are few."""

    lookup_keys: int = 10_000
    """Of changed keys of a dimension whose facts this process looks for."""

    lookup_changed_share: float = 0.25
    """Of a dimension's rows: where more have changed, all facts are joined again."""

    broadcast_memory_share: float = 0.5
    """Of the memory of Spark that a dimension may fill, to be sent whole to every task."""

    named_groups: int = 64
    """Of touched groups that a scan names one by one; of more it knows the bounds."""

    named_values: int = 1_000
    """Of values that a scan of facts is given in a list."""

    quarantined_rows: int = 10_000
    """Of bad rows that this process writes."""

    quarantined_bytes: int = 64_000_000
    """Of bad rows, as text, that this process writes."""

    file_rows: int = 100_000
    """Of a file of a table without slices: what a change of one key rewrites."""

    slice_file_rows: int = 5_000_000
    """Of a file of a slice that is filed again."""

    unordered_rows: int = 5_000
    """Of files whose order makes no difference: they are put together without Spark."""

    slice_files: int = 12
    """Files of a slice: from so many on it is filed again."""

    loose_files: int = 32
    """Files of a table without slices, beside those that its rows fill: from so many on it is."""

    round_intervals: int = 16
    """Of intervals whose changes views read together."""

    swept_bytes: int = 64_000_000
    """Of files of a table that is looked at whole without Spark."""

    swept_feed_bytes: int = 64_000_000
    """Of files of a feed, by which an earlier look at a whole table is brought up to date."""
