"""Aggregates of a cogroup: each with what it keeps of a group."""
