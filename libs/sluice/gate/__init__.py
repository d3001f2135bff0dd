"""Expectations of rows, the quarantine of bad ones, and results that are kept."""
