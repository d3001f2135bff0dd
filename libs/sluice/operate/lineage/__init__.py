"""Lineage of a row: where it comes from, and why another is not there."""
