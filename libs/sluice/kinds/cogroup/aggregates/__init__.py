"""Aggregates of a cogroup, each with its state of a group."""
