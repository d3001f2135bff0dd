"""Many streams aggregated into one row per key."""
