"""Join: two tables, both of which drive the result."""
