"""Formats of messages: each one read into records, or columns."""
