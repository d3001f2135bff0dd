"""Upkeep of tables, and their faults."""
