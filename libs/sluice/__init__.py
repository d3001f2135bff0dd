"""Incremental views on Delta Lake, kept equal to their queries batch by batch."""
