"""Conditions, keys and orders of reads, as values that can be compared."""
