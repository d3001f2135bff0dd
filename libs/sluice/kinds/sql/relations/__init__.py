"""Rows that a part of a query stands for, and the chain of views that keeps them."""
