"""Upkeep of tables, and what is wrong with them."""
