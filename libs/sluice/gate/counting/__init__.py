"""Counts of a batch: all that rules need, in as few passes as possible."""
