"""Counts of a batch: everything that rules need of its rows, in as few passes as possible."""
