"""Delta tables: where they lie, what their head says, their feeds, and commits that happen once."""
