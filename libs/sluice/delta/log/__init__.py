"""The log: versions of a table, what each consists of, and the position that it records."""
