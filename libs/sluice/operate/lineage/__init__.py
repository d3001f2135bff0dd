"""Lineage of a row: its origin, and why another is absent."""
