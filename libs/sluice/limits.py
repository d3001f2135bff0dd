"""Sizes above which work takes another path, such as Spark or a scan instead of this process.

No limit changes a row of any table. Each has one field, named for what it bounds, with its unit. A
project passes them from loading to all that ask. Tests pass smaller ones, so that small data takes
the paths of large data.
"""

from dataclasses import dataclass, replace
from typing import Self


@dataclass(frozen=True)
class Limits:
    """Inclusive upper bounds: up to these sizes, work takes the path for small data."""

    read_here_bytes: int = 500_000
    """Files of a table or a feed that this process reads; Spark scans larger ones."""

    computed_here_bytes: int = 16_000_000
    """Files to read in a batch that this process computes without Spark."""

    interpreted_rows: int = 200_000
    """Rows of one relation that such a batch holds as Python's values."""

    messages_here_bytes: int = 64_000_000
    """Messages of a batch that this process computes without Spark."""

    handed_bytes: int = 256_000_000
    """Files of a table or feed that this process reads for a Spark that may not use the store."""

    narrowed_bytes: int = 64_000_000
    """Files of a table in which a batch without Spark looks for the rows that it needs."""

    kept_bytes: int = 24_000_000
    """One table in Arrow that, once read here, is kept for other views of the run.

    By default, a process also keeps no more in all. As rows in Spark's heap, they take seven times
    that.
    """

    searched_bytes: int = 8_000_000_000
    """Files of a large table on a disk that polars searches for rows that match others."""

    searched_together_bytes: int = 128_000_000
    """Files that it searches at a time: all of their rows may be found."""

    indexed_bytes: int = 20_000_000_000
    """The indexes of all tables on this machine; beyond, the least used are removed."""

    found_bytes: int = 32_000_000
    """Found rows in Arrow that are kept for the batch's commit."""

    scanned_bytes: int = 512_000_000
    """Such files where Arrow searches, which decodes all wanted columns first."""

    matched_rows: int = 200_000
    """Facts, or rows found for them, that this process holds."""

    few_tasks_bytes: int = 8_000_000
    """Files to read in a batch that runs in few tasks."""

    few_tasks_merge_bytes: int = 4_000_000
    """The same for changes that are merged with as many rows of a state."""

    uncounted_changelog_bytes: int = 8_000_000
    """Files read, of unknown row count, whose changelog comes to this process."""

    counted_changelog_bytes: int = 64_000_000
    """Files read, with few rows by count, whose changelog comes to this process."""

    held_changelog_bytes: int = 256_000_000
    """A counted changelog in Arrow that comes to this process."""

    sampled_changelog_rows: int = 10_000
    """Changelog rows that are small at any width; a sample of as many shows the width of more."""

    ranked_feed_bytes: int = 64_000_000
    """A feed of ranked rows that this process searches for those that matter."""

    ranked_state_bytes: int = 128_000_000
    """Kept rows of a ranking that are searched here, and whose last rows are broadcast."""

    handed_rows: int = 50_000
    """Rows of a feed, of a state or of one input that a batch reads here and passes to Spark."""

    ranked_full_bytes: int = 8_000_000
    """A feed of ranked rows; above it all of the input is read, if the feed is most of that."""

    ranked_full_share: float = 0.5
    """Share of the input's bytes that such a large feed may have before all of it is read."""

    grouped_feed_bytes: int = 16_000_000
    """Feeds of a batch, to be grouped, that this process reads."""

    spread_sample_rows: int = 50_000
    """Sample of a state's first batch, which shows whether groups have few rows each."""

    least_ranges: int = 4
    """Number of files at which a state's first batch is shuffled in ranges."""

    joined_uncounted_bytes: int = 4_000_000
    """A feed to be joined that has few rows, if they are not counted."""

    joined_keys: int = 10_000
    """Changed keys of a dimension whose facts this process looks for."""

    joined_changed_share: float = 0.25
    """Share of a dimension's rows; if more have changed, all facts are joined again."""

    broadcast_memory_share: float = 0.5
    """Share of Spark's memory that a dimension may fill to be sent whole to every task."""

    multiplied_rows: int = 1_000_000
    """Rows that one value of a join gives in one batch; of more, the report warns."""

    picked_groups: int = 50_000
    """Touched groups whose rows this process picks from large tables."""

    named_groups: int = 64
    """Touched groups that a scan names one by one; of more, it gets only the bounds."""

    named_values: int = 1_000
    """Values that a scan of facts gets in a list."""

    quarantined_rows: int = 10_000
    """Bad rows that this process writes."""

    quarantined_bytes: int = 64_000_000
    """Bad rows, as text, that this process writes."""

    file_rows: int = 100_000
    """Rows per file of a table without slices: those that a change of one key rewrites."""

    merged_bytes: int = 32_000_000
    """Files with changed keys that a small commit rewrites; in more, it marks the changed rows."""

    merged_slice_bytes: int = 1_000_000
    """The same for a large table in partitions, most of which a small commit leaves alone."""

    marked_share: float = 0.1
    """Share of the rows of those files that it marks; of more, it rewrites the files."""

    small_files: int = 8
    """Number of small files, each with less than half of `file_rows`, that such a commit joins."""

    piece_bytes: int = 32_000_000
    """Files, or parts of them, that one commit of upkeep reads and writes again."""

    slice_file_rows: int = 5_000_000
    """Rows per file of a slice that is filed again."""

    slice_rows: int = 100_000
    """Rows of a slice without retention, beyond which its time is cut finer."""

    unordered_rows: int = 5_000
    """Rows whose order in files makes no difference: the files are combined without Spark."""

    slice_files: int = 12
    """Number of files at which a slice is filed again."""

    loose_files: int = 32
    """Number of files, beyond those its rows fill, at which a table without slices is refiled."""

    round_intervals: int = 16
    """Intervals whose changes views read together."""

    swept_bytes: int = 64_000_000
    """Files of a table that is read whole without Spark."""

    swept_feed_bytes: int = 64_000_000
    """Files of a feed that bring an earlier read of a whole table up to date."""

    def of_slices(self) -> Self:
        """Return the limits of a slice's files, which may have more rows than a table's."""
        return replace(self, file_rows=self.slice_file_rows)
