"""Outcomes: results, the verdict, unusual batches, and what is kept of them."""
