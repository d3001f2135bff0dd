"""Judging: expectations of new rows, and the quarantine of delivered ones."""
