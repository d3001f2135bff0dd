"""Versions of one table as they are stored: commits, files, rows."""
