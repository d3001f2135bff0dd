"""Committing: changelogs written or swapped in, and the upkeep of files."""
