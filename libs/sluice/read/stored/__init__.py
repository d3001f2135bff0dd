"""Stored versions of one table: commits, files, rows."""
