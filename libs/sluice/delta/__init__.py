"""Delta tables: their location, heads and feeds, and commits that happen exactly once."""
