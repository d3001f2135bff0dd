"""Batches of any table: plan, changes in, changed rows out, one commit. Knows no kind."""
