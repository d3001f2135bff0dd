"""Over: window functions over partitions of a table."""
