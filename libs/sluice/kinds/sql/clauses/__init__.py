"""Clauses as relations: groups, windows, set operations, constants."""
