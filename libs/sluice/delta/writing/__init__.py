"""Writing: commits that happen exactly once, and the layout of the files that they add."""
