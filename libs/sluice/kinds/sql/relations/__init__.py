"""Rows of a part of a query, and the chain of views that keeps them."""
