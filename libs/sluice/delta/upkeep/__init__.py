"""Upkeep and checks of stored tables."""
