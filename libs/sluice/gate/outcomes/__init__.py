"""Outcomes: results, the verdict, unusual batches, and their history."""
