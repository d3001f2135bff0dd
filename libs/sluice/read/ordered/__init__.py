"""Rows in the order of a key, of which only those are read that are wanted."""
