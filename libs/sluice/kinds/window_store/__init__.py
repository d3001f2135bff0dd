"""Rows by key and event time."""
